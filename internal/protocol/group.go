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
