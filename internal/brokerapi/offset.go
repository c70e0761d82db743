package brokerapi

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// updateOffset notes how far a group is (15). Offsets may go back. It runs on
// the reader.
func (a *API) updateOffset(_ *request, h *protocol.UpdateConsumerOffsetHeader) (answer, error) {
	if err := a.topicExists(h.Topic); err != nil {
		return answer{}, err
	}
	if a.p.Groups.Get(h.ConsumerGroup) == nil {
		return answer{}, fmt.Errorf("%w: group %s has no configuration here; a heartbeat makes one", mq.ErrNoGroup, h.ConsumerGroup)
	}
	if err := a.queueExists(h.Topic, h.QueueID); err != nil {
		return answer{}, err
	}
	if h.CommitOffset < 0 {
		return answer{}, fmt.Errorf("%w: commitOffset is %d", mq.ErrInvalid, h.CommitOffset)
	}
	if err := a.p.Offsets.Commit(h.ConsumerGroup, h.Topic, mq.QueueID(h.QueueID), mq.QueueOffset(h.CommitOffset)); err != nil {
		// Consumers take any other code for a fault of theirs; the next pull puts them
		// right.
		return answer{remark: "the offset was not taken: " + err.Error()}, nil
	}
	return answer{}, nil
}

// queryOffset tells how far a group is (14). A group that never committed in a
// queue has no offset: that is not 0, and the client then begins where its
// application said, at the end, at the start or at a time.
//
// Simply to say so would lose messages, though: when a topic is new or gets more
// queues, consumers that are there already find the new queue with the first
// messages in it, and would begin behind them. So a group is sent to the start
// of a queue that is new to it alone; see [API.fromStart].
func (a *API) queryOffset(_ *request, h *protocol.QueryConsumerOffsetHeader) (answer, error) {
	key := mq.QueueKey{Topic: h.Topic, ID: mq.QueueID(h.QueueID)}
	if off, ok := a.p.Offsets.Query(h.ConsumerGroup, key.Topic, key.ID); ok {
		return answer{header: &protocol.OffsetResponse{Offset: int64(off)}}, nil
	}
	zero := h.SetZeroIfNotFound == nil || *h.SetZeroIfNotFound
	if zero && a.p.Topics.Get(h.Topic) != nil && a.fromStart(h.ConsumerGroup, key) {
		return answer{header: &protocol.OffsetResponse{Offset: 0}}, nil
	}
	return answer{}, fmt.Errorf("%w: group %s has no offset in queue %d of topic %s, maybe this group consumes it for the first time", mq.ErrNotFound, h.ConsumerGroup, h.QueueID, h.Topic)
}

// fromStart reports whether a group without progress in a queue that still has
// its first message is to begin with that: it was there before the message, or
// it consumes the topic's other queues. An empty queue has one place to begin.
func (a *API) fromStart(group string, key mq.QueueKey) bool {
	switch {
	case a.p.Store.MinOffset(key) > 0:
		return false
	case a.p.Store.MaxOffset(key) == 0, len(a.p.Offsets.Queues(group, key.Topic)) > 0:
		return true
	}
	if e, ok := a.p.Store.Entry(key, 0); ok && int64(a.p.Store.MaxLog()-e.Pos) <= a.cfg.YoungBytes {
		return true
	}
	view := a.p.Clients.View(group)
	if view == nil || view.Subscription(key.Topic) == nil {
		return false
	}
	at, ok := a.p.Store.StoreTime(key, 0)
	return ok && at >= view.Subscription(key.Topic).Since.UnixMilli()
}

// queueExists says what is wrong with a queue of a topic that exists. One that
// has messages exists although the topic has fewer queues now.
func (a *API) queueExists(topic string, id int32) error {
	if err := a.topicExists(topic); err != nil {
		return err
	}
	t := a.p.Topics.Get(topic)
	if t == nil || id >= 0 && (id < max(t.ReadQueues, t.WriteQueues) || a.p.Store.MaxOffset(mq.QueueKey{Topic: topic, ID: mq.QueueID(id)}) > 0) {
		return nil
	}
	return fmt.Errorf("%w: queue %d of topic %s does not exist, it has %d", mq.ErrInvalid, id, topic, max(t.ReadQueues, t.WriteQueues))
}

func (a *API) maxOffset(_ *request, h *protocol.QueueHeader) (answer, error) {
	if err := a.queueExists(h.Topic, h.QueueID); err != nil {
		return answer{}, err
	}
	return answer{header: &protocol.OffsetResponse{Offset: int64(a.p.Store.MaxOffset(queueKey(h)))}}, nil
}

func (a *API) minOffset(_ *request, h *protocol.QueueHeader) (answer, error) {
	if err := a.queueExists(h.Topic, h.QueueID); err != nil {
		return answer{}, err
	}
	return answer{header: &protocol.OffsetResponse{Offset: int64(a.p.Store.MinOffset(queueKey(h)))}}, nil
}

// searchOffset finds an offset by store time (29).
func (a *API) searchOffset(_ *request, h *protocol.SearchOffsetHeader) (answer, error) {
	if err := a.queueExists(h.Topic, h.QueueID); err != nil {
		return answer{}, err
	}
	key := mq.QueueKey{Topic: h.Topic, ID: mq.QueueID(h.QueueID)}
	off, err := a.p.Store.OffsetByTime(key, h.Timestamp, strings.EqualFold(h.Boundary, "upper"))
	if err != nil {
		return answer{}, err
	}
	return answer{header: &protocol.OffsetResponse{Offset: int64(off)}}, nil
}

// earliestTime tells when the oldest message of a queue was stored (32), -1
// when there is none.
func (a *API) earliestTime(_ *request, h *protocol.QueueHeader) (answer, error) {
	if err := a.queueExists(h.Topic, h.QueueID); err != nil {
		return answer{}, err
	}
	at, ok := a.p.Store.StoreTime(queueKey(h), a.p.Store.MinOffset(queueKey(h)))
	if !ok {
		at = -1
	}
	return answer{header: &protocol.StoreTimeResponse{Timestamp: at}}, nil
}

// allOffsets lists all progress (43), as slaves and exporters ask for it.
func (a *API) allOffsets(*request) (answer, error) {
	all, version := a.p.Offsets.All()
	body := &protocol.ConsumerOffsets{DataVersion: version, Offsets: map[string]map[int32]mq.QueueOffset{}, GroupTopics: map[string][]string{}}
	for pair, queues := range all {
		to := make(map[int32]mq.QueueOffset, len(queues))
		for id, off := range queues {
			to[int32(id)] = off
		}
		body.Offsets[pair] = to
		if topic, group, ok := strings.Cut(pair, "@"); ok {
			body.GroupTopics[group] = append(body.GroupTopics[group], topic)
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// delayOffsets tells the progress of the delay levels (45).
func (a *API) delayOffsets(*request) (answer, error) {
	body := &protocol.DelayOffsets{Offsets: map[int32]mq.QueueOffset{}}
	if a.p.Delay != nil {
		table := a.p.Delay.Offsets()
		body.DataVersion = table.Version
		for level, off := range table.Offsets {
			n, err := strconv.ParseInt(level, 10, 32)
			if err != nil {
				return answer{}, fmt.Errorf("BUG: delay level %q: %w", level, err)
			}
			body.Offsets[int32(n)] = mq.QueueOffset(off)
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// cloneOffset gives a group the progress of another (314). The receiver should be
// offline, or its consumers write their own over it.
func (a *API) cloneOffset(_ *request, h *protocol.CloneOffsetHeader) (answer, error) {
	if err := mq.ValidGroup(h.To); err != nil {
		return answer{}, err
	}
	if h.Topic != "" {
		if err := a.topicExists(h.Topic); err != nil {
			return answer{}, err
		}
	}
	from := a.p.Offsets.TopicsOf(h.From)
	switch {
	case h.From == h.To:
		return answer{}, fmt.Errorf("%w: group %s is to be cloned to itself", mq.ErrInvalid, h.From)
	case len(from) == 0:
		return answer{}, fmt.Errorf("%w: group %s has no progress to clone", mq.ErrNoGroup, h.From)
	case h.Topic != "" && !slices.Contains(from, h.Topic):
		return answer{}, fmt.Errorf("%w: group %s has no progress in topic %s to clone", mq.ErrNotFound, h.From, h.Topic)
	}
	if err := a.p.Offsets.Clone(h.From, h.To, h.Topic); err != nil {
		return answer{}, err
	}
	var ans answer
	if n := len(a.p.Clients.Members(h.To)); n > 0 {
		ans.remark = fmt.Sprintf("group %s has %d consumers online: they write their own progress over what was cloned; reset it instead", h.To, n)
	}
	return ans, nil
}

// correction tells for each queue how far the slowest group is, or the greatest
// number where the group to compare with is not beyond that (308). Nothing is
// deleted by asking.
func (a *API) correction(_ *request, h *protocol.CorrectionHeader) (answer, error) {
	var except []string
	if h.Except != "" {
		except = strings.Split(h.Except, ",")
	}
	out := map[int32]mq.QueueOffset{}
	for id, off := range a.p.Offsets.Slowest(h.Topic, except) {
		out[int32(id)] = off
	}
	for id, off := range a.p.Offsets.Queues(h.Compare, h.Topic) {
		if slowest, ok := out[int32(id)]; !ok || slowest > off {
			out[int32(id)] = math.MaxInt64
		}
	}
	return answer{body: protocol.EncodeBody(&protocol.CorrectionOffsets{Offsets: out})}, nil
}

func (a *API) topicExists(topic string) error {
	if a.p.Topics.Get(topic) == nil {
		return fmt.Errorf("%w: topic[%s] not exist", mq.ErrNoTopic, topic)
	}
	return nil
}

func queueKey(h *protocol.QueueHeader) mq.QueueKey {
	return mq.QueueKey{Topic: h.Topic, ID: mq.QueueID(h.QueueID)}
}
