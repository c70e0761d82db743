package protocol

import (
	"encoding/json"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
)

// DecodeGroupConfig reads the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200).
// What the body leaves out has RocketMQ's default.
func DecodeGroupConfig(body []byte) (*mq.GroupConfig, error) {
	g := mq.NewGroupConfig("")
	if err := DecodeBody(body, g); err != nil {
		return nil, err
	}
	return g, nil
}

// CreateGroupList is the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST (225).
type CreateGroupList struct {
	Groups []*mq.GroupConfig `json:"groupConfigList"`
}

// UnmarshalJSON gives what an entry leaves out its default.
func (l *CreateGroupList) UnmarshalJSON(src []byte) error {
	var raw struct {
		Groups []json.RawMessage `json:"groupConfigList"`
	}
	if err := json.Unmarshal(src, &raw); err != nil {
		return err
	}
	for _, text := range raw.Groups {
		g := mq.NewGroupConfig("")
		if err := javajson.Unmarshal(text, g); err != nil {
			return err
		}
		l.Groups = append(l.Groups, g)
	}
	return nil
}

// DeleteGroupHeader is the header of DELETE_SUBSCRIPTIONGROUP (207).
type DeleteGroupHeader struct {
	Group       string `h:"groupName,required"`
	CleanOffset bool   `h:"cleanOffset"`
}

// GroupHeader is the header of GET_SUBSCRIPTIONGROUP_CONFIG (352) and
// QUERY_TOPICS_BY_CONSUMER (343).
type GroupHeader struct {
	Group string `h:"group,required"`
}

// GroupPageHeader is the header of GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201):
// nothing set asks for everything.
type GroupPageHeader struct {
	Seq         *int32  `h:"groupSeq"`
	DataVersion *string `h:"dataVersion"` // of the pages before, JSON
	Max         *int32  `h:"maxGroupNum"`
}

// GroupPageResponse is the header of the answer to 201.
type GroupPageResponse struct {
	Total int32 `h:"totalGroupNum,required"`
}

// GroupTable is the body of the answer to 201.
type GroupTable struct {
	DataVersion mq.DataVersion                `json:"dataVersion"`
	Forbidden   Map[string, map[string]int32] `json:"forbiddenTable"`
	Groups      Map[string, *mq.GroupConfig]  `json:"subscriptionGroupTable"`
}

// GroupTopicHeader is the header of QUERY_SUBSCRIPTION_BY_CONSUMER (345).
type GroupTopicHeader struct {
	Group string `h:"group,required"`
	Topic string `h:"topic"`
}

// GroupSubscription is the body of the answer to 345.
type GroupSubscription struct {
	Group        string        `json:"group"`
	Subscription *Subscription `json:"subscriptionData,omitempty"`
	Topic        string        `json:"topic"`
}

// ConsumeStatsHeader is the header of GET_CONSUME_STATS (208).
type ConsumeStatsHeader struct {
	ConsumerGroup string `h:"consumerGroup,required"`
	Topic         string `h:"topic"`
	TopicList     string `h:"topicList"` // joined by ;
}

// ConsumeStats is the body of the answer to 208.
type ConsumeStats struct {
	TPS    Number                      `json:"consumeTps"`
	Queues QueueTable[ConsumeProgress] `json:"offsetTable"`
}

// ConsumeProgress is one queue of [ConsumeStats] (OffsetWrapper).
type ConsumeProgress struct {
	Broker   mq.QueueOffset `json:"brokerOffset"`   // the end of the queue
	Consumer mq.QueueOffset `json:"consumerOffset"` // committed
	LastTime int64          `json:"lastTimestamp"`  // store time of the last message consumed
	Pull     mq.QueueOffset `json:"pullOffset"`     // handed out
}

func (s *ConsumeStats) appendBody(dst []byte) ([]byte, error) {
	o := newObject(dst)
	o.member("consumeTps", s.TPS)
	o.table("offsetTable", s.Queues.appendJSON)
	return o.close()
}

// ForbiddenHeader is the header of UPDATE_AND_GET_GROUP_FORBIDDEN (353).
type ForbiddenHeader struct {
	Group    string `h:"group,required"`
	Topic    string `h:"topic,required"`
	Readable *bool  `h:"readable"` // nil: only asked for
}

// GroupForbidden is the body of its answer.
type GroupForbidden struct {
	Group    string `json:"group"`
	Readable bool   `json:"readable"`
	Topic    string `json:"topic"`
}

// CloneOffsetHeader is the header of CLONE_GROUP_OFFSET (314).
type CloneOffsetHeader struct {
	From    string `h:"srcGroup,required"`
	To      string `h:"destGroup,required"`
	Topic   string `h:"topic"` // empty: all topics of From
	Offline bool   `h:"offline"`
}

// CorrectionHeader is the header of QUERY_CORRECTION_OFFSET (308).
type CorrectionHeader struct {
	Except  string `h:"filterGroups"` // groups left out, joined by commas
	Compare string `h:"compareGroup,required"`
	Topic   string `h:"topic,required"`
}

// CorrectionOffsets is the body of its answer, by queue.
type CorrectionOffsets struct {
	Offsets Map[int32, mq.QueueOffset] `json:"correctionOffsets"`
}

// BrokerConsumeStatsHeader is the header of GET_BROKER_CONSUME_STATS (317).
type BrokerConsumeStatsHeader struct {
	Ordered bool `h:"isOrder"` // only ordered topics
}

// BrokerConsumeStats is the body of its answer: each group with one entry a
// topic.
type BrokerConsumeStats struct {
	BrokerAddr string
	Groups     map[string][]*ConsumeStats
	Behind     int64 // messages not consumed, all in all
	InFlight   int64 // messages handed out and not consumed
}

func (b *BrokerConsumeStats) appendBody(dst []byte) ([]byte, error) {
	o := newObject(dst)
	o.member("brokerAddr", b.BrokerAddr)
	o.table("consumeStatsList", func(dst []byte) ([]byte, error) {
		dst = append(dst, '[')
		for i, group := range sortedKeys(b.Groups) {
			if i > 0 {
				dst = append(dst, ',')
			}
			g := newObject(dst)
			g.keyText(group)
			g.buf = append(g.buf, '[')
			for j, stats := range b.Groups[group] {
				if j > 0 {
					g.buf = append(g.buf, ',')
				}
				buf, err := stats.appendBody(g.buf)
				if err != nil {
					return nil, err
				}
				g.buf = buf
			}
			g.buf = append(g.buf, ']')
			var err error
			if dst, err = g.close(); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	})
	o.member("totalDiff", b.Behind)
	o.member("totalInflightDiff", b.InFlight)
	return o.close()
}

// UnmarshalJSON reads it back.
func (b *BrokerConsumeStats) UnmarshalJSON(src []byte) error {
	var w struct {
		BrokerAddr string                       `json:"brokerAddr"`
		Groups     []map[string][]*ConsumeStats `json:"consumeStatsList"`
		Behind     int64                        `json:"totalDiff"`
		InFlight   int64                        `json:"totalInflightDiff"`
	}
	if err := json.Unmarshal(src, &w); err != nil {
		return err
	}
	*b = BrokerConsumeStats{BrokerAddr: w.BrokerAddr, Groups: map[string][]*ConsumeStats{}, Behind: w.Behind, InFlight: w.InFlight}
	for _, m := range w.Groups {
		for group, stats := range m {
			b.Groups[group] = stats
		}
	}
	return nil
}
