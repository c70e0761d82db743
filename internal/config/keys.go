package config

// Use is what Sundial does with a key.
type Use uint8

// Uses of a key.
const (
	Used     Use = iota // its value is in Settings
	Accepted            // read and checked, but not needed
	Refused             // only the default is accepted: what other values ask for is not there
)

// Type is what a value looks like.
type Type uint8

// Types of values.
const (
	Bool Type = iota
	Int32
	Int64
	Float
	Text
	Port
	Choice   // one of Values
	Hours    // hours of the day, separated by ;
	Paths    // directories, separated by ,
	Address  // an IP address
	Peers    // host:port, separated by ;
	Words    // some of Values, separated by ,
	Levels   // delay levels such as "1s 5m 2h 1d"
	TextFull // text that must not be empty
	Path     // one directory
)

// Key is one line of the table.
type Key struct {
	Name    string
	Type    Type
	Default string // empty: none, or found out at start (then Doc says how)
	Use     Use
	Unit    string // of numbers: ms, s, h, bytes, %
	Min     int64  // of numbers
	Max     int64
	Values  []string
	Doc     string // what it does; for keys that are not used, why not
	Java    string // RocketMQ's default where Sundial's is another; "-": RocketMQ has no such key
	Section string

	field func(*Settings) any // where the value goes; nil unless Used
}

// Own reports whether RocketMQ does not have the key.
func (k *Key) Own() bool { return k.Java == "-" }

const (
	maxInt32 = 1<<31 - 1
	maxInt64 = 1<<63 - 1
	anyTime  = 1 << 40 // ms: 34 years, far from overflow in nanoseconds
)

// keys is the table: what is used, in the order of docs/CONFIG.md, then what is
// refused, then what is accepted.
var keys = append(append(used, refused...), accepted()...)

var used = []Key{
	{Section: "Who and where", Name: "brokerClusterName", Type: TextFull, Default: "DefaultCluster",
		Doc:   "The cluster that the broker belongs to. Clients see it in routes; a topic of that name is made.",
		field: func(s *Settings) any { return &s.BrokerClusterName }},
	{Section: "Who and where", Name: "brokerName", Type: TextFull,
		Doc:   "The broker's name, by which clients address its queues. By default the host's name, and with --port-offset N and no configuration file -N behind it. Do not change it on a store in use: consumers know their progress by it.",
		field: func(s *Settings) any { return &s.BrokerName }},
	{Section: "Who and where", Name: "brokerId", Type: Int64, Default: "0", Min: 0, Max: 0,
		Doc:   "0 is a master. Other numbers are replicas of one, which are not there yet.",
		field: func(s *Settings) any { return &s.BrokerID }},
	{Section: "Who and where", Name: "brokerIP1", Type: Text,
		Doc:   "The address that clients are told, an IP address or a name. By default the one bound to, or the machine's first that is not loopback when bound to all.",
		field: func(s *Settings) any { return &s.BrokerIP1 }},
	{Section: "Who and where", Name: "bindAddress", Type: Address,
		Doc:   "The address that listeners bind to. By default all (0.0.0.0) with a configuration file, as in RocketMQ, and 127.0.0.1 without one.",
		field: func(s *Settings) any { return &s.BindAddress }},
	{Section: "Who and where", Name: "listenPort", Type: Port, Default: "10911",
		Doc:   "The broker's port; 0 is any free one. In the file of a node that is name server only, the name server's port.",
		field: func(s *Settings) any { return &s.ListenPort }},
	{Section: "Who and where", Name: "fastListenPort", Type: Port, Min: -1,
		Doc:   "A second port with the same service, which old clients prefer. By default listenPort - 2; -1 is none.",
		field: func(s *Settings) any { return &s.FastListenPort }},
	{Section: "Who and where", Name: "namesrvAddr", Type: Peers,
		Doc:   "The name servers to register with, host:port, separated by semicolons. By default the environment's NAMESRV_ADDR; a node that is name server too registers with itself when there is none.",
		field: func(s *Settings) any { return &s.NamesrvAddr }},
	{Section: "Who and where", Name: "registerNameServerPeriod", Type: Int32, Default: "30000", Unit: "ms", Min: 10000, Max: 60000,
		Doc:   "How often the broker tells the name servers that it is there.",
		field: func(s *Settings) any { return &s.RegisterNameServerPeriod }},
	{Section: "Who and where", Name: "registerBrokerTimeoutMills", Type: Int32, Default: "24000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How long a name server may take to answer a registration.",
		field: func(s *Settings) any { return &s.RegisterBrokerTimeoutMills }},

	{Section: "Name server", Name: "namesrvListenPort", Type: Port, Default: "9876", Java: "-",
		Doc:   "The name server's port in a node that is broker too; 0 is any free one.",
		field: func(s *Settings) any { return &s.NamesrvListenPort }},
	{Section: "Name server", Name: "needWaitForService", Type: Bool, Default: "true", Java: "false",
		Doc:   "After its start, and until a broker has registered, the name server says that it does not know yet instead of that a topic does not exist.",
		field: func(s *Settings) any { return &s.NeedWaitForService }},
	{Section: "Name server", Name: "waitSecondsForService", Type: Int32, Default: "45", Unit: "s", Min: 0, Max: 86400,
		Doc:   "For how long needWaitForService holds.",
		field: func(s *Settings) any { return &s.WaitSecondsForService }},
	{Section: "Name server", Name: "scanNotActiveBrokerInterval", Type: Int64, Default: "5000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How often the name server looks for brokers that have fallen silent.",
		field: func(s *Settings) any { return &s.ScanNotActiveBrokerInterval }},
	{Section: "Name server", Name: "orderMessageEnable", Type: Bool, Default: "false",
		Doc:   "Adds the settings of ordered topics, which the tools keep in the name server, to routes.",
		field: func(s *Settings) any { return &s.OrderMessageEnable }},
	{Section: "Name server", Name: "returnOrderTopicConfigToBroker", Type: Bool, Default: "true",
		Doc:   "Adds them to what a broker is answered when it registers.",
		field: func(s *Settings) any { return &s.ReturnOrderTopicConfig }},
	{Section: "Name server", Name: "enableAllTopicList", Type: Bool, Default: "true",
		Doc:   "Answers who asks the name server for the list of all topics.",
		field: func(s *Settings) any { return &s.EnableAllTopicList }},
	{Section: "Name server", Name: "enableTopicList", Type: Bool, Default: "true",
		Doc:   "Answers who asks the name server for other lists of topics: of a cluster, of the system, of units.",
		field: func(s *Settings) any { return &s.EnableTopicList }},
	{Section: "Name server", Name: "supportActingMaster", Type: Bool, Default: "false",
		Doc:   "Shows clients the first slave of a group of RocketMQ brokers as its master while the master is gone, to read from, if the brokers say enableSlaveActingMaster.",
		field: func(s *Settings) any { return &s.SupportActingMaster }},
	{Section: "Name server", Name: "notifyMinBrokerIdChanged", Type: Bool, Default: "false",
		Doc:   "Tells the brokers of a group when another of them has the lowest id.",
		field: func(s *Settings) any { return &s.NotifyMinBrokerIDChanged }},

	{Section: "Store", Name: "storePathRootDir", Type: Path,
		Doc:   "The directory of everything on disk. By default ./sundial-data without a configuration file, and ~/store with one, as in RocketMQ. A directory that RocketMQ made can be opened.",
		field: func(s *Settings) any { return &s.StorePathRootDir }},
	{Section: "Store", Name: "storePathCommitLog", Type: Paths,
		Doc:   "Where the commit log lies, one directory or several separated by commas. By default commitlog in storePathRootDir.",
		field: func(s *Settings) any { return &s.StorePathCommitLog }},
	{Section: "Store", Name: "mappedFileSizeCommitLog", Type: Int32, Default: "1073741824", Unit: "bytes", Min: 4096, Max: maxInt32,
		Doc:   "The size of a commit log file. A store must be opened with the size it was made with.",
		field: func(s *Settings) any { return &s.MappedFileSizeCommitLog }},
	{Section: "Store", Name: "mappedFileSizeConsumeQueue", Type: Int32, Default: "6000000", Unit: "bytes", Min: 20, Max: maxInt32,
		Doc:   "The size of a consume queue file, rounded up to a multiple of 20. A store must be opened with the size it was made with.",
		field: func(s *Settings) any { return &s.MappedFileSizeConsumeQueue }},
	{Section: "Store", Name: "maxMessageSize", Type: Int32, Default: "4194304", Unit: "bytes", Min: 10, Max: 15 << 20,
		Doc:   "The largest body of a message, and of a whole batch.",
		field: func(s *Settings) any { return &s.MaxMessageSize }},
	{Section: "Store", Name: "autoMessageVersionOnTopicLen", Type: Bool, Default: "true",
		Doc:   "Stores messages of topics with more than 127 bytes, which only retry topics have, in the second version of the record.",
		field: func(s *Settings) any { return &s.AutoMessageVersionOnTopicLen }},
	{Section: "Store", Name: "flushDiskType", Type: Choice, Default: "ASYNC_FLUSH", Values: []string{"ASYNC_FLUSH", "SYNC_FLUSH"},
		Doc:   "SYNC_FLUSH answers a send when it is durable. ASYNC_FLUSH answers at once: a power failure may take what was sent in the last flushIntervalCommitLog; the end of the process takes nothing.",
		field: func(s *Settings) any { return &s.FlushDiskType }},
	{Section: "Store", Name: "flushIntervalCommitLog", Type: Int32, Default: "500", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How long a message may stay volatile with ASYNC_FLUSH.",
		field: func(s *Settings) any { return &s.FlushIntervalCommitLog }},
	{Section: "Store", Name: "flushIntervalConsumeQueue", Type: Int32, Default: "1000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How often the queue entries of durable messages are written to their files.",
		field: func(s *Settings) any { return &s.FlushIntervalConsumeQueue }},
	{Section: "Store", Name: "syncFlushTimeout", Type: Int32, Default: "5000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How long a send waits for the disk with SYNC_FLUSH. After that it is answered FLUSH_DISK_TIMEOUT: stored, not known durable.",
		field: func(s *Settings) any { return &s.SyncFlushTimeout }},
	{Section: "Store", Name: "checkCRCOnRecover", Type: Bool, Default: "true",
		Doc:   "Checks bodies against their checksums when the end of the log is recovered after a crash.",
		field: func(s *Settings) any { return &s.CheckCRCOnRecover }},
	{Section: "Store", Name: "enabledAppendPropCRC", Type: Bool, Default: "false",
		Doc:   "Writes RocketMQ's checksum over the whole record as a last property.",
		field: func(s *Settings) any { return &s.EnabledAppendPropCRC }},
	{Section: "Store", Name: "forceVerifyPropCRC", Type: Bool, Default: "false",
		Doc:   "Checks that checksum, where there is one, when the end of the log is recovered.",
		field: func(s *Settings) any { return &s.ForceVerifyPropCRC }},
	{Section: "Store", Name: "messageIndexEnable", Type: Bool, Default: "true",
		Doc:   "Keeps the index by which messages are found by key.",
		field: func(s *Settings) any { return &s.MessageIndexEnable }},
	{Section: "Store", Name: "maxHashSlotNum", Type: Int32, Default: "5000000", Min: 1, Max: 100_000_000,
		Doc:   "The number of hash slots in an index file, 4 bytes each. A store must be opened with the number it was made with.",
		field: func(s *Settings) any { return &s.MaxHashSlotNum }},
	{Section: "Store", Name: "maxIndexNum", Type: Int32, Default: "20000000", Min: 2, Max: 100_000_000,
		Doc:   "The number of entries in an index file, 20 bytes each; likewise.",
		field: func(s *Settings) any { return &s.MaxIndexNum }},
	{Section: "Store", Name: "flushConsumerOffsetInterval", Type: Int32, Default: "5000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How often the progress of consumer groups is saved. After a crash they may receive again what they consumed since.",
		field: func(s *Settings) any { return &s.FlushConsumerOffsetInterval }},
	{Section: "Store", Name: "consumerOffsetUpdateVersionStep", Type: Int64, Default: "500", Min: 1, Max: maxInt64,
		Doc:   "After how many commits of progress its data version steps.",
		field: func(s *Settings) any { return &s.ConsumerOffsetVersionStep }},
	{Section: "Store", Name: "flushDelayOffsetInterval", Type: Int64, Default: "10000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How often the progress of delayed deliveries is saved. It bounds the work of a start after a crash, nothing is delivered twice.",
		field: func(s *Settings) any { return &s.FlushDelayOffsetInterval }},
	{Section: "Store", Name: "queueSyncInterval", Type: Int64, Default: "10000", Unit: "ms", Min: 1, Max: anyTime, Java: "-",
		Doc:   "How often consume queues are made durable. It bounds what a start after a crash has to read.",
		field: func(s *Settings) any { return &s.QueueSyncInterval }},
	{Section: "Store", Name: "queueSyncSize", Type: Int64, Default: "268435456", Unit: "bytes", Min: 1 << 20, Max: maxInt64, Java: "-",
		Doc:   "The same in bytes of log; whichever comes first.",
		field: func(s *Settings) any { return &s.QueueSyncSize }},
	{Section: "Store", Name: "prefaultSize", Type: Int64, Default: "33554432", Unit: "bytes", Min: 0, Max: 1 << 30, Java: "-",
		Doc:   "How far ahead of the end of the log memory is made ready, so that appends meet no page fault; 0 is off.",
		field: func(s *Settings) any { return &s.PrefaultSize }},
	{Section: "Store", Name: "ignorePending", Type: Words, Values: []string{"timer", "transaction", "pop"}, Java: "-",
		Doc:   "Kinds of pending work that may lie unserved in a store taken over from RocketMQ: timer, transaction, pop, separated by commas. Without it such a store is refused with the counts.",
		field: func(s *Settings) any { return &s.IgnorePending }},
	{Section: "Store", Name: "acceptDamage", Type: Bool, Default: "false", Java: "-",
		Doc:   "Opens a store whose log is damaged where it was known to be durable, and lives with what is left.",
		field: func(s *Settings) any { return &s.AcceptDamage }},

	{Section: "Letting go", Name: "fileReservedTime", Type: Int32, Default: "72", Unit: "h", Min: 1, Max: 24 * 365 * 100,
		Doc:   "How long a commit log file is kept after its last change.",
		field: func(s *Settings) any { return &s.FileReservedTime }},
	{Section: "Letting go", Name: "deleteWhen", Type: Hours, Default: "04",
		Doc:   "The hours of the day in which expired files are deleted, separated by semicolons.",
		field: func(s *Settings) any { return &s.DeleteWhen }},
	{Section: "Letting go", Name: "cleanResourceInterval", Type: Int32, Default: "10000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How often to look for files to delete.",
		field: func(s *Settings) any { return &s.CleanResourceInterval }},
	{Section: "Letting go", Name: "deleteCommitLogFilesInterval", Type: Int32, Default: "100", Unit: "ms", Min: 0, Max: anyTime,
		Doc:   "The pause between two deletions, which spares the disk.",
		field: func(s *Settings) any { return &s.DeleteCommitLogFilesInterval }},
	{Section: "Letting go", Name: "deleteFileBatchMax", Type: Int32, Default: "10", Min: 1, Max: maxInt32,
		Doc:   "How many files go at most in one look.",
		field: func(s *Settings) any { return &s.DeleteFileBatchMax }},
	{Section: "Letting go", Name: "destroyMapedFileIntervalForcibly", Type: Int32, Default: "120000", Unit: "ms", Min: 0, Max: anyTime,
		Doc:   "How long a file to delete waits for its readers.",
		field: func(s *Settings) any { return &s.DestroyMapedFileIntervalForce }},
	{Section: "Letting go", Name: "diskMaxUsedSpaceRatio", Type: Int32, Default: "75", Unit: "%", Min: 10, Max: 95,
		Doc:   "How full the disk may be before expired files go at any hour.",
		field: func(s *Settings) any { return &s.DiskMaxUsedSpaceRatio }},
	{Section: "Letting go", Name: "diskSpaceCleanForciblyRatio", Type: Int32, Default: "85", Unit: "%", Min: 30, Max: 95,
		Doc:   "How full the disk may be before the oldest files go whatever their age (cleanFileForciblyEnable).",
		field: func(s *Settings) any { return &s.DiskSpaceCleanForciblyRatio }},
	{Section: "Letting go", Name: "diskSpaceWarningLevelRatio", Type: Int32, Default: "90", Unit: "%", Min: 35, Max: 99,
		Doc:   "How full the disk may be before sends are refused. They resume by themselves.",
		field: func(s *Settings) any { return &s.DiskSpaceWarningLevelRatio }},
	{Section: "Letting go", Name: "cleanFileForciblyEnable", Type: Bool, Default: "true",
		Doc:   "Allows deleting files before their time when the disk is full to diskSpaceCleanForciblyRatio. Files with pending delayed messages stay.",
		field: func(s *Settings) any { return &s.CleanFileForciblyEnable }},
	{Section: "Letting go", Name: "refuseSendsAtForcedLevel", Type: Bool, Default: "false", Java: "-",
		Doc:   "Refuses sends at diskSpaceCleanForciblyRatio instead of deleting files before their time.",
		field: func(s *Settings) any { return &s.RefuseSendsAtForcedLevel }},
	{Section: "Letting go", Name: "deliveryReserveSize", Type: Int64, Default: "67108864", Unit: "bytes", Min: 0, Max: 1 << 40, Java: "-",
		Doc:   "Room kept on disk so that messages that are pending can be delivered when it is full; 0 is none.",
		field: func(s *Settings) any { return &s.DeliveryReserveSize }},
	{Section: "Letting go", Name: "diskGuardInterval", Type: Int64, Default: "1000", Unit: "ms", Min: 10, Max: anyTime, Java: "-",
		Doc:   "How often to look how full the disk is.",
		field: func(s *Settings) any { return &s.DiskGuardInterval }},

	{Section: "Topics and groups", Name: "brokerPermission", Type: Int32, Default: "6", Min: 0, Max: 7,
		Doc:   "What clients may do on this broker: 2 write, 4 read, 6 both.",
		field: func(s *Settings) any { return &s.BrokerPermission }},
	{Section: "Topics and groups", Name: "autoCreateTopicEnable", Type: Bool, Default: "true",
		Doc:   "Makes a topic when somebody sends to a name that is not there.",
		field: func(s *Settings) any { return &s.AutoCreateTopicEnable }},
	{Section: "Topics and groups", Name: "autoCreateSubscriptionGroup", Type: Bool, Default: "true",
		Doc:   "Makes a consumer group when somebody consumes with a name that is not there.",
		field: func(s *Settings) any { return &s.AutoCreateSubscriptionGroup }},
	{Section: "Topics and groups", Name: "maxAutoCreatedGroups", Type: Int64, Default: "20000", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many consumer groups there may be for autoCreateSubscriptionGroup to make another, with its retry topic. Groups that exist are served, and administrators may make more.",
		field: func(s *Settings) any { return &s.MaxAutoCreatedGroups }},
	{Section: "Topics and groups", Name: "defaultTopicQueueNums", Type: Int32, Default: "8", Min: 1, Max: 65536,
		Doc:   "The most queues that a topic made by itself gets; the sender's wish, usually 4, counts below that.",
		field: func(s *Settings) any { return &s.DefaultTopicQueueNums }},
	{Section: "Topics and groups", Name: "clusterTopicEnable", Type: Bool, Default: "true",
		Doc:   "Lets clients read and write the topic named after the cluster.",
		field: func(s *Settings) any { return &s.ClusterTopicEnable }},
	{Section: "Topics and groups", Name: "brokerTopicEnable", Type: Bool, Default: "true",
		Doc:   "Lets clients read and write the topic named after the broker.",
		field: func(s *Settings) any { return &s.BrokerTopicEnable }},
	{Section: "Topics and groups", Name: "traceTopicEnable", Type: Bool, Default: "false",
		Doc:   "Makes the topic into which clients write their traces.",
		field: func(s *Settings) any { return &s.TraceTopicEnable }},
	{Section: "Topics and groups", Name: "msgTraceTopicName", Type: TextFull, Default: "RMQ_SYS_TRACE_TOPIC",
		Doc:   "The name of that topic.",
		field: func(s *Settings) any { return &s.MsgTraceTopicName }},
	{Section: "Topics and groups", Name: "reviveQueueNum", Type: Int32, Default: "8", Min: 1, Max: 65536,
		Doc:   "The number of queues of the topic that POP will use.",
		field: func(s *Settings) any { return &s.ReviveQueueNum }},
	{Section: "Topics and groups", Name: "timerWheelEnable", Type: Bool, Default: "true",
		Doc:   "Makes the topic of messages with arbitrary delays, which are not served yet.",
		field: func(s *Settings) any { return &s.TimerWheelEnable }},
	{Section: "Topics and groups", Name: "channelExpiredTimeout", Type: Int64, Default: "120000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How long a client counts as there without a heartbeat.",
		field: func(s *Settings) any { return &s.ChannelExpiredTimeout }},

	{Section: "Sending", Name: "messageDelayLevel", Type: Levels, Default: "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
		Doc:   "The delays of levels 1, 2, …: numbers with s, m, h or d. Messages that are pending keep the delay they were sent with.",
		field: func(s *Settings) any { return &s.MessageDelayLevel }},
	{Section: "Sending", Name: "startAcceptSendRequestTimeStamp", Type: Int64, Default: "0", Unit: "ms", Min: 0, Max: maxInt64,
		Doc:   "Refuses sends before that time, in ms since 1970; 0 is off.",
		field: func(s *Settings) any { return &s.StartAcceptSendRequestTimeMs }},
	{Section: "Sending", Name: "regionId", Type: Text, Default: "DefaultRegion",
		Doc:   "Written into every message (MSG_REGION).",
		field: func(s *Settings) any { return &s.RegionID }},
	{Section: "Sending", Name: "traceOn", Type: Bool, Default: "true",
		Doc:   "Tells clients that they may trace (TRACE_ON).",
		field: func(s *Settings) any { return &s.TraceOn }},
	{Section: "Sending", Name: "storeReplyMessageEnable", Type: Bool, Default: "true",
		Doc:   "Stores replies to requests in the topic CLUSTER_REPLY_TOPIC, besides handing them to the requester.",
		field: func(s *Settings) any { return &s.StoreReplyMessageEnable }},

	{Section: "Receiving", Name: "longPollingEnable", Type: Bool, Default: "true",
		Doc:   "Lets a pull that finds nothing wait as long as it asks for.",
		field: func(s *Settings) any { return &s.LongPollingEnable }},
	{Section: "Receiving", Name: "shortPollingTimeMills", Type: Int64, Default: "1000", Unit: "ms", Min: 1, Max: anyTime,
		Doc:   "How long it waits at most without longPollingEnable.",
		field: func(s *Settings) any { return &s.ShortPollingTimeMills }},
	{Section: "Receiving", Name: "maxPullSuspendTime", Type: Int64, Default: "300000", Unit: "ms", Min: 1, Max: anyTime, Java: "-",
		Doc:   "How long a pull may wait, whatever it asks for.",
		field: func(s *Settings) any { return &s.MaxPullSuspendTime }},
	{Section: "Receiving", Name: "litePullMessageEnable", Type: Bool, Default: "true",
		Doc:   "Serves lite pull consumers.",
		field: func(s *Settings) any { return &s.LitePullMessageEnable }},
	{Section: "Receiving", Name: "enablePropertyFilter", Type: Bool, Default: "true", Java: "false",
		Doc:   "Serves filters on properties (SQL92). false refuses them, as RocketMQ does by default.",
		field: func(s *Settings) any { return &s.EnablePropertyFilter }},
	{Section: "Receiving", Name: "rejectPullConsumerEnable", Type: Bool, Default: "false",
		Doc:   "Refuses pulls of groups of which no consumer has sent a heartbeat.",
		field: func(s *Settings) any { return &s.RejectPullConsumerEnable }},
	{Section: "Receiving", Name: "youngQueueBytes", Type: Int64, Default: "0", Unit: "bytes", Min: 0, Max: maxInt64, Java: "-",
		Doc:   "Where a new consumer group begins. 0: where it asked to (the end, the start, a time). Above: with the first message of a queue, whatever it asked for, while that message is not farther than this from the end of the log; RocketMQ does so within 40 % of the memory.",
		field: func(s *Settings) any { return &s.YoungQueueBytes }},
	{Section: "Receiving", Name: "maxTransferBytesOnMessageInMemory", Type: Int32, Default: "262144", Unit: "bytes", Min: 1, Max: 15 << 20,
		Doc:   "How many bytes one pull gets at most; its first message comes along whatever its size.",
		field: func(s *Settings) any { return &s.MaxTransferBytesInMemory }},
	{Section: "Receiving", Name: "maxTransferCountOnMessageInMemory", Type: Int32, Default: "32", Min: 1, Max: 1 << 20,
		Doc:   "How many messages one pull gets at most.",
		field: func(s *Settings) any { return &s.MaxTransferCountInMemory }},
	{Section: "Receiving", Name: "maxScanPerPull", Type: Int64, Default: "800", Min: 1, Max: 1 << 20, Java: "-",
		Doc:   "How many queue entries one pull looks at for messages that pass its filter.",
		field: func(s *Settings) any { return &s.MaxScanPerPull }},
	{Section: "Receiving", Name: "maxParkedPulls", Type: Int64, Default: "200000", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many pulls may wait on the broker; more are answered as busy.",
		field: func(s *Settings) any { return &s.MaxParkedPulls }},
	{Section: "Receiving", Name: "maxParkedPullsPerQueue", Type: Int64, Default: "20000", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many pulls may wait on one queue.",
		field: func(s *Settings) any { return &s.MaxParkedPullsPerQueue }},

	{Section: "Connections", Name: "serverChannelMaxIdleTimeSeconds", Type: Int32, Default: "120", Unit: "s", Min: 1, Max: 1 << 30,
		Doc:   "Closes a connection on which nothing was read or written for so long.",
		field: func(s *Settings) any { return &s.ServerChannelMaxIdleTime }},
	{Section: "Connections", Name: "maxConnections", Type: Int64, Default: "65536", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many connections a listener keeps at a time.",
		field: func(s *Settings) any { return &s.MaxConnections }},
	{Section: "Connections", Name: "maxRequestsPerConnection", Type: Int64, Default: "16384", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many requests of a connection may be unanswered, waiting pulls included; more are answered as busy.",
		field: func(s *Settings) any { return &s.MaxRequestsPerConnection }},
	{Section: "Connections", Name: "maxGroupsPerConnection", Type: Int64, Default: "1000", Min: 1, Max: maxInt32, Java: "-",
		Doc:   "How many producer and consumer groups a client may name in its heartbeats on a connection. More are left out; the answer says so.",
		field: func(s *Settings) any { return &s.MaxGroupsPerConnection }},
	{Section: "Connections", Name: "maxUnsentPerConnection", Type: Int64, Default: "67108864", Unit: "bytes", Min: 1 << 20, Max: maxInt32, Java: "-",
		Doc:   "How many bytes may wait to be read by a client before it is disconnected.",
		field: func(s *Settings) any { return &s.MaxUnsentPerConnection }},
	{Section: "Connections", Name: "shutdownGrace", Type: Int64, Default: "3000", Unit: "ms", Min: 0, Max: anyTime, Java: "-",
		Doc:   "How long a stop waits for answers that are under way.",
		field: func(s *Settings) any { return &s.ShutdownGrace }},
}
