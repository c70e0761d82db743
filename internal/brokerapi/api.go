package brokerapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/assign"
	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/broker/fetch"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/broker/produce"
	"github.com/sundial-mq/sundial/internal/broker/redeliver"
	"github.com/sundial-mq/sundial/internal/broker/stats"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/broker/txn"
	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Parts are what the API puts a face on. All must be there but the last three.
type Parts struct {
	Store     *storage.Store
	Produce   *produce.Flow
	Fetch     *fetch.Flow
	Redeliver *redeliver.Flow
	Topics    *topics.Register
	Groups    *groups.Register
	Offsets   *offsets.Register
	Clients   *clients.Register
	Modes     *assign.Modes
	Stats     *stats.Register

	// Txn keeps transactions; nil: there are none.
	Txn *txn.Flow
	// Delay tells the progress of delayed messages; nil: there are none.
	Delay *delay.Flow
	// Announced returns when the name servers know all topics that exist now, or
	// when ctx is done: a consumer asks them for its retry topic right after its
	// first heartbeat. nil: nobody announces.
	Announced func(ctx context.Context)
	// Route asks the name servers for the brokers of a topic; nil, or a nil route, is
	// for a broker without name servers, whose queues are all there are.
	Route func(ctx context.Context, topic string) (*protocol.Route, error)
	// SetPerm is told of a change of the broker's permission, for the name servers.
	SetPerm func(mq.Perm)
	// FS and Dir are where settings that are changed by command are kept, in
	// liveConfig.json; without FS none can be changed.
	FS  vfs.FS
	Dir string
	// Metrics takes the API's metrics; nil lists them nowhere.
	Metrics *metric.Registry
}

// API serves the remoting commands of a broker.
type API struct {
	cfg     Config
	p       Parts
	log     *slog.Logger
	started time.Time
	classes classes
	m       metrics
	traffic traffic
	routes  routeCache
	live    struct {
		sync.Mutex
		now     *Settings // in force; replaced, never changed in place
		file    *table.Document[changesFile]
		changed map[string]string // what differs from the configuration
		version mq.DataVersion
	}
	replies replies
}

// classes are the kinds of traffic. See Config.
type classes struct {
	send   *server.Class // sends, on the reader
	commit *server.Class // commits of offsets, on the reader
	txn    *server.Class // verdicts of transactions
	pull   *server.Class // pulls
	back   *server.Class // messages sent back
	client *server.Class // heartbeats, offsets, locks, consumer lists
	query  *server.Class // messages looked up
	ask    *server.Class // clients asked for administrators
	admin  *server.Class // everything else
}

// New makes the API; it serves through the server that Table is given to.
func New(cfg Config, p Parts) (*API, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("broker API: %w", err)
	}
	if p.Store == nil || p.Produce == nil || p.Fetch == nil || p.Redeliver == nil || p.Topics == nil || p.Groups == nil || p.Offsets == nil || p.Clients == nil || p.Modes == nil || p.Stats == nil {
		return nil, errors.New("BUG: broker API: a part is missing")
	}
	a := &API{cfg: cfg, p: p, log: cfg.Log, started: time.Now(), m: newMetrics(p.Metrics, p.Stats.Stored)}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.live.version = mq.DataVersion{Timestamp: a.started.UnixMilli()}
	if err := a.openSettings(p.FS, p.Dir); err != nil {
		return nil, fmt.Errorf("broker API: %w", err)
	}
	a.classes.send = server.NewInline("send", p.Metrics)
	a.classes.commit = server.NewInline("commit", p.Metrics)
	for _, c := range []struct {
		class **server.Class
		cfg   server.ClassConfig
	}{
		{&a.classes.txn, cfg.Txn}, {&a.classes.pull, cfg.Pull}, {&a.classes.back, cfg.SendBack}, {&a.classes.client, cfg.Client},
		{&a.classes.query, cfg.Query}, {&a.classes.admin, cfg.Admin}, {&a.classes.ask, cfg.Ask},
	} {
		class, err := server.NewClass(c.cfg, p.Metrics)
		if err != nil {
			return nil, fmt.Errorf("broker API: %w", err)
		}
		*c.class = class
	}
	return a, nil
}

// Table says who handles which code: all that RocketMQ has. Several servers may
// share it.
func (a *API) Table() server.Table {
	t := server.Table{}
	for _, r := range protocol.Requests() {
		t[int32(r.Code)] = server.Route{Name: r.Name, Class: a.classes.admin, Handle: a.serve(r.Code, a.refuse(r.Code))}
	}
	for _, c := range a.commands() {
		t[int32(c.code)] = server.Route{Name: protocol.RequestName(c.code), Class: c.class, Handle: a.serve(c.code, c.handle)}
	}
	return t
}

// command is a request code that is served.
type command struct {
	code   protocol.Code
	class  *server.Class
	handle handler
}

func (a *API) commands() []command {
	c := &a.classes
	return []command{
		{protocol.SendMessage, c.send, a.send},
		{protocol.SendMessageV2, c.send, a.send},
		{protocol.SendBatchMessage, c.send, a.send},
		{protocol.SendReplyMessage, c.client, a.reply},
		{protocol.SendReplyMessageV2, c.client, a.reply},
		{protocol.ConsumerSendMsgBack, c.back, with(a.sendBack)},
		{protocol.RecallMessage, c.back, with(a.recall)},

		{protocol.EndTransaction, c.txn, a.endTransaction},
		{protocol.ResumeCheckHalfMessage, c.admin, with(a.resumeCheck)},
		{protocol.ListTransactions, c.admin, with(a.listTransactions)},
		{protocol.ShowTransaction, c.admin, with(a.showTransaction)},
		{protocol.ResolveTransaction, c.admin, with(a.resolveTransaction)},

		{protocol.PullMessage, c.pull, a.pull},
		{protocol.LitePullMessage, c.pull, a.pull},
		{protocol.PeekMessage, c.pull, with(a.peek)},

		{protocol.UpdateConsumerOffset, c.commit, with(a.updateOffset)},
		{protocol.QueryConsumerOffset, c.client, with(a.queryOffset)},
		{protocol.GetMaxOffset, c.client, with(a.maxOffset)},
		{protocol.GetMinOffset, c.client, with(a.minOffset)},
		{protocol.SearchOffsetByTimestamp, c.query, with(a.searchOffset)},
		{protocol.GetEarliestMsgStoreTime, c.query, with(a.earliestTime)},

		{protocol.HeartBeat, c.client, bare(a.heartbeat)},
		{protocol.UnregisterClient, c.client, with(a.unregister)},
		{protocol.GetConsumerListByGroup, c.client, with(a.consumerList)},
		{protocol.CheckClientConfig, c.client, bare(a.checkClient)},
		{protocol.LockBatchMQ, c.client, bare(a.lock)},
		{protocol.UnlockBatchMQ, c.client, bare(a.unlock)},

		{protocol.QueryMessage, c.query, with(a.queryMessage)},
		{protocol.ViewMessageByID, c.query, with(a.viewMessage)},
		{protocol.QueryConsumeQueue, c.query, with(a.queryConsumeQueue)},

		{protocol.UpdateAndCreateTopic, c.admin, with(a.createTopic)},
		{protocol.UpdateAndCreateTopicList, c.admin, bare(a.createTopics)},
		{protocol.DeleteTopicInBroker, c.admin, with(a.deleteTopic)},
		{protocol.GetAllTopicConfig, c.admin, with(a.allTopics)},
		{protocol.GetTopicConfig, c.admin, with(a.topicConfig)},
		{protocol.GetTopicStatsInfo, c.admin, with(a.topicStats)},
		{protocol.GetSystemTopicListFromBroker, c.admin, bare(a.systemTopics)},
		{protocol.QueryTopicConsumeByWho, c.admin, with(a.topicConsumers)},

		{protocol.UpdateAndCreateSubscriptionGroup, c.admin, bare(a.createGroup)},
		{protocol.UpdateAndCreateSubscriptionGroupList, c.admin, bare(a.createGroups)},
		{protocol.DeleteSubscriptionGroup, c.admin, with(a.deleteGroup)},
		{protocol.GetAllSubscriptionGroupConfig, c.admin, with(a.allGroups)},
		{protocol.GetSubscriptionGroupConfig, c.admin, with(a.groupConfig)},

		{protocol.UpdateAndGetGroupForbidden, c.admin, with(a.forbid)},

		{protocol.GetConsumerConnectionList, c.admin, with(a.consumerConnections)},
		{protocol.GetProducerConnectionList, c.admin, with(a.producerConnections)},
		{protocol.GetAllProducerInfo, c.admin, bare(a.allProducers)},
		{protocol.GetConsumeStats, c.admin, with(a.consumeStats)},
		{protocol.GetBrokerConsumeStats, c.admin, with(a.brokerConsumeStats)},
		{protocol.QueryTopicsByConsumer, c.admin, with(a.consumerTopics)},
		{protocol.QuerySubscriptionByConsumer, c.admin, with(a.consumerSubscription)},
		{protocol.GetAllConsumerOffset, c.admin, bare(a.allOffsets)},
		{protocol.GetAllDelayOffset, c.admin, bare(a.delayOffsets)},
		{protocol.CloneGroupOffset, c.admin, with(a.cloneOffset)},
		{protocol.QueryCorrectionOffset, c.admin, with(a.correction)},
		{protocol.InvokeBrokerToResetOffset, c.admin, with(a.resetOffset)},

		{protocol.GetConsumerRunningInfo, c.ask, with(a.runningInfo)},
		{protocol.ConsumeMessageDirectly, c.ask, with(a.consumeDirectly)},
		{protocol.InvokeBrokerToGetConsumerStatus, c.ask, with(a.consumerStatus)},

		{protocol.QueryAssignment, c.ask, bare(a.assignment)},
		{protocol.SetMessageRequestMode, c.admin, bare(a.setMode)},
		{protocol.GetAllMessageRequestMode, c.admin, bare(a.allModes)},

		{protocol.CleanExpiredConsumeQueue, c.admin, bare(a.cleanQueues)},
		{protocol.CleanUnusedTopic, c.admin, bare(a.cleanTopics)},
		{protocol.DeleteExpiredCommitLog, c.admin, bare(a.deleteExpired)},

		{protocol.GetBrokerRuntimeInfo, c.admin, bare(a.runtimeInfo)},
		{protocol.UpdateBrokerConfig, c.admin, bare(a.updateConfig)},
		{protocol.GetBrokerConfig, c.admin, bare(a.brokerConfig)},
		{protocol.ViewBrokerStatsData, c.admin, with(a.statsData)},
		{protocol.QueryConsumeTimeSpan, c.admin, with(a.consumeTimeSpan)},
		{protocol.GetBrokerHAStatus, c.admin, bare(a.haStatus)},
		{protocol.GetTimerMetrics, c.admin, bare(a.timerMetrics)},
		{protocol.GetTimerCheckPoint, c.admin, bare(a.timerCheckpoint)},

		{protocol.ListDelayed, c.admin, with(a.listDelayed)},
		{protocol.FindDelayed, c.query, with(a.findDelayed)},
		{protocol.CountDelayed, c.admin, with(a.countDelayed)},
		{protocol.RecallDelayed, c.back, with(a.recallDelayed)},
		{protocol.RescheduleDelayed, c.back, with(a.rescheduleDelayed)},
		{protocol.FireDelayed, c.back, with(a.fireDelayed)},
		{protocol.ListDelayedAside, c.admin, bare(a.listAside)},
		{protocol.GetDelayState, c.admin, bare(a.delayState)},
	}
}
