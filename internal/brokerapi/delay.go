package brokerapi

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/storage"
)

// Bounds of answers about timed messages.
const (
	maxDelayCounts = 1000
	maxDelayTopics = 1000
)

func (a *API) delays() (*delay.Flow, error) {
	if a.p.Delay == nil {
		return nil, fmt.Errorf("%w: this broker delays no messages", mq.ErrUnsupported)
	}
	return a.p.Delay, nil
}

// listDelayed pages through pending timed messages by due time (31010).
func (a *API) listDelayed(_ *request, h *protocol.ListDelayedHeader) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	l := delay.Listing{From: h.From, To: cmp.Or(h.To, 1<<62), Topic: h.Topic, Max: int(cmp.Or(h.Max, 100))}
	if h.AfterSeq != nil {
		l.After = &delay.Cursor{Due: h.AfterDue, Seq: *h.AfterSeq}
	}
	list, next, err := f.List(l)
	if err != nil {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(delayedList(list, (*protocol.DelayedCursor)(next)))}, nil
}

// findDelayed finds them by key (31011).
func (a *API) findDelayed(_ *request, h *protocol.FindDelayedHeader) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	list, err := f.FindByKey(h.Topic, h.Key)
	if err != nil {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(delayedList(list, nil))}, nil
}

func delayedList(list []delay.Pending, next *protocol.DelayedCursor) *protocol.DelayedList {
	body := &protocol.DelayedList{Messages: []protocol.Delayed{}, Next: next}
	for i := range list {
		body.Messages = append(body.Messages, protocol.Delayed(list[i]))
	}
	return body
}

// countDelayed counts pending messages between times (31012).
func (a *API) countDelayed(_ *request, h *protocol.CountDelayedHeader) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	var at []int64
	if n := strings.Count(h.At, ","); n < 1 || n > maxDelayCounts {
		return answer{}, fmt.Errorf("%w: field at has %d times, want 2 to %d", mq.ErrInvalid, n+1, maxDelayCounts+1)
	}
	for text := range strings.SplitSeq(h.At, ",") {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || len(at) > 0 && ms < at[len(at)-1] {
			return answer{}, fmt.Errorf("%w: field at has %.40q at place %d, want ascending times in epoch ms", mq.ErrInvalid, text, len(at)+1)
		}
		at = append(at, ms)
	}
	timed, err := f.Counts(at)
	if err != nil {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(&protocol.DelayedCounts{At: at, Timed: timed, Levels: f.LevelCounts(at)})}, nil
}

// recallDelayed takes one back (31013).
func (a *API) recallDelayed(_ *request, h *protocol.DelayedHeader) (answer, error) {
	return a.changeDelayed(h, (*delay.Flow).Recall)
}

// rescheduleDelayed gives one another due time (31014).
func (a *API) rescheduleDelayed(_ *request, h *protocol.DelayedHeader) (answer, error) {
	if h.Due <= 0 {
		return answer{}, fmt.Errorf("%w: missing field due: the new due time in epoch ms", mq.ErrInvalid)
	}
	return a.changeDelayed(h, func(f *delay.Flow, n delay.Name) (storage.Appended, error) { return f.Reschedule(n, h.Due) })
}

// fireDelayed delivers one now (31015).
func (a *API) fireDelayed(_ *request, h *protocol.DelayedHeader) (answer, error) {
	return a.changeDelayed(h, (*delay.Flow).FireNow)
}

func (a *API) changeDelayed(h *protocol.DelayedHeader, change func(*delay.Flow, delay.Name) (storage.Appended, error)) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	n := delay.Name{Topic: h.Topic, Unique: h.Unique, Seq: delay.UnknownSeq}
	switch {
	case h.Seq != nil && *h.Seq < 0:
		return answer{}, fmt.Errorf("%w: field seq is %d, it must be 0 or more", mq.ErrInvalid, *h.Seq)
	case h.Seq != nil:
		n.Seq = *h.Seq
	case h.Unique == "":
		return answer{}, fmt.Errorf("%w: missing field uniqueKey or seq", mq.ErrInvalid)
	}
	at, err := change(f, n)
	if err != nil {
		return answer{}, err
	}
	if err := a.durable(at); err != nil {
		return answer{}, err
	}
	return answer{body: protocol.EncodeBody(&protocol.DelayedDone{Seq: at.Queue, Log: at.Log})}, nil
}

// listAside lists what could not be delivered (31016).
func (a *API) listAside(*request) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	body := &protocol.DelayedAsides{Total: f.Stats().Aside, Messages: []protocol.DelayedAside{}}
	for _, it := range f.Aside() {
		body.Messages = append(body.Messages, protocol.DelayedAside{
			Topic: cmp.Or(it.Topic, mq.TopicSchedule), Level: int(it.Level), Offset: it.Offset, Log: it.Log, Reason: it.Reason, Time: it.Time,
		})
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// delayState tells how delayed messages are (31017).
func (a *API) delayState(*request) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	s := f.Stats()
	body := &protocol.DelayState{
		Pending: s.Timed.Pending, Levels: s.Pending - s.Timed.Pending, Behind: s.Timed.Behind,
		PerSecond: s.Timed.PerSecond, Delivered: s.Timed.Delivered, Aside: s.Aside, Parked: []protocol.DelayParked{}, Topics: []protocol.DelayTopic{},
	}
	next := func(due int64) {
		if due > 0 && (body.NextDue == 0 || due < body.NextDue) {
			body.NextDue = due
		}
	}
	for _, l := range s.Levels {
		body.PerSecond += l.PerSecond
		body.Delivered += l.Delivered
		next(l.NextDue)
	}
	if p, ok := f.Oldest(); ok { // Stats may name one that was recalled
		body.First = new(protocol.Delayed(p))
		next(p.Due)
	}
	if body.NextDue > 0 {
		body.Overdue = max(0, time.Now().UnixMilli()-body.NextDue)
	}
	for _, p := range s.Parked[:min(len(s.Parked), maxDelayTopics)] {
		d := protocol.DelayParked{Topic: p.Destination.Topic, Queue: p.Destination.ID, Messages: p.Messages, Since: p.Since}
		if p.Err != nil {
			d.Error = p.Err.Error()
		}
		body.Parked = append(body.Parked, d)
	}
	for _, t := range f.Topics() {
		body.Topics = append(body.Topics, protocol.DelayTopic(t))
	}
	slices.SortFunc(body.Topics, func(x, y protocol.DelayTopic) int {
		return cmp.Or(cmp.Compare(y.Pending, x.Pending), cmp.Compare(x.Topic, y.Topic))
	})
	body.Topics = body.Topics[:min(len(body.Topics), maxDelayTopics)]
	minute, all := f.Lateness()
	body.Minute, body.All = lateness(&minute), lateness(&all)
	return answer{body: protocol.EncodeBody(body)}, nil
}

func lateness(s *metric.Snapshot) protocol.DelayLateness {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return protocol.DelayLateness{Count: s.Count, P50: ms(s.Quantile(0.5)), P99: ms(s.Quantile(0.99)), Max: ms(s.Max)}
}

// timerMetrics tells how many timed messages are pending for each topic (61), as
// RocketMQ counts them.
func (a *API) timerMetrics(*request) (answer, error) {
	now := time.Now().UnixMilli()
	body := &protocol.TimerMetrics{Pending: map[string]protocol.TimerMetric{}}
	if a.p.Delay != nil {
		body.DataVersion = mq.DataVersion{Timestamp: now, Counter: int64(a.p.Delay.Stats().Timed.Read)}
		for _, t := range a.p.Delay.Topics() {
			body.Pending[t.Topic] = protocol.TimerMetric{Count: t.Pending, Time: now}
		}
	}
	return answer{body: protocol.EncodeBody(body)}, nil
}

// timerCheckpoint tells how far timed messages are read and delivered (60): the seven
// numbers of RocketMQ's config/timercheck. There is no timer log, so its position is 0.
func (a *API) timerCheckpoint(*request) (answer, error) {
	f, err := a.delays()
	if err != nil {
		return answer{}, err
	}
	s := f.Stats()
	now := time.Now().UnixMilli()
	read := now
	if s.Timed.NextDue > 0 {
		read = min(read, s.Timed.NextDue)
	}
	var body []byte
	for _, n := range []int64{read / 1000 * 1000, 0, int64(s.Timed.Read), int64(s.Timed.Read), 0, now, int64(s.Timed.Read)} {
		body = binary.BigEndian.AppendUint64(body, uint64(n))
	}
	return answer{body: body}, nil
}

// timers tells of timed messages under RocketMQ's names: seconds the next is overdue,
// entries not read yet, messages pending, and rates.
func (a *API) timers(t map[string]string) {
	var s delay.TimedStats
	if a.p.Delay != nil {
		s = a.p.Delay.Stats().Timed
	}
	overdue := int64(0)
	if s.NextDue > 0 {
		overdue = max(0, time.Now().UnixMilli()-s.NextDue) / 1000
	}
	t["timerReadBehind"] = strconv.FormatInt(overdue, 10)
	t["timerOffsetBehind"] = strconv.FormatInt(s.Behind, 10)
	t["timerCongestNum"] = strconv.FormatInt(s.Pending, 10)
	t["timerEnqueueTps"], t["timerDequeueTps"] = decimal(s.Indexed), decimal(s.PerSecond)
}
