package protocol

import (
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// CreateTopicHeader is the header of UPDATE_AND_CREATE_TOPIC (17).
type CreateTopicHeader struct {
	Topic        string `h:"topic,required"`
	DefaultTopic string `h:"defaultTopic"`
	ReadQueues   int32  `h:"readQueueNums,required"`
	WriteQueues  int32  `h:"writeQueueNums,required"`
	Perm         int32  `h:"perm,required"`
	Filter       string `h:"topicFilterType"`
	SysFlag      int32  `h:"topicSysFlag"`
	Order        bool   `h:"order"`
	Attributes   string `h:"attributes"` // +key=value,-key
	Force        bool   `h:"force"`
}

// Config is the topic that the header asks for, without its attributes.
func (h *CreateTopicHeader) Config() *mq.TopicConfig {
	filter := h.Filter
	if filter == "" {
		filter = "SINGLE_TAG"
	}
	return &mq.TopicConfig{Attributes: map[string]string{}, Order: h.Order, Perm: mq.Perm(h.Perm), ReadQueues: h.ReadQueues,
		Filter: filter, Name: h.Topic, SysFlag: h.SysFlag, WriteQueues: h.WriteQueues}
}

// AttributeChanges reads "+key=value,-key": a change of attributes. The keys
// keep their sign, as [mq.TopicConfig] updates in RocketMQ do.
func AttributeChanges(text string) (map[string]string, error) {
	out := map[string]string{}
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		key, value, assigned := strings.Cut(item, "=")
		if len(key) < 2 || key[0] != '+' && key[0] != '-' || (key[0] == '+') != assigned {
			return nil, fmt.Errorf("%w: attribute %q, want +key=value or -key", mq.ErrInvalid, item)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%w: attribute %q comes twice", mq.ErrInvalid, key)
		}
		out[key] = value
	}
	return out, nil
}

// CreateTopicList is the body of UPDATE_AND_CREATE_TOPIC_LIST (18).
type CreateTopicList struct {
	Topics Set[*mq.TopicConfig] `json:"topicConfigList"`
}

// PageHeader is the header of GET_ALL_TOPIC_CONFIG (21): nothing set asks for
// everything.
type TopicPageHeader struct {
	Seq         *int32  `h:"topicSeq"`
	DataVersion *string `h:"dataVersion"` // of the pages before, JSON
	Max         *int32  `h:"maxTopicNum"`
}

// TopicPageResponse is the header of the answer to 21.
type TopicPageResponse struct {
	Total int32 `h:"totalTopicNum,required"`
}

// TopicStats is the body of the answer to GET_TOPIC_STATS_INFO (202).
type TopicStats struct {
	Queues QueueTable[QueueStats] `json:"offsetTable"`
	PutTPS Number                 `json:"topicPutTps"`
}

// QueueStats is one queue of [TopicStats] (TopicOffset).
type QueueStats struct {
	LastUpdate int64          `json:"lastUpdateTimestamp"` // store time of the last message, 0 if none
	Max        mq.QueueOffset `json:"maxOffset"`
	Min        mq.QueueOffset `json:"minOffset"`
}

func (t *TopicStats) appendBody(dst []byte) ([]byte, error) {
	o := newObject(dst)
	o.table("offsetTable", t.Queues.appendJSON)
	o.member("topicPutTps", t.PutTPS)
	return o.close()
}

// GroupList is the body of the answer to QUERY_TOPIC_CONSUME_BY_WHO (300).
type GroupList struct {
	Groups Set[string] `json:"groupList"`
}
