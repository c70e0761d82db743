package brokerapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
)

// Bounds of answers with messages looked up.
const (
	maxQueryUnique = 32 // of a look-up by unique key
	maxQuery       = 64 // of any other, whatever it asks for
	maxQueueIndex  = 1024
)

// viewMessage shows the record at a position of the log (33), as an offset
// message id names it.
func (a *API) viewMessage(_ *request, h *protocol.ViewMessageHeader) (answer, error) {
	view, release, err := a.p.Store.Record(mq.LogOffset(h.Offset))
	if errors.Is(err, mq.ErrNotFound) {
		return answer{}, fmt.Errorf("%w: can not find message by the offset, %d", mq.ErrSystem, h.Offset)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%w: can not find message by the offset, %d: %w", mq.ErrSystem, h.Offset, err)
	}
	return answer{chunks: [][]byte{view}, release: release}, nil
}

// queryMessage finds messages by key or by tags (12). RocketMQ finds those of
// equal hash, too; these are all of the topic and have the key.
func (a *API) queryMessage(_ *request, h *protocol.QueryMessageHeader) (answer, error) {
	most, query := min(int(h.Max), maxQuery), a.p.Store.Query
	switch h.IndexType {
	case "", "K", "U":
		if h.Unique {
			most = maxQueryUnique
		}
	case "T":
		query = a.p.Store.QueryTags
	default:
		return answer{}, fmt.Errorf("%w: there is no index of type %q: K are keys, U unique keys, T tags", mq.ErrInvalid, h.IndexType)
	}
	hits, err := query(h.Topic, h.Key, most, h.Begin, h.End)
	if err != nil {
		return answer{}, err
	}
	slices.SortFunc(hits.Records, func(x, y record.View) int { return cmp.Compare(x.LogOffset(), y.LogOffset()) })
	waiting, err := a.scheduled(h, most-len(hits.Records))
	if err != nil {
		hits.Release()
		return answer{}, err
	}
	if len(hits.Records) == 0 && len(waiting) == 0 {
		hits.Release()
		return answer{
			code: protocol.QueryNotFound, remark: fmt.Sprintf("can not find message with key %q in topic %s, stored from %d to %d", h.Key, h.Topic, h.Begin, h.End),
			header: &protocol.QueryMessageResponse{IndexOffset: int64(hits.IndexedTo)},
		}, nil
	}
	head := &protocol.QueryMessageResponse{IndexOffset: int64(hits.IndexedTo), IndexTime: time.Now().UnixMilli()}
	if hits.IndexedTo < a.p.Store.MaxLog() && len(hits.Records) > 0 {
		head.IndexTime = hits.Records[len(hits.Records)-1].StoreTime() // at least so far
	}
	ans := answer{header: head, release: hits.Release}
	for _, v := range hits.Records {
		ans.chunks = append(ans.chunks, v)
	}
	ans.chunks = append(ans.chunks, waiting...)
	return ans, nil
}

// scheduled finds timed messages for the topic that are still pending, where
// RocketMQ finds none.
func (a *API) scheduled(h *protocol.QueryMessageHeader, most int) ([][]byte, error) {
	if a.p.Delay == nil || most < 1 || h.IndexType == "T" || h.Topic == mq.TopicTimer {
		return nil, nil
	}
	return a.p.Delay.Scheduled(h.Topic, h.Key, most, h.Begin, h.End)
}

// queryConsumeQueue shows entries of a queue (321) and which of them a group's
// filter takes.
func (a *API) queryConsumeQueue(_ *request, h *protocol.QueryConsumeQueueHeader) (answer, error) {
	t := a.p.Topics.Get(h.Topic)
	if t == nil || h.QueueID < 0 || h.QueueID >= max(t.ReadQueues, t.WriteQueues) {
		return answer{}, fmt.Errorf("%w: %d@%s is not exist!", mq.ErrSystem, h.QueueID, h.Topic)
	}
	if h.Count < 1 {
		return answer{}, fmt.Errorf("%w: count is %d, it must be 1 or more", mq.ErrInvalid, h.Count)
	}
	key := mq.QueueKey{Topic: h.Topic, ID: mq.QueueID(h.QueueID)}
	body := &protocol.ConsumeQueue{Min: a.p.Store.MinOffset(key), Max: a.p.Store.MaxOffset(key)}
	var want *filter.Filter
	if h.Group != "" {
		body.FilterData = h.Group + "@" + h.Topic + " is not online!"
		if view := a.p.Clients.View(h.Group); view != nil {
			if s := view.Subscription(h.Topic); s != nil {
				body.Subscription, body.FilterData = new(subscription(s)), "null"
				want, _ = filter.Parse(s.Type, s.Expression)
			}
		}
	}
	from := max(mq.QueueOffset(h.Index), body.Min)
	for off := from; off < body.Max && len(body.Entries) < min(int(h.Count), maxQueueIndex); off++ {
		e, ok := a.p.Store.Entry(key, off)
		if !ok {
			break
		}
		body.Entries = append(body.Entries, protocol.ConsumeQueueEntry{
			Eval: body.Subscription != nil && want.MatchCode(e.TagsCode), Pos: e.Pos, Size: e.Size, TagsCode: e.TagsCode,
		})
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}
