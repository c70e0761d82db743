package mq

// TopicConfig is what a broker knows of a topic (TopicConfig), as it stands in
// topics.json and on the wire.
type TopicConfig struct {
	Attributes  map[string]string `json:"attributes"`
	Order       bool              `json:"order"`
	Perm        Perm              `json:"perm"`
	ReadQueues  int32             `json:"readQueueNums"`
	Filter      string            `json:"topicFilterType"` // SINGLE_TAG or MULTI_TAG
	Name        string            `json:"topicName"`
	SysFlag     int32             `json:"topicSysFlag"` // 1 unit, 2 has unit subscription
	WriteQueues int32             `json:"writeQueueNums"`
}

// GroupConfig is what a broker knows of a consumer group
// (SubscriptionGroupConfig), as it stands in subscriptionGroup.json and on the
// wire.
type GroupConfig struct {
	Attributes             map[string]string    `json:"attributes"`
	BrokerID               int64                `json:"brokerId"`
	ConsumeBroadcastEnable bool                 `json:"consumeBroadcastEnable"`
	ConsumeEnable          bool                 `json:"consumeEnable"`
	ConsumeFromMinEnable   bool                 `json:"consumeFromMinEnable"`
	ConsumeMessageOrderly  bool                 `json:"consumeMessageOrderly"`
	ConsumeTimeoutMinute   int32                `json:"consumeTimeoutMinute"`
	Name                   string               `json:"groupName"`
	RetryPolicy            *RetryPolicy         `json:"groupRetryPolicy,omitempty"`
	SysFlag                int32                `json:"groupSysFlag"`
	NotifyIDsChanged       bool                 `json:"notifyConsumerIdsChangedEnable"`
	RetryMaxTimes          int32                `json:"retryMaxTimes"`
	RetryQueues            int32                `json:"retryQueueNums"`
	Subscriptions          []SimpleSubscription `json:"subscriptionDataSet,omitempty"`
	WhichBrokerWhenSlow    int64                `json:"whichBrokerWhenConsumeSlowly"`
}

// RetryPolicy is GroupRetryPolicy.
type RetryPolicy struct {
	Type        string             `json:"type"` // CUSTOMIZED or EXPONENTIAL
	Exponential *ExponentialPolicy `json:"exponentialRetryPolicy,omitempty"`
	Customized  *CustomizedPolicy  `json:"customizedRetryPolicy,omitempty"`
}

// ExponentialPolicy is ExponentialRetryPolicy; times in ms.
type ExponentialPolicy struct {
	Initial    int64 `json:"initial"`
	Max        int64 `json:"max"`
	Multiplier int64 `json:"multiplier"`
}

// CustomizedPolicy is CustomizedRetryPolicy; pauses in ms.
type CustomizedPolicy struct {
	Next []int64 `json:"next"`
}

// SimpleSubscription is SimpleSubscriptionData.
type SimpleSubscription struct {
	Topic          string `json:"topic"`
	ExpressionType string `json:"expressionType"`
	Expression     string `json:"expression"`
	Version        int64  `json:"version"`
}

// NewGroupConfig is a group as RocketMQ makes it when nobody said otherwise.
func NewGroupConfig(name string) *GroupConfig {
	return &GroupConfig{
		Attributes: map[string]string{}, ConsumeBroadcastEnable: true, ConsumeEnable: true, ConsumeFromMinEnable: true,
		ConsumeTimeoutMinute: 15, Name: name, RetryPolicy: &RetryPolicy{Type: "CUSTOMIZED"}, NotifyIDsChanged: true,
		RetryMaxTimes: 16, RetryQueues: 1, WhichBrokerWhenSlow: 1,
	}
}

// DataVersion orders generations of a table. Compared by StateVersion, then
// Counter, then Timestamp (ms).
type DataVersion struct {
	Counter      int64 `json:"counter"`
	StateVersion int64 `json:"stateVersion"`
	Timestamp    int64 `json:"timestamp"`
}

// Next is the version that follows v at nowMillis.
func (v DataVersion) Next(nowMillis int64) DataVersion {
	return DataVersion{Counter: v.Counter + 1, StateVersion: v.StateVersion, Timestamp: nowMillis}
}
