package brokerapi

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// Versions of clients that resets depend on.
const (
	resetSince = 28  // V3_0_7_SNAPSHOT: answers 220
	jumpSince  = 432 // V5_1_0_SNAPSHOT: a pull that jumps moves the queue at once
)

// resetGrace is how long a client that was told of a reset is left alone: it
// stops consuming, waits 10 s for what is under way, and comes back at the new
// place.
const resetGrace = 15 * time.Second

// maxTold bounds the resets that are remembered of one connection.
const maxTold = 1000

// session is what the API keeps with a connection.
type session struct {
	mu struct {
		sync.Mutex
		told map[[2]string]time.Time // group and topic of resets it was told of, until when that counts
	}
}

// Reset implements [fetch.Told].
func (s *session) Reset(group, topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.told == nil {
		return false
	}
	until, ok := s.mu.told[[2]string{group, topic}]
	return ok && time.Now().Before(until)
}

func (s *session) tell(group, topic string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.told == nil {
		s.mu.told = map[[2]string]time.Time{}
	}
	for k, until := range s.mu.told {
		if now.After(until) {
			delete(s.mu.told, k)
		}
	}
	if len(s.mu.told) < maxTold {
		s.mu.told[[2]string{group, topic}] = now.Add(resetGrace)
	}
}

// resetOffset moves a group in one queue of a topic or in all of them (222): the
// next pull jumps there, whatever the consumer believes. Clients to which a jump
// means half a minute without messages are told at once instead.
func (a *API) resetOffset(_ *request, h *protocol.ResetOffsetHeader) (answer, error) {
	first, end, err := a.resetRange(h)
	if err != nil {
		return answer{}, err
	}
	targets := protocol.QueueTable[mq.QueueOffset]{}
	for id := first; id < end; id++ {
		off, err := a.resetTarget(h, mq.QueueKey{Topic: h.Topic, ID: id})
		if err != nil {
			return answer{}, err
		}
		targets[a.queueOf(h.Topic, id)] = off
	}
	ans := answer{body: protocol.EncodeBody(&protocol.ResetOffsetBody{Offsets: targets})}
	if view := a.p.Clients.View(h.Group); view != nil && view.Model == clients.Broadcasting {
		// Each member keeps its own progress. None here has any, so all are told.
		if told, all := a.pushReset(h, targets, math.MaxInt32); told < all {
			ans.remark = fmt.Sprintf("group %s broadcasts, so its clients keep their progress: %d of %d could be told", h.Group, told, all)
		}
		return ans, nil
	}
	for q, off := range targets {
		a.p.Offsets.Reset(h.Group, h.Topic, q.QueueID, off)
	}
	a.pushReset(h, targets, jumpSince)
	for q := range targets {
		a.p.Fetch.Wake(mq.QueueKey{Topic: h.Topic, ID: q.QueueID})
	}
	if err := a.p.Offsets.Save(); err != nil {
		return answer{}, fmt.Errorf("the offsets are reset, but not saved yet: %w", err)
	}
	return ans, nil
}

// resetRange is which queues a reset is about.
func (a *API) resetRange(h *protocol.ResetOffsetHeader) (first, end mq.QueueID, err error) {
	topic := a.p.Topics.Get(h.Topic)
	if topic == nil {
		return 0, 0, fmt.Errorf("%w: topic %s does not exist", mq.ErrNoTopic, h.Topic)
	}
	if a.p.Groups.Get(h.Group) == nil {
		return 0, 0, fmt.Errorf("%w: group %s does not exist", mq.ErrNoGroup, h.Group)
	}
	id := int32(-1)
	if h.QueueID != nil {
		id = *h.QueueID
	}
	switch {
	case id < -1 || id >= topic.ReadQueues:
		return 0, 0, fmt.Errorf("%w: queue %d of topic %s does not exist, it has %d to read", mq.ErrInvalid, id, h.Topic, topic.ReadQueues)
	case id >= 0:
		return mq.QueueID(id), mq.QueueID(id) + 1, nil
	case h.Offset != nil && *h.Offset >= 0 && topic.ReadQueues > 1:
		return 0, 0, fmt.Errorf("%w: offset %d is about one queue, but no queueId says which of the %d of topic %s", mq.ErrInvalid, *h.Offset, topic.ReadQueues, h.Topic)
	}
	return 0, mq.QueueID(topic.ReadQueues), nil
}

// resetTarget is where a reset leads in one queue. Without force a group is not
// led on, only back.
func (a *API) resetTarget(h *protocol.ResetOffsetHeader, key mq.QueueKey) (mq.QueueOffset, error) {
	lo, hi := a.p.Store.MinOffset(key), a.p.Store.MaxOffset(key)
	var off mq.QueueOffset
	switch {
	case h.Offset != nil && *h.Offset >= 0:
		off = mq.QueueOffset(*h.Offset)
		if off < lo || off > hi {
			return 0, fmt.Errorf("%w: offset %d is not within queue %d of topic %s, which has %d to %d", mq.ErrSystem, off, key.ID, key.Topic, lo, hi)
		}
	case h.Timestamp < 0 || h.Timestamp == math.MaxInt64:
		off = hi
	default:
		var err error
		if off, err = a.p.Store.OffsetByTime(key, h.Timestamp, false); err != nil {
			return 0, err
		}
		off = min(max(off, lo), hi)
	}
	if h.Force != nil && !*h.Force {
		if now, ok := a.p.Offsets.Query(h.Group, key.Topic, key.ID); ok && now < off {
			off = max(now, lo)
		}
	}
	return off, nil
}

// pushReset tells the members of the group that are older than a version where
// to go on (220), and counts them and all members.
func (a *API) pushReset(h *protocol.ResetOffsetHeader, targets protocol.QueueTable[mq.QueueOffset], before int32) (told, all int) {
	now := time.Now()
	head := &protocol.ResetOffsetHeader{Topic: h.Topic, Group: h.Group, Timestamp: h.Timestamp, Force: h.Force}
	for _, m := range a.p.Clients.Members(h.Group) {
		all++
		conn, ok := m.Conn.(*server.Conn)
		if !ok || m.Version < resetSince || m.Version >= before {
			continue
		}
		cmd := remoting.NewRequest(int32(protocol.ResetConsumerClientOffset), protocol.EncodeFields(head)...)
		if cmd.Body = protocol.EncodeBody(&protocol.ResetOffsetBody{Offsets: targets}); remoting.Language(m.Language) == remoting.CPP {
			cmd.Body = protocol.EncodeBody(resetList(targets))
		}
		session := a.know(conn)
		session.tell(h.Group, h.Topic, now) // before its pulls are woken
		if err := conn.Oneway(cmd); err != nil {
			session.untell(h.Group, h.Topic)
			a.log.Warn("a client is not told of a reset, its next pull is", "client", m.ID, "group", h.Group, "topic", h.Topic, "error", err)
			continue
		}
		told++
	}
	return told, all
}

func (s *session) untell(group, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.told, [2]string{group, topic})
}

// resetList is the form for C++ clients.
func resetList(targets protocol.QueueTable[mq.QueueOffset]) *protocol.ResetOffsetList {
	list := &protocol.ResetOffsetList{}
	for q, off := range targets {
		list.Offsets = append(list.Offsets, protocol.ResetOffsetItem{BrokerName: q.BrokerName, Offset: off, QueueID: q.QueueID, Topic: q.Topic})
	}
	return list
}
