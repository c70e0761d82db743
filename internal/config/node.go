package config

import (
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/nameapi"
	"github.com/sundial-mq/sundial/internal/node"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// Node is the configuration of a node with these settings and roles.
func (s *Settings) Node(roles node.Roles) node.Config {
	c := node.DefaultConfig()
	c.Roles = roles
	c.Dir = s.StorePathRootDir
	c.Bind = s.BindAddress

	n := &c.NameServer
	n.Port = s.NamesrvListenPort
	n.API.Settings = nameapi.Settings{
		OrderMessages: s.OrderMessageEnable, ReturnOrder: s.ReturnOrderTopicConfig,
		AllTopicList: s.EnableAllTopicList, TopicList: s.EnableTopicList,
		ActingMaster: s.SupportActingMaster, NotifyMinID: s.NotifyMinBrokerIDChanged,
		Wait: s.NeedWaitForService, WarmUp: s.WaitSecondsForService, Scan: s.ScanNotActiveBrokerInterval,
	}
	n.API.Properties = map[string]string{
		"bindAddress": s.BindAddress, "listenPort": strconv.Itoa(s.NamesrvListenPort), "namesrvListenPort": strconv.Itoa(s.NamesrvListenPort),
		"configStorePath":                 filepath.Join(s.StorePathRootDir, "namesrv", "liveConfig.json"),
		"kvConfigPath":                    filepath.Join(s.StorePathRootDir, "namesrv", "kvConfig.json"),
		"serverChannelMaxIdleTimeSeconds": s.texts["serverChannelMaxIdleTimeSeconds"],
	}

	b := &c.Broker
	b.Cluster, b.Name, b.ID = s.BrokerClusterName, s.BrokerName, s.BrokerID
	b.Port, b.FastPort, b.Advertise = s.ListenPort, s.FastListenPort, s.BrokerIP1
	b.NameServers = s.NamesrvAddr
	b.Perm = mq.Perm(s.BrokerPermission)
	b.IgnorePending = s.IgnorePending
	b.DelayLevels = s.MessageDelayLevel
	b.Delay.FlushInterval = s.FlushDelayOffsetInterval
	b.Txn.Timeout, b.Txn.Interval, b.Txn.MaxChecks = s.TransactionTimeOut, s.TransactionCheckInterval, s.TransactionCheckMax
	b.Txn.MaxAge, b.Txn.Window = s.TransactionMaxAge, s.MaxUnansweredChecks
	b.Txn.MarkBytes, b.Txn.MarkInterval = s.TransactionOpMsgMaxSize, s.TransactionOpBatchInterval
	b.Produce.RejectTransactions, b.API.Txn.Queue = s.RejectTransactionMessage, s.EndTransactionQueue
	s.store(b)

	b.Topics.AutoCreate = s.AutoCreateTopicEnable
	b.Topics.DefaultQueues = s.DefaultTopicQueueNums
	b.Topics.ClusterTopic, b.Topics.BrokerTopic = s.ClusterTopicEnable, s.BrokerTopicEnable
	b.Topics.TraceTopic, b.Topics.TraceName = s.TraceTopicEnable, s.MsgTraceTopicName
	b.Topics.ReviveQueues = s.ReviveQueueNum
	b.Topics.Timer = s.TimerWheelEnable
	b.Delay.Clock.Limit, b.Delay.Clock.Hold = s.ClockStepLimit, s.ClockStepHold
	b.Delay.Timers.Enabled, b.Delay.Timers.MaxDelay, b.Delay.Timers.Precision = s.TimerWheelEnable, s.TimerMaxDelay, s.TimerPrecision.Milliseconds()
	b.Groups.AutoCreate, b.Groups.MaxGroups = s.AutoCreateSubscriptionGroup, s.MaxAutoCreatedGroups
	b.Offsets.Interval = s.FlushConsumerOffsetInterval
	b.Offsets.VersionStep = s.ConsumerOffsetVersionStep
	b.Clients.Expiry, b.Clients.MaxGroups = s.ChannelExpiredTimeout, s.MaxGroupsPerConnection

	b.Produce.Region, b.Produce.TraceOn = s.RegionID, s.TraceOn
	b.Produce.MaxBody = s.MaxMessageSize
	b.Produce.SyncFlushTimeout = s.SyncFlushTimeout
	b.Produce.AcceptFrom = s.StartAcceptSendRequestTimeMs
	b.Redeliver.SyncFlushTimeout = s.SyncFlushTimeout
	b.API.Region, b.API.TraceOn = s.RegionID, s.TraceOn
	b.API.StoreReplies = s.StoreReplyMessageEnable
	b.API.YoungBytes = s.YoungQueueBytes

	b.Fetch.LitePull = s.LitePullMessageEnable
	b.Fetch.LongPolling, b.Fetch.ShortPolling = s.LongPollingEnable, s.ShortPollingTimeMills
	b.Fetch.MaxSuspend = s.MaxPullSuspendTime
	b.Fetch.MaxMessages, b.Fetch.MaxBytes = s.MaxTransferCountInMemory, s.MaxTransferBytesInMemory
	b.Fetch.MaxScan = s.MaxScanPerPull
	b.Fetch.MaxParked, b.Fetch.MaxParkedPerQueue = s.MaxParkedPulls, s.MaxParkedPullsPerQueue
	b.Fetch.PropertyFilter = s.EnablePropertyFilter
	b.Fetch.RejectUnknown = s.RejectPullConsumerEnable

	b.Announce.ByDNS, b.Announce.UseAddressServer = s.FetchNameSrvAddrByDNS, s.FetchNamesrvAddrByServer
	b.Announce.AddressServer, b.Announce.LookupPeriod = s.NamesrvAddressServer, s.FetchNamesrvAddrInterval
	b.Announce.Period, b.Announce.Timeout = s.RegisterNameServerPeriod, s.RegisterBrokerTimeoutMills
	s.server(&n.Server)
	s.server(&b.Server)

	for _, e := range s.Effective() {
		b.API.Properties = append(b.API.Properties, [2]string{e.Key, e.Value})
	}
	b.API.Properties = append(b.API.Properties, fixed()...)
	return c
}

// fixed are settings of RocketMQ that have one value here and that its tools ask
// the broker for: exportConfigs prints the first three, exportMetrics takes the
// last as the number of processors.
func fixed() [][2]string {
	return [][2]string{
		{"brokerRole", "ASYNC_MASTER"}, {"slaveReadEnable", "false"}, {"useTLS", "false"},
		{"clientCallbackExecutorThreads", strconv.Itoa(runtime.NumCPU())},
	}
}

func (s *Settings) store(b *node.BrokerConfig) {
	st := &b.Store
	st.LogDirs = s.StorePathCommitLog
	st.LogFileSize, st.QueueFileSize = s.MappedFileSizeCommitLog, s.MappedFileSizeConsumeQueue
	st.Index, st.IndexSlots, st.IndexEntries = s.MessageIndexEnable, s.MaxHashSlotNum, s.MaxIndexNum
	st.MaxMessage, st.LongTopics = s.MaxMessageSize, s.AutoMessageVersionOnTopicLen
	st.CRCTail, st.CheckCRC, st.CheckPropertyCRC = s.EnabledAppendPropCRC, s.CheckCRCOnRecover, s.ForceVerifyPropCRC
	st.SyncFlush = s.SyncFlush()
	st.FlushInterval, st.QueueFlushInterval = s.FlushIntervalCommitLog, s.FlushIntervalConsumeQueue
	st.QueueSyncInterval, st.QueueSyncBytes = s.QueueSyncInterval, s.QueueSyncSize
	st.Prefault, st.Reserve = s.PrefaultSize, s.DeliveryReserveSize
	st.AcceptDamage = s.AcceptDamage

	e := &st.Expiry
	e.Reserved, e.Hours = s.FileReservedTime, s.DeleteWhen
	e.Interval, e.FilePause, e.Batch = s.CleanResourceInterval, s.DeleteCommitLogFilesInterval, s.DeleteFileBatchMax
	e.ForceAfter = s.DestroyMapedFileIntervalForce
	e.MaxUsed, e.Forced, e.Warning = s.DiskMaxUsedSpaceRatio, s.DiskSpaceCleanForciblyRatio, s.DiskSpaceWarningLevelRatio
	e.Forcibly, e.RefuseAtForced = s.CleanFileForciblyEnable, s.RefuseSendsAtForcedLevel
	e.GuardInterval = s.DiskGuardInterval
}

func (s *Settings) server(c *server.Config) {
	c.IdleTimeout = s.ServerChannelMaxIdleTime
	c.MaxConns = s.MaxConnections
	c.MaxInFlight = s.MaxRequestsPerConnection
	c.MaxOut = s.MaxUnsentPerConnection
	c.Grace = s.ShutdownGrace
}
