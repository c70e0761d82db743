package protocol

import (
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// SendHeader is the header of the sends: SEND_MESSAGE (10) with long names,
// SEND_MESSAGE_V2 (310) and SEND_BATCH_MESSAGE (320) with one letter each.
type SendHeader struct {
	ProducerGroup      string     // producerGroup, a
	Topic              string     // topic, b
	DefaultTopic       string     // defaultTopic, c: whose likeness a new topic gets
	DefaultTopicQueues int32      // defaultTopicQueueNums, d
	QueueID            mq.QueueID // queueId, e; negative lets the broker choose
	SysFlag            mq.SysFlag // sysFlag, f
	BornTime           int64      // bornTimestamp, g
	Flag               int32      // flag, h: the application's
	Properties         string     // properties, i: the encoded block, as sent
	ReconsumeTimes     int32      // reconsumeTimes, j
	UnitMode           bool       // unitMode, k
	MaxReconsumeTimes  *int32     // maxReconsumeTimes, l; nil if not said
	Batch              bool       // batch, m: the body is a list of messages
	BrokerName         string     // bname, n
}

// The fields each send must have, as bits in the order of the letters a to h.
const sendRequired = 1<<8 - 1

var sendNames = [...]string{"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag"}

// DecodeSend reads the header of a send. Both spellings are taken whatever the
// code: whether a field is one letter or a word decides.
func DecodeSend(c *remoting.Command, h *SendHeader) error {
	*h = SendHeader{}
	var seen uint
	for i := range c.Fields {
		f := &c.Fields[i]
		letter := byte(0)
		if len(f.Key) == 1 {
			letter = f.Key[0]
		} else {
			letter = sendLetter(f.Key)
		}
		var err error
		var n int32
		switch letter {
		case 'a':
			h.ProducerGroup = f.Value
		case 'b':
			h.Topic = f.Value
		case 'c':
			h.DefaultTopic = f.Value
		case 'd':
			err = fieldInt32(f.Key, f.Value, &h.DefaultTopicQueues)
		case 'e':
			err = fieldInt32(f.Key, f.Value, &n)
			h.QueueID = mq.QueueID(n)
		case 'f':
			err = fieldInt32(f.Key, f.Value, &n)
			h.SysFlag = mq.SysFlag(n)
		case 'g':
			err = fieldInt64(f.Key, f.Value, &h.BornTime)
		case 'h':
			err = fieldInt32(f.Key, f.Value, &h.Flag)
		case 'i':
			h.Properties = f.Value
		case 'j':
			if f.Value != "" {
				err = fieldInt32(f.Key, f.Value, &h.ReconsumeTimes)
			}
		case 'k':
			h.UnitMode = fieldBool(f.Value)
		case 'l':
			if f.Value != "" {
				err = fieldInt32(f.Key, f.Value, &n)
				h.MaxReconsumeTimes = new(n)
			}
		case 'm':
			h.Batch = fieldBool(f.Value)
		case 'n':
			h.BrokerName = f.Value
		default:
			continue
		}
		if err != nil {
			return err
		}
		if letter <= 'h' {
			seen |= 1 << (letter - 'a')
		}
	}
	if seen != sendRequired {
		for i, name := range sendNames {
			if seen&(1<<i) == 0 {
				if c.Code != int32(SendMessage) {
					name += " (" + string(rune('a'+i)) + ")"
				}
				return missingField(name)
			}
		}
	}
	return nil
}

// sendLetter is the letter that a long name has in the short spelling, 0 for
// none.
func sendLetter(name string) byte {
	switch name {
	case "producerGroup":
		return 'a'
	case "topic":
		return 'b'
	case "defaultTopic":
		return 'c'
	case "defaultTopicQueueNums":
		return 'd'
	case "queueId":
		return 'e'
	case "sysFlag":
		return 'f'
	case "bornTimestamp":
		return 'g'
	case "flag":
		return 'h'
	case "properties":
		return 'i'
	case "reconsumeTimes":
		return 'j'
	case "unitMode":
		return 'k'
	case "maxReconsumeTimes":
		return 'l'
	case "batch":
		return 'm'
	case "bname", "brokerName":
		return 'n'
	}
	return 0
}

// Encode returns the header in short spelling (for codes 310 and 320).
func (h *SendHeader) Encode() []remoting.Field { return h.encode(true) }

// EncodeV1 returns the header in long spelling (for code 10).
func (h *SendHeader) EncodeV1() []remoting.Field { return h.encode(false) }

func (h *SendHeader) encode(short bool) []remoting.Field {
	out := make([]remoting.Field, 0, 14)
	put := func(letter, name, value string) {
		if short {
			name = letter
		}
		out = append(out, remoting.Field{Key: name, Value: value})
	}
	put("a", "producerGroup", h.ProducerGroup)
	put("b", "topic", h.Topic)
	put("c", "defaultTopic", h.DefaultTopic)
	put("d", "defaultTopicQueueNums", itoa(int64(h.DefaultTopicQueues)))
	put("e", "queueId", itoa(int64(h.QueueID)))
	put("f", "sysFlag", itoa(int64(h.SysFlag)))
	put("g", "bornTimestamp", itoa(h.BornTime))
	put("h", "flag", itoa(int64(h.Flag)))
	if h.Properties != "" {
		put("i", "properties", h.Properties)
	}
	put("j", "reconsumeTimes", itoa(int64(h.ReconsumeTimes)))
	put("k", "unitMode", strconv.FormatBool(h.UnitMode))
	if h.MaxReconsumeTimes != nil {
		put("l", "maxReconsumeTimes", itoa(int64(*h.MaxReconsumeTimes)))
	}
	put("m", "batch", strconv.FormatBool(h.Batch))
	if h.BrokerName != "" {
		put("n", "bname", h.BrokerName)
	}
	return out
}

// SendResponse is what a send is answered with: also refused ones, which have
// only Region and TraceOn. Java clients read the fields without looking whether
// there are any, so there always are.
type SendResponse struct {
	MsgID         string // offset message id; of a batch all of them, joined by commas
	QueueID       mq.QueueID
	QueueOffset   mq.QueueOffset // of a batch the first one's
	TransactionID string         // the message's UNIQ_KEY
	RecallHandle  string         // of a timed message
	Region        string
	TraceOn       bool
}

// AppendFields appends the fields of the answer to dst. It allocates one
// string, for the two numbers.
func (r *SendResponse) AppendFields(dst []remoting.Field) []remoting.Field {
	dst = append(dst, remoting.Field{Key: "MSG_REGION", Value: r.Region}, remoting.Field{Key: "TRACE_ON", Value: strconv.FormatBool(r.TraceOn)})
	if r.MsgID == "" {
		return dst
	}
	var raw [32]byte
	b := strconv.AppendInt(raw[:0], int64(r.QueueID), 10)
	mid := len(b)
	b = strconv.AppendInt(b, int64(r.QueueOffset), 10)
	text := string(b)
	dst = append(dst,
		remoting.Field{Key: "msgId", Value: r.MsgID},
		remoting.Field{Key: "queueId", Value: text[:mid]},
		remoting.Field{Key: "queueOffset", Value: text[mid:]})
	if r.TransactionID != "" {
		dst = append(dst, remoting.Field{Key: "transactionId", Value: r.TransactionID})
	}
	if r.RecallHandle != "" {
		dst = append(dst, remoting.Field{Key: "recallHandle", Value: r.RecallHandle})
	}
	return dst
}

// DecodeSendResponse reads the answer of a send, as a client does.
func DecodeSendResponse(c *remoting.Command, r *SendResponse) error {
	var w struct {
		MsgID         string `h:"msgId"`
		QueueID       int32  `h:"queueId"`
		QueueOffset   int64  `h:"queueOffset"`
		TransactionID string `h:"transactionId"`
		RecallHandle  string `h:"recallHandle"`
		Region        string `h:"MSG_REGION"`
		TraceOn       *bool  `h:"TRACE_ON"`
	}
	if err := DecodeFields(c.Fields, &w); err != nil {
		return err
	}
	*r = SendResponse{MsgID: w.MsgID, QueueID: mq.QueueID(w.QueueID), QueueOffset: mq.QueueOffset(w.QueueOffset),
		TransactionID: w.TransactionID, RecallHandle: w.RecallHandle, Region: w.Region, TraceOn: w.TraceOn == nil || *w.TraceOn}
	return nil
}

// SendBackHeader is the header of CONSUMER_SEND_MSG_BACK (36): a consumer could
// not do with a message and wants it again later.
type SendBackHeader struct {
	Offset            int64  `h:"offset,required"` // in the commit log
	Group             string `h:"group,required"`
	DelayLevel        int32  `h:"delayLevel,required"` // 0 lets the broker choose, negative means dead letter
	OriginMsgID       string `h:"originMsgId"`
	OriginTopic       string `h:"originTopic"`
	UnitMode          bool   `h:"unitMode"`
	MaxReconsumeTimes *int32 `h:"maxReconsumeTimes"`
}

// PushReplyHeader is the header of PUSH_REPLY_MESSAGE_TO_CLIENT (326): the
// broker hands a requester the reply to its request.
type PushReplyHeader struct {
	ProducerGroup      string     `h:"producerGroup,required"`
	Topic              string     `h:"topic,required"`
	DefaultTopic       string     `h:"defaultTopic,required"`
	DefaultTopicQueues int32      `h:"defaultTopicQueueNums,required"`
	QueueID            mq.QueueID `h:"queueId,required"`
	SysFlag            mq.SysFlag `h:"sysFlag,required"`
	BornTime           int64      `h:"bornTimestamp,required"`
	Flag               int32      `h:"flag,required"`
	Properties         string     `h:"properties"`
	ReconsumeTimes     int32      `h:"reconsumeTimes"`
	UnitMode           bool       `h:"unitMode"`
	BornHost           string     `h:"bornHost,required"`  // of the replier, ip:port
	StoreHost          string     `h:"storeHost,required"` // of the broker
	StoreTime          int64      `h:"storeTimestamp,required"`
}
