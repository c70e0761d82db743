package protocol

import "github.com/sundial-mq/sundial/internal/mq"

// StatsHeader is the header of VIEW_BROKER_STATS_DATA (315).
type StatsHeader struct {
	Name string `h:"statsName,required"`
	Key  string `h:"statsKey,required"`
}

// BrokerStats is the body of its answer (BrokerStatsData).
type BrokerStats struct {
	Day    StatsItem `json:"statsDay"`
	Hour   StatsItem `json:"statsHour"`
	Minute StatsItem `json:"statsMinute"`
}

// StatsItem is what was counted in one window (BrokerStatsItem).
type StatsItem struct {
	Mean Number `json:"avgpt"` // of a call
	Sum  int64  `json:"sum"`
	TPS  Number `json:"tps"`
}

// TimeSpanHeader is the header of QUERY_CONSUME_TIME_SPAN (303).
type TimeSpanHeader struct {
	Topic string `h:"topic,required"`
	Group string `h:"group,required"`
}

// TimeSpans is the body of its answer (QueryConsumeTimeSpanBody).
type TimeSpans struct {
	Queues []TimeSpan `json:"consumeTimeSpanSet"`
}

// TimeSpan says from when to when a queue holds messages and how far a group is,
// in store times, ms; -1 is none (QueueTimeSpan).
type TimeSpan struct {
	Consumed     int64        `json:"consumeTimeStamp"`
	ConsumedText string       `json:"consumeTimeStampStr"`
	Delay        int64        `json:"delayTime"` // the age of the first message not consumed, 0 if there is none
	Max          int64        `json:"maxTimeStamp"`
	MaxText      string       `json:"maxTimeStampStr"`
	Queue        MessageQueue `json:"messageQueue"`
	Min          int64        `json:"minTimeStamp"`
	MinText      string       `json:"minTimeStampStr"`
}

// HAStatus is the body of the answer to GET_BROKER_HA_STATUS (907), HARuntimeInfo.
type HAStatus struct {
	Client   HAClient     `json:"haClientRuntimeInfo"`
	Replicas []HAReplica  `json:"haConnectionInfo"`
	InSync   int32        `json:"inSyncSlaveNums"`
	Master   bool         `json:"master"`
	End      mq.LogOffset `json:"masterCommitLogMaxOffset"`
}

// HAClient is a replica's view of its master.
type HAClient struct {
	Activated bool         `json:"activated,omitempty"`
	LastRead  int64        `json:"lastReadTimestamp"`
	LastWrite int64        `json:"lastWriteTimestamp"`
	Flushed   mq.LogOffset `json:"masterFlushOffset"`
	Max       mq.LogOffset `json:"maxOffset"`
	Rate      int64        `json:"transferredByteInSecond"`
}

// HAReplica is a master's view of a replica.
type HAReplica struct {
	Addr   string       `json:"addr"`
	Diff   int64        `json:"diff"`
	InSync bool         `json:"inSync"`
	Acked  mq.LogOffset `json:"slaveAckOffset"`
	From   mq.LogOffset `json:"transferFromWhere"`
	Rate   int64        `json:"transferredByteInSecond"`
}

// TimerMetrics is the body of the answer to GET_TIMER_METRICS (61).
type TimerMetrics struct {
	DataVersion mq.DataVersion         `json:"dataVersion"`
	Pending     map[string]TimerMetric `json:"timingCount"` // by topic
}

// TimerMetric is how many timed messages of a topic are pending.
type TimerMetric struct {
	Count int64 `json:"count"`
	Time  int64 `json:"timeStamp"` // of the last change
}
