package config

import "time"

// Settings are the values of all keys that Sundial uses, each field called as
// its key. What they mean, their units and ranges stand in the table (keys.go)
// and in docs/CONFIG.md. Begin with [Read] or [Load].
type Settings struct {
	// Who the broker is and where it is found.
	BrokerClusterName string
	BrokerName        string
	BrokerID          int64
	BrokerIP1         string // empty: the node looks for its own address
	BindAddress       string
	ListenPort        int
	FastListenPort    int // below 0: none
	NamesrvAddr       []string

	// How name servers are found without naming them one by one.
	FetchNameSrvAddrByDNS    bool // fetchNameSrvAddrByDnsLookup
	FetchNamesrvAddrByServer bool // fetchNamesrvAddrByAddressServer
	NamesrvAddressServer     string
	FetchNamesrvAddrInterval time.Duration

	// The name server.
	NamesrvListenPort           int
	NeedWaitForService          bool
	WaitSecondsForService       time.Duration
	ScanNotActiveBrokerInterval time.Duration
	OrderMessageEnable          bool
	ReturnOrderTopicConfig      bool // returnOrderTopicConfigToBroker
	EnableAllTopicList          bool
	EnableTopicList             bool
	SupportActingMaster         bool
	NotifyMinBrokerIDChanged    bool // notifyMinBrokerIdChanged

	// Files.
	StorePathRootDir              string
	StorePathCommitLog            []string // empty: commitlog in the root
	MappedFileSizeCommitLog       int64
	MappedFileSizeConsumeQueue    int64 // a multiple of 20
	MaxMessageSize                int
	AutoMessageVersionOnTopicLen  bool
	FlushDiskType                 string // ASYNC_FLUSH or SYNC_FLUSH
	FlushIntervalCommitLog        time.Duration
	FlushIntervalConsumeQueue     time.Duration
	SyncFlushTimeout              time.Duration
	CheckCRCOnRecover             bool
	EnabledAppendPropCRC          bool
	ForceVerifyPropCRC            bool
	MessageIndexEnable            bool
	MaxHashSlotNum                int
	MaxIndexNum                   int
	FlushConsumerOffsetInterval   time.Duration
	ConsumerOffsetVersionStep     int64 // consumerOffsetUpdateVersionStep
	FlushDelayOffsetInterval      time.Duration
	QueueSyncInterval             time.Duration
	QueueSyncSize                 int64
	PrefaultSize                  int64
	IgnorePending                 []string // kinds: pop
	AcceptDamage                  bool
	DeliveryReserveSize           int64
	FileReservedTime              time.Duration
	DeleteWhen                    []int // hours of the day
	CleanResourceInterval         time.Duration
	DeleteCommitLogFilesInterval  time.Duration
	DeleteFileBatchMax            int
	DestroyMapedFileIntervalForce time.Duration // destroyMapedFileIntervalForcibly
	DiskMaxUsedSpaceRatio         int
	DiskSpaceCleanForciblyRatio   int
	DiskSpaceWarningLevelRatio    int
	CleanFileForciblyEnable       bool
	RefuseSendsAtForcedLevel      bool
	DiskGuardInterval             time.Duration

	// Topics and groups.
	BrokerPermission             int32
	AutoCreateTopicEnable        bool
	AutoCreateSubscriptionGroup  bool
	MaxAutoCreatedGroups         int
	DefaultTopicQueueNums        int32
	ClusterTopicEnable           bool
	BrokerTopicEnable            bool
	TraceTopicEnable             bool
	MsgTraceTopicName            string
	ReviveQueueNum               int32
	TimerWheelEnable             bool
	TimerMaxDelay                time.Duration
	ClockStepLimit               time.Duration
	ClockStepHold                time.Duration
	TimerPrecision               time.Duration
	ChannelExpiredTimeout        time.Duration
	RegisterNameServerPeriod     time.Duration
	RegisterBrokerTimeoutMills   time.Duration
	StartAcceptSendRequestTimeMs int64 // startAcceptSendRequestTimeStamp
	MessageDelayLevel            string
	RejectTransactionMessage     bool
	TransactionTimeOut           time.Duration
	TransactionCheckInterval     time.Duration
	TransactionCheckMax          int
	TransactionMaxAge            time.Duration
	TransactionOpMsgMaxSize      int
	TransactionOpBatchInterval   time.Duration
	MaxUnansweredChecks          int
	EndTransactionQueue          int // endTransactionPoolQueueCapacity
	RegionID                     string
	TraceOn                      bool
	StoreReplyMessageEnable      bool
	LitePullMessageEnable        bool
	LongPollingEnable            bool
	ShortPollingTimeMills        time.Duration
	EnablePropertyFilter         bool
	RejectPullConsumerEnable     bool
	YoungQueueBytes              int64
	MaxTransferBytesInMemory     int // maxTransferBytesOnMessageInMemory
	MaxTransferCountInMemory     int // maxTransferCountOnMessageInMemory
	MaxPullSuspendTime           time.Duration
	MaxScanPerPull               int
	MaxParkedPulls               int
	MaxParkedPullsPerQueue       int
	ServerChannelMaxIdleTime     time.Duration // serverChannelMaxIdleTimeSeconds
	MaxConnections               int
	MaxRequestsPerConnection     int
	MaxGroupsPerConnection       int
	MaxUnsentPerConnection       int64
	ShutdownGrace                time.Duration

	// Warnings are sentences for whoever starts the node.
	Warnings []string

	texts   map[string]string // key to value, in the key's unit
	origins map[string]string // key to where the value is from
}

// SyncFlush reports whether FlushDiskType says so.
func (s *Settings) SyncFlush() bool { return s.FlushDiskType == "SYNC_FLUSH" }

// Entry is one value in force.
type Entry struct {
	Key    string
	Value  string // in the unit of the key, as a file would say it
	Origin string // "default", "broker.conf:12", "--set", …
}

// Effective lists the value of every key that Sundial uses, in the order of the table.
func (s *Settings) Effective() []Entry {
	var out []Entry
	for i := range keys {
		k := &keys[i]
		if k.Use != Used {
			continue
		}
		out = append(out, Entry{Key: k.Name, Value: s.texts[k.Name], Origin: s.origins[k.Name]})
	}
	return out
}
