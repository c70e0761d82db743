package brokerapi

import (
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/stats"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// statsData shows one statistic over the last minute, hour and day (315). Those
// of the whole broker go by the cluster's name, as RocketMQ has it.
func (a *API) statsData(_ *request, h *protocol.StatsHeader) (answer, error) {
	if stats.Whole(h.Name) && h.Key != a.cfg.Cluster {
		return answer{}, fmt.Errorf("%w: the key of %s is the name of the cluster, %s, not %q", mq.ErrSystem, h.Name, a.cfg.Cluster, h.Key)
	}
	s, err := a.p.Stats.Stat(h.Name, h.Key)
	if err != nil {
		return answer{}, err
	}
	item := func(w stats.Window) protocol.StatsItem {
		return protocol.StatsItem{Mean: protocol.Number(s[w].Mean()), Sum: s[w].Sum, TPS: protocol.Number(s[w].Rate)}
	}
	return answer{body: protocol.EncodeBody(&protocol.BrokerStats{Day: item(stats.Day), Hour: item(stats.Hour), Minute: item(stats.Minute)})}, nil
}

// consumeTimeSpan shows from when to when the queues of a topic hold messages,
// and how far a group is in them (303).
func (a *API) consumeTimeSpan(_ *request, h *protocol.TimeSpanHeader) (answer, error) {
	t := a.p.Topics.Get(h.Topic)
	if t == nil {
		return answer{}, fmt.Errorf("%w: topic[%s] not exist", mq.ErrNoTopic, h.Topic)
	}
	body := &protocol.TimeSpans{Queues: []protocol.TimeSpan{}}
	for id := range mq.QueueID(t.WriteQueues) {
		body.Queues = append(body.Queues, a.timeSpan(h.Group, mq.QueueKey{Topic: t.Name, ID: id}))
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

func (a *API) timeSpan(group string, key mq.QueueKey) protocol.TimeSpan {
	at := func(off mq.QueueOffset) int64 {
		if millis, ok := a.p.Store.StoreTime(key, off); ok {
			return millis
		}
		return -1
	}
	lo, hi := a.p.Store.MinOffset(key), a.p.Store.MaxOffset(key)
	s := protocol.TimeSpan{Queue: a.queueOf(key.Topic, key.ID), Min: -1, Max: -1}
	if lo < hi {
		s.Min, s.Max = at(lo), at(hi-1)
	}
	s.Consumed = s.Min
	off, ok := a.p.Offsets.Query(group, key.Topic, key.ID)
	if ok && off > lo {
		s.Consumed = at(min(off, hi) - 1)
	}
	if next := max(off, lo); next < hi {
		if millis := at(next); millis >= 0 {
			s.Delay = max(0, time.Now().UnixMilli()-millis)
		}
	}
	s.MinText, s.MaxText, s.ConsumedText = spanText(s.Min), spanText(s.Max), spanText(s.Consumed)
	return s
}

// spanText writes a time as RocketMQ's tools do.
func spanText(millis int64) string {
	t := time.UnixMilli(millis)
	return fmt.Sprintf("%s:%03d", t.Format("2006-01-02#15:04:05"), t.Nanosecond()/int(time.Millisecond))
}

// haStatus tells of replicas (907): there are none.
func (a *API) haStatus(*request) (answer, error) {
	return answer{body: protocol.EncodeBody(&protocol.HAStatus{
		Replicas: []protocol.HAReplica{}, Master: a.cfg.BrokerID == 0, End: a.p.Store.MaxLog(),
	})}, nil
}
