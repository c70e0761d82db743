package clients

import (
	"net/netip"
	"slices"
	"time"
)

// Client is one process of one application, as one connection shows it.
type Client struct {
	Conn     any // the connection: comparable, and whoever made it knows what it is
	ID       string
	Addr     netip.AddrPort
	Language uint8
	Version  int32
	LastSeen time.Time // of the group it was asked for; not looked at in a heartbeat
}

// Heartbeat is what a client says of itself (HeartbeatData).
type Heartbeat struct {
	Client    Client
	Producers []string // groups
	Consumers []Consumer
	// Unchanged says that the subscription sets were left out, as they are those of
	// the heartbeat with the same Fingerprint before.
	Unchanged   bool
	Fingerprint int32 // 0: none
}

// Consumer is a client's part in a consumer group (ConsumerData).
type Consumer struct {
	Group         string
	Type          ConsumeType
	Model         Model
	From          From
	Subscriptions []Subscription
	UnitMode      bool
}

// ConsumeType is how a consumer gets its messages, spelled as on the wire.
type ConsumeType string

// Consume types.
const (
	Actively  ConsumeType = "CONSUME_ACTIVELY"
	Passively ConsumeType = "CONSUME_PASSIVELY"
	Pop       ConsumeType = "CONSUME_POP"
)

// Model is whether a group shares messages or each member gets them all,
// spelled as on the wire.
type Model string

// Message models.
const (
	Clustering   Model = "CLUSTERING"
	Broadcasting Model = "BROADCASTING"
)

// From is where a group without progress begins, spelled as on the wire.
type From string

// Where to begin.
const (
	FromLast      From = "CONSUME_FROM_LAST_OFFSET"
	FromFirst     From = "CONSUME_FROM_FIRST_OFFSET"
	FromTimestamp From = "CONSUME_FROM_TIMESTAMP"
)

// Subscription is what a group wants of one topic (SubscriptionData). It is
// immutable once it is in the register.
type Subscription struct {
	Topic          string
	Type           string // TAG or SQL92
	Expression     string
	Tags           []string
	Codes          []int32
	Version        int64
	ClassFilter    bool
	FilterClassSrc string
	// Since is when the group first told of this topic, while somebody of it was
	// here all the time since; not looked at in a heartbeat.
	Since time.Time
}

// View is a consumer group as it is now. It is immutable.
type View struct {
	Type          ConsumeType
	Model         Model
	From          From
	Subscriptions map[string]*Subscription // by topic
}

// Subscription returns what the group wants of topic, nil when nothing.
func (v *View) Subscription(topic string) *Subscription { return v.Subscriptions[topic] }

func (s *Subscription) clone() *Subscription {
	c := *s
	c.Tags, c.Codes = slices.Clone(s.Tags), slices.Clone(s.Codes)
	return &c
}
