package protocol

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Heartbeat is the body of HEART_BEAT (34): who a client is and what it
// consumes and produces.
type Heartbeat struct {
	ClientID    string              `json:"clientID"`
	Consumers   Set[HeartbeatGroup] `json:"consumerDataSet"`
	Fingerprint int32               `json:"heartbeatFingerprint"` // of a client that may leave out what did not change; else 0
	Producers   Set[ProducerGroup]  `json:"producerDataSet"`
	WithoutSub  bool                `json:"withoutSub"` // the subscriptions are as they were, and left out
}

// HeartbeatGroup is what a client says of a group it consumes for (ConsumerData).
type HeartbeatGroup struct {
	ConsumeFromWhere string            `json:"consumeFromWhere"`
	ConsumeType      string            `json:"consumeType"` // CONSUME_ACTIVELY, CONSUME_PASSIVELY or CONSUME_POP
	Group            string            `json:"groupName"`
	MessageModel     string            `json:"messageModel"` // CLUSTERING or BROADCASTING
	Subscriptions    Set[Subscription] `json:"subscriptionDataSet"`
	UnitMode         bool              `json:"unitMode"`
}

// ProducerGroup is a group a client produces for (ProducerData).
type ProducerGroup struct {
	Group string `json:"groupName"`
}

// Subscription is what a group wants of a topic (SubscriptionData).
type Subscription struct {
	ClassFilterMode bool         `json:"classFilterMode"`
	Codes           Set[TagCode] `json:"codeSet"` // hashes of Tags
	ExpressionType  string       `json:"expressionType"`
	Expression      string       `json:"subString"`
	Version         int64        `json:"subVersion"` // ms: the later one counts
	Tags            Set[string]  `json:"tagsSet"`
	Topic           string       `json:"topic"`
}

// TagCode is the hash of a tag. Java writes it as a number, the Go client as a
// string.
type TagCode int32

// UnmarshalJSON takes both spellings.
func (c *TagCode) UnmarshalJSON(src []byte) error {
	if isNull(src) {
		return nil
	}
	text := string(src)
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("tag code %.40q is not a 32-bit number", text)
	}
	*c = TagCode(n)
	return nil
}

// DecodeHeartbeat reads the body of a heartbeat and evens out what clients
// spell differently: enum names in mixed case (Go writes Clustering and
// BroadCasting), null for empty sets, a missing expression type.
func DecodeHeartbeat(body []byte) (*Heartbeat, error) {
	h := &Heartbeat{}
	if err := DecodeBody(body, h); err != nil {
		return nil, err
	}
	if h.ClientID == "" {
		return nil, fmt.Errorf("%w: the heartbeat has no clientID", mq.ErrInvalid)
	}
	for i := range h.Consumers {
		g := &h.Consumers[i]
		g.ConsumeType = strings.ToUpper(g.ConsumeType)
		g.MessageModel = strings.ToUpper(g.MessageModel)
		g.ConsumeFromWhere = strings.ToUpper(g.ConsumeFromWhere)
		for j := range g.Subscriptions {
			if s := &g.Subscriptions[j]; s.ExpressionType == "" {
				s.ExpressionType = "TAG"
			}
		}
	}
	return h, nil
}

// HeartbeatResponse is the header of the answer to a heartbeat.
type HeartbeatResponse struct {
	SupportsV2 bool `h:"IS_SUPPORT_HEART_BEAT_V2"`
	SubChange  bool `h:"IS_SUB_CHANGE"` // send the subscriptions again
}

// UnregisterClientHeader is the header of UNREGISTER_CLIENT (35).
type UnregisterClientHeader struct {
	ClientID      string `h:"clientID,required"`
	ProducerGroup string `h:"producerGroup"`
	ConsumerGroup string `h:"consumerGroup"`
}

// ConsumerGroupHeader is a header that names a consumer group: of 38, 40, 203.
type ConsumerGroupHeader struct {
	ConsumerGroup string `h:"consumerGroup,required"`
}

// ConsumerList is the body of the answer to GET_CONSUMER_LIST_BY_GROUP (38).
type ConsumerList struct {
	IDs Set[string] `json:"consumerIdList"`
}

// CheckClient is the body of CHECK_CLIENT_CONFIG (46).
type CheckClient struct {
	ClientID     string        `json:"clientId"`
	Group        string        `json:"group"`
	Namespace    string        `json:"namespace,omitempty"`
	Subscription *Subscription `json:"subscriptionData"`
}

// LockRequest is the body of LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42).
type LockRequest struct {
	ClientID       string            `json:"clientId"`
	Group          string            `json:"consumerGroup"`
	Queues         Set[MessageQueue] `json:"mqSet"`
	OnlyThisBroker bool              `json:"onlyThisBroker"`
}

// LockResponse is the body of the answer to LOCK_BATCH_MQ (41): the queues that
// are now the asker's.
type LockResponse struct {
	Locked Set[MessageQueue] `json:"lockOKMQSet"`
}

// Connection is a client as the broker sees it.
type Connection struct {
	Addr     string `json:"clientAddr"`
	ClientID string `json:"clientId"`
	Language string `json:"language"`
	Version  int32  `json:"version"`
}

// ConsumerConnection is the body of the answer to GET_CONSUMER_CONNECTION_LIST
// (203).
type ConsumerConnection struct {
	Connections      Set[Connection]           `json:"connectionSet"`
	ConsumeFromWhere string                    `json:"consumeFromWhere,omitempty"`
	ConsumeType      string                    `json:"consumeType,omitempty"`
	MessageModel     string                    `json:"messageModel,omitempty"`
	Subscriptions    Map[string, Subscription] `json:"subscriptionTable"`
}

// ProducerGroupHeader is the header of GET_PRODUCER_CONNECTION_LIST (204).
type ProducerGroupHeader struct {
	ProducerGroup string `h:"producerGroup,required"`
}

// ProducerConnection is the body of the answer to GET_PRODUCER_CONNECTION_LIST
// (204).
type ProducerConnection struct {
	Connections Set[Connection] `json:"connectionSet"`
}

// ProducerTable is the body of the answer to GET_ALL_PRODUCER_INFO (328).
type ProducerTable struct {
	Groups Map[string, []ProducerClient] `json:"data"`
}

// ProducerClient is one producer of a group (ProducerInfo).
type ProducerClient struct {
	ClientID   string `json:"clientId"`
	Language   string `json:"language"`
	LastUpdate int64  `json:"lastUpdateTimestamp"`
	RemoteIP   string `json:"remoteIP"`
	Version    int32  `json:"version"`
}
