package node

import (
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/announce"
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
	"github.com/sundial-mq/sundial/internal/brokerapi"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/storage/table"
)

// broker is the parts of that role, in the order in which they are made.
type broker struct {
	cfg      BrokerConfig
	ln, fast *door // fast may be nil
	host     netip.AddrPort
	log      *slog.Logger

	rules     delay.Rules
	delay     *delay.Flow
	stats     *stats.Register
	store     *storage.Store
	topics    *topics.Register
	groups    *groups.Register
	offsets   *offsets.Register
	clients   *clients.Register
	modes     *assign.Modes
	produce   *produce.Flow
	txn       *txn.Flow
	txnPrior  *txn.Prior
	fetch     *fetch.Flow
	redeliver *redeliver.Flow
	announcer *announce.Announcer
	api       *brokerapi.API

	serving func() // from now on arrivals are told
}

// listenBroker opens the broker's ports and settles its addresses.
func (p *parts) listenBroker(names *nameServer) (*broker, error) {
	b := &broker{cfg: p.cfg.Broker, log: p.log}
	var err error
	if b.ln, err = p.listen("broker", b.cfg.Port, "--set listenPort=N"); err != nil {
		return nil, err
	}
	if b.cfg.FastPort >= 0 {
		if b.fast, err = p.listen("broker's second port (for old clients)", b.cfg.FastPort, "--set fastListenPort=N"); err != nil {
			return nil, err
		}
		p.at.Fast = b.fast.addr
	}
	addr, err := advertised(b.cfg.Advertise, p.cfg.Bind, ownAddrs())
	if err != nil {
		return nil, err
	}
	b.host = netip.AddrPortFrom(addr, b.ln.addr.Port())
	p.at.Broker, p.at.Listen = b.host, b.ln.addr
	p.at.NameServers = b.cfg.NameServers
	if len(b.cfg.NameServers) == 0 && names != nil && !b.cfg.Announce.UseAddressServer {
		p.at.NameServers = []string{names.self}
	}
	return b, nil
}

// open makes everything above the ports and adds its floors.
func (b *broker) open(p *parts) error {
	b.spread(p)
	for _, step := range []func(*parts) error{b.openStore, b.openRegisters, b.openFlows, b.openAPI} {
		if err := step(p); err != nil {
			return err
		}
	}
	return nil
}

// spread hands what is said once to all parts that need it.
func (b *broker) spread(p *parts) {
	c := &b.cfg
	c.Store.Dir, c.Store.Log = p.cfg.Dir, p.log
	c.Store.MaxMessage = c.Produce.MaxBody
	c.Topics.Cluster, c.Topics.Broker = c.Cluster, c.Name
	c.Produce.Cluster, c.Produce.StoreHost, c.Produce.Perm = c.Cluster, b.host, c.Perm
	c.Fetch.Perm = c.Perm
	c.Delay.Log = p.log
	c.Redeliver.StoreHost, c.Redeliver.Perm, c.Redeliver.SyncFlushTimeout = b.host, c.Perm, c.Produce.SyncFlushTimeout
	c.API.Cluster, c.API.Broker, c.API.BrokerID, c.API.Addr = c.Cluster, c.Name, c.ID, b.host
	c.API.Settings = brokerapi.Settings{
		Perm: c.Perm, AutoTopics: c.Topics.AutoCreate, AutoGroups: c.Groups.AutoCreate,
		Reserved: c.Store.Expiry.Reserved, Hours: c.Store.Expiry.Hours, MaxUsed: c.Store.Expiry.MaxUsed,
	}
	c.API.Region, c.API.TraceOn, c.API.Log = c.Produce.Region, c.Produce.TraceOn, p.log
	c.Announce.NameServers, c.Announce.Cluster, c.Announce.Broker, c.Announce.ID = p.at.NameServers, c.Cluster, c.Name, c.ID
	c.Announce.Addr, c.Announce.HAAddr, c.Announce.Perm, c.Announce.Log = b.host.String(), b.host.String(), c.Perm, p.log
	c.Server.Log, c.Server.Metrics = p.log, p.metrics
	c.Delay.Metrics = p.metrics
	c.Txn.Log, c.Txn.Metrics, c.Txn.StoreHost = p.log, p.metrics, b.host
	c.Txn.LogFileSize, c.Txn.SyncFlushTimeout = c.Store.LogFileSize, c.Produce.SyncFlushTimeout
}

// openStore opens the engine and, in the same breath, the delay flow's view of
// it: the receipts in the log's tail are read once, by both.
func (b *broker) openStore(p *parts) error {
	levels, err := delay.ParseLevels(b.cfg.DelayLevels)
	if err != nil {
		return err
	}
	b.cfg.Delay.Levels = levels
	// What a topic says is asked when messages flow; the register is there by then.
	number := func(attribute string) func(topic string) int64 {
		return func(topic string) int64 { return topics.Number(b.topics.Get(topic), attribute) }
	}
	b.rules = delay.Rules{Levels: levels, Timers: b.cfg.Delay.Timers, Now: time.Now, Jitter: number(topics.DelayJitterAttribute)}
	b.cfg.Delay.Rate = number(topics.DelayRateAttribute)
	prior, err := delay.ReadPrior(p.fs, filepath.Join(p.cfg.Dir, "config"), filepath.Join(p.cfg.Dir, "sundial"), p.log)
	if err != nil {
		return err
	}
	if b.stats, err = stats.Open(p.fs, filepath.Join(p.cfg.Dir, "sundial"), b.cfg.Stats); err != nil {
		return err
	}
	if text := b.stats.Loaded().String(); text != "" {
		p.log.Warn("stats.json is "+text, "document", "stats.json")
	}
	b.stats.Measure(p.metrics)
	if b.txnPrior, err = txn.ReadPrior(p.fs, filepath.Join(p.cfg.Dir, "sundial"), b.cfg.Txn); err != nil {
		return err
	}
	// Nothing arrives before Open has returned and the flows are there: the ports
	// are not served yet.
	var open atomic.Bool
	c := &b.cfg.Store
	c.Known = func(topic string) bool { return b.topics.Get(topic) != nil }
	c.TagsCode, c.RecoverFrom = b.rules.TagsCode, min(prior.From(), b.txnPrior.From())
	c.Recovered = func(v record.View) {
		prior.See(v)
		b.txnPrior.See(v)
	}
	c.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, tagsCode int64) {
		if open.Load() {
			b.delay.Arrived(key, off, tagsCode)
			b.fetch.Arrived(key, off, tagsCode)
		}
	}
	c.Tally = b.stats.Tally
	c.OnLost = func(from, to mq.LogOffset) {
		if open.Load() {
			b.lost(from, to)
		}
	}
	if b.store, err = storage.Open(p.fs, *c); err != nil {
		return err
	}
	p.opened(b.store.Close)
	if b.delay, err = delay.Open(b.store, prior, b.cfg.Delay); err != nil {
		return err
	}
	b.store.Pin("pending delayed messages", b.delay.Pin)
	b.serving = func() { open.Store(true) }
	p.stack.Add("store", b.store.Run)
	b.saving(p, "statistics", b.stats.Run)
	return nil
}

func (b *broker) openRegisters(p *parts) (err error) {
	dir := filepath.Join(p.cfg.Dir, "config")
	if b.topics, err = topics.Open(p.fs, dir, b.cfg.Topics); err != nil {
		return err
	}
	if b.groups, err = groups.Open(p.fs, dir, b.cfg.Groups); err != nil {
		return err
	}
	b.cfg.Offsets.End = func(topic string, queue mq.QueueID) mq.QueueOffset {
		return b.store.MaxOffset(mq.QueueKey{Topic: topic, ID: queue})
	}
	if b.offsets, err = offsets.Open(p.fs, dir, b.cfg.Offsets); err != nil {
		return err
	}
	p.loaded("topics.json", b.topics.Loaded())
	if b.topics.Loaded().Source == table.Backup {
		b.restoreTopics(p)
	}
	p.loaded("subscriptionGroup.json", b.groups.Loaded())
	p.loaded("consumerOffset.json", b.offsets.Loaded())
	if err := checkPending(b.store, p.fs, dir, b.offsets, b.cfg.IgnorePending); err != nil {
		return err
	}
	b.cfg.Clients.Wanted = func(group string) bool {
		g := b.groups.Get(group)
		return g == nil || g.NotifyIDsChanged
	}
	b.cfg.Clients.Notify = brokerapi.NotifyIDsChanged
	b.cfg.Clients.Duplicate = func(group string, x, y clients.Client) {
		p.log.Warn("two consumers share one client id: some queues may have no reader; give each process an instance name of its own",
			"group", group, "clientId", x.ID, "first", x.Addr, "second", y.Addr)
	}
	b.cfg.Clients.Joined = func(group string) { b.txn.Joined(group) }
	b.cfg.Clients.Silent = brokerapi.CloseSilent
	if b.clients, err = clients.New(b.cfg.Clients); err != nil {
		return err
	}
	if b.modes, err = assign.Open(p.fs, dir); err != nil {
		return err
	}
	p.loaded("messageRequestMode.json", b.modes.Loaded())
	b.saving(p, "topics", b.topics.Run)
	b.saving(p, "groups", b.groups.Run)
	b.saving(p, "offsets", b.offsets.Run)
	p.stack.Add("clients", b.clients.Run)
	return nil
}

// saving adds the floor of a register that saves its document now and then.
func (b *broker) saving(p *parts, what string, run func(context.Context, func(error)) error) {
	p.stack.Add(what, func(ctx context.Context) error {
		return run(ctx, func(err error) { p.log.Error("save "+what+", will be tried again", "error", err) })
	})
}

// restoreTopics makes the topics that the generation of topics.json before the
// last does not know and that have queues in the store: otherwise nobody could
// read their messages.
func (b *broker) restoreTopics(p *parts) {
	queues := map[string]int32{}
	b.store.Queues(func(key mq.QueueKey, lo, hi mq.QueueOffset) {
		if lo < hi {
			queues[key.Topic] = max(queues[key.Topic], int32(key.ID)+1)
		}
	})
	for topic, n := range queues {
		if b.topics.Restore(topic, n) {
			p.log.Warn("topic is made anew from its queues: look at its permissions and number of queues", "topic", topic, "queues", n)
		}
	}
}

func (b *broker) openFlows(p *parts) (err error) {
	locked := func(group string) bool { return b.clients.Locked(group, time.Now()) }
	if b.announcer, err = announce.New(b.cfg.Announce, b.topics); err != nil {
		return err
	}
	if b.fetch, err = fetch.New(b.cfg.Fetch, b.store, b.topics, b.groups, b.clients, b.offsets); err != nil {
		return err
	}
	b.cfg.Redeliver.Stored = b.stats.Back
	if b.redeliver, err = redeliver.New(b.cfg.Redeliver, b.store, b.topics, b.groups, b.rules, locked); err != nil {
		return err
	}
	if err = b.openTxn(p); err != nil {
		return err
	}
	if b.produce, err = produce.New(b.cfg.Produce, b.store, b.topics, b.rules, b.redeliver, b.txn, b.told); err != nil {
		return err
	}
	b.serving()
	p.stack.Add("pulls", b.fetch.Run)
	p.stack.Add("delays", b.delay.Run)
	p.stack.Add("transactions", b.txn.Run)
	return nil
}

// openTxn continues the transactions that the store holds open.
func (b *broker) openTxn(p *parts) (err error) {
	counts, err := txn.OpenMetrics(p.fs, filepath.Join(p.cfg.Dir, "config"), p.log)
	if err != nil {
		return err
	}
	if b.txn, err = txn.Open(b.txnPrior, txn.Parts{
		Store: b.store, Topics: b.topics, Offsets: b.offsets, Producers: b.clients, Delay: b.rules, Ask: brokerapi.AskProducer(b.cfg.Name),
	}, counts, b.cfg.Txn); err != nil {
		return err
	}
	b.txnPrior = nil
	b.store.Pin("open transactions", b.txn.Pin)
	return nil
}

// told returns when the name servers know all topics; its only error is ctx's.
func (b *broker) told(ctx context.Context) { _ = b.announcer.Told(ctx) }

func (b *broker) openAPI(p *parts) (err error) {
	if b.api, err = brokerapi.New(b.cfg.API, brokerapi.Parts{
		Store: b.store, Produce: b.produce, Fetch: b.fetch, Redeliver: b.redeliver,
		Topics: b.topics, Groups: b.groups, Offsets: b.offsets, Clients: b.clients, Modes: b.modes, Stats: b.stats, Txn: b.txn, Delay: b.delay,
		Announced: b.told, Route: b.announcer.Route, SetPerm: b.announcer.SetPerm, FS: p.fs, Dir: filepath.Join(p.cfg.Dir, "sundial"), Metrics: p.metrics,
	}); err != nil {
		return err
	}
	table := b.api.Table()
	serve := func(name string, d *door) error {
		cfg := b.cfg.Server
		cfg.Name, cfg.OnStop = name, b.fetch.StopWaiting
		s, err := server.New(cfg, table)
		if err != nil {
			return err
		}
		p.stack.Add(name+" port", func(ctx context.Context) error { return s.Serve(ctx, d.ln) })
		return nil
	}
	if b.fast != nil {
		if err := serve("fast", b.fast); err != nil {
			return err
		}
	}
	if err := serve("broker", b.ln); err != nil {
		return err
	}
	// On top, so that the name servers send nobody here any more before the ports
	// close.
	p.stack.Add("announcements", b.announcer.Run)
	return nil
}
