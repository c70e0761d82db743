package txn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

var _ Service = (*Flow)(nil)

// List implements Service.
func (f *Flow) List(ctx context.Context, q Filter) (Page, error) {
	if q.Max < 1 || q.Max > MaxPage {
		return Page{}, fmt.Errorf("%w: a list holds 1 to %d transactions, not %d", mq.ErrInvalid, MaxPage, q.Max)
	}
	if q.GivenUp {
		return f.listAbandoned(ctx, q)
	}
	page := Page{Next: -1}
	after := int64(q.After)
	for {
		part, total := f.openAfter(after, q, q.Max+1-len(page.Halves))
		page.Total = total
		for _, h := range part {
			if err := ctx.Err(); err != nil {
				return page, err
			}
			after = h.off
			if len(page.Halves) == q.Max {
				page.Next = page.Halves[q.Max-1].Offset
				return page, nil
			}
			if got, _, err := f.describe(h); err == nil {
				page.Halves = append(page.Halves, got)
			} // otherwise it ended meanwhile and its record is gone
		}
		if len(part) == 0 {
			return page, nil
		}
	}
}

// openAfter returns open halves behind an offset that pass a filter.
func (f *Flow) openAfter(after int64, q Filter, most int) ([]half, int64) {
	latest := int64(math.MaxInt64)
	if q.MinAge > 0 {
		latest = f.timer.Now() - q.MinAge.Milliseconds()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.mu.halves
	group, topic := int32(-1), int32(-1)
	for _, n := range []struct {
		name string
		of   *names
		id   *int32
	}{{q.Group, &t.groups, &group}, {q.Topic, &t.topics, &topic}} {
		if n.name == "" {
			continue
		}
		id, ok := n.of.ids[n.name]
		if !ok {
			return nil, int64(t.open)
		}
		*n.id = id
	}
	var out []half
	i, _ := t.index(after + 1)
	for i = max(i, t.head); i < len(t.list) && len(out) < most; i++ {
		h := &t.list[i]
		if h.is(closed) || h.born > latest || group >= 0 && h.group != group || topic >= 0 && h.topic != topic {
			continue
		}
		out = append(out, *h)
	}
	return out, int64(t.open)
}

// describe reads the record of an open half.
func (f *Flow) describe(h half) (Half, []byte, error) {
	got, raw, err := f.read(h.pos)
	if err != nil {
		return got, nil, err
	}
	got.State, got.Tries, got.NextCheck, got.Waiting = StateOpen, int(h.tries), h.due, h.is(waiting)
	return got, raw, nil
}

func (f *Flow) read(pos mq.LogOffset) (Half, []byte, error) {
	v, release, err := f.record(pos)
	if err != nil {
		return Half{}, nil, err
	}
	defer release()
	text := func(name string) string {
		value, _ := v.Property(name)
		return string(value)
	}
	got := Half{
		Offset: v.QueueOffset(), Log: v.LogOffset(), ID: text(mq.PropUniqueKey), MessageID: v.MessageID(), Group: text(mq.PropProducerGroup),
		Topic: text(mq.PropRealTopic), Keys: text(mq.PropKeys), Tags: text(mq.PropTags), Client: text(mq.PropTxClient),
		Born: v.BornTime(), Stored: v.StoreTime(), Size: len(v), Tries: int(triesOf(v.Properties())),
	}
	if dest, err := destinationOf(v.Properties()); err == nil {
		got.Queue = dest.ID
	}
	return got, bytes.Clone(v), nil
}

func (f *Flow) listAbandoned(ctx context.Context, q Filter) (Page, error) {
	page := Page{Next: -1}
	after := int64(q.After)
	for {
		f.mu.Lock()
		a := &f.mu.aside
		page.Total = int64(a.open)
		i, _ := a.index(after + 1)
		part := append([]abandoned(nil), a.list[i:min(len(a.list), i+MaxPage)]...)
		f.mu.Unlock()
		for _, x := range part {
			if err := ctx.Err(); err != nil {
				return page, err
			}
			after = x.off
			if x.state != StateGivenUp && !q.Resolved {
				continue
			}
			got, _, err := f.describeAbandoned(x)
			if err != nil || q.Group != "" && got.Group != q.Group || q.Topic != "" && got.Topic != q.Topic ||
				q.MinAge > 0 && got.Born > f.timer.Now()-q.MinAge.Milliseconds() {
				continue
			}
			if len(page.Halves) == q.Max {
				page.Next = page.Halves[q.Max-1].Offset
				return page, nil
			}
			page.Halves = append(page.Halves, got)
		}
		if len(part) == 0 {
			return page, nil
		}
	}
}

func (f *Flow) describeAbandoned(x abandoned) (Half, []byte, error) {
	got, raw, err := f.read(x.pos)
	got.State, got.Decided = x.state, x.decided
	return got, raw, err
}

// Show implements Service.
func (f *Flow) Show(_ context.Context, ref Ref) (Half, []byte, error) {
	h, x, err := f.lookup(ref)
	switch {
	case err != nil:
		return Half{}, nil, err
	case x != nil:
		return f.describeAbandoned(*x)
	}
	return f.describe(*h)
}

// lookup finds what ref names: an open half or one that was given up.
func (f *Flow) lookup(ref Ref) (*half, *abandoned, error) {
	if ref.ID != "" {
		return f.lookupID(ref.ID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ref.GivenUp {
		if x := f.mu.aside.find(int64(ref.Offset)); x != nil {
			got := *x
			return nil, &got, nil
		}
		return nil, nil, fmt.Errorf("%w: no transaction that was given up lies at offset %d of %s", mq.ErrNotFound, ref.Offset, mq.TopicTransDiscard)
	}
	if h := f.mu.halves.find(int64(ref.Offset)); h != nil {
		got := *h
		return &got, nil, nil
	}
	if e, ok := f.mu.recent.get(int64(ref.Offset)); ok {
		return nil, nil, fmt.Errorf("%w: half message %d is not open any more: %s", mq.ErrNotFound, ref.Offset, e.state)
	}
	return nil, nil, fmt.Errorf("%w: half message %d is not open", mq.ErrNotFound, ref.Offset)
}

// lookupID finds a transaction by its id: the open one, or else the latest that
// was given up.
func (f *Flow) lookupID(id string) (*half, *abandoned, error) {
	var h *half
	var x *abandoned
	known := false
	for _, topic := range []string{mq.TopicTransHalf, mq.TopicTransDiscard} {
		hits, err := f.p.Store.Query(topic, id, 0, 0, math.MaxInt64)
		if err != nil {
			return nil, nil, err
		}
		for _, v := range hits.Records {
			if unique, _ := v.Property(mq.PropUniqueKey); string(unique) != id {
				continue
			}
			known = true
			f.mu.Lock()
			if topic == mq.TopicTransDiscard {
				if got := f.mu.aside.find(int64(v.QueueOffset())); got != nil && (x == nil || x.state != StateGivenUp) {
					x = &abandoned{}
					*x = *got
				}
			} else if got := f.mu.halves.find(int64(v.QueueOffset())); got != nil && h == nil {
				h = &half{}
				*h = *got
			}
			f.mu.Unlock()
		}
		hits.Release()
		if h != nil {
			return h, nil, nil
		}
	}
	switch {
	case x != nil:
		return nil, x, nil
	case known:
		return nil, nil, fmt.Errorf("%w: transaction %s is not open any more", mq.ErrNotFound, id)
	}
	return nil, nil, fmt.Errorf("%w: there is no transaction %s", mq.ErrNotFound, id)
}

// Resolve implements Service.
func (f *Flow) Resolve(_ context.Context, ref Ref, a Action) (Half, error) {
	if a < Commit || a > Resume {
		return Half{}, fmt.Errorf("%w: unknown action", mq.ErrInvalid)
	}
	h, x, err := f.lookup(ref)
	if err != nil {
		return Half{}, err
	}
	verdict := VerdictCommit
	if a == Rollback {
		verdict = VerdictRollback
	}
	var got Half
	switch {
	case x != nil && a == Resume:
		got, err = f.resume(*x)
	case x != nil:
		if got, _, err = f.describeAbandoned(*x); err == nil {
			_, err = f.decideAbandoned(x.off, verdict)
			got.State, got.Decided = verdict.becomes(), time.Now().UnixMilli()
		}
	case a == Resume:
		got, err = f.askAnew(*h)
	default:
		if got, _, err = f.describe(*h); err == nil {
			_, err = f.decide(h.off, verdict)
			got.State, got.Decided, got.NextCheck, got.Waiting = verdict.becomes(), time.Now().UnixMilli(), 0, false
		}
	}
	if errors.Is(err, errNotOpen) {
		return got, fmt.Errorf("%w: the transaction is already decided", mq.ErrIllegalOperation)
	}
	if err != nil {
		return got, err
	}
	f.note.Info("an operator decided a transaction", "action", a.String(), "transaction", got.ID, "group", got.Group, "topic", got.Topic, "givenUp", x != nil)
	return got, nil
}

func (f *Flow) resume(x abandoned) (Half, error) {
	off, err := f.resumeAbandoned(x.off)
	if err != nil {
		return Half{}, err
	}
	h, _, err := f.lookup(Ref{Offset: mq.QueueOffset(off)})
	if err != nil {
		got, _, err := f.describeAbandoned(x) // it is decided again already
		got.State = StateResumed
		return got, err
	}
	got, _, err := f.describe(*h)
	return got, err
}

// askAnew gives an open half all its tries back and has it asked about now.
func (f *Flow) askAnew(h half) (Half, error) {
	f.mu.Lock()
	n := f.mu.halves.find(h.off)
	if n == nil {
		f.mu.Unlock()
		return Half{}, errNotOpen
	}
	n.tries = 0
	f.mu.halves.touch(n)
	if !n.is(waiting) {
		f.unschedule(n)
		f.releaseLocked(n, true)
		n.due = f.timer.Now()
		f.schedule(n)
	}
	h = *n
	f.mu.Unlock()
	got, _, err := f.describe(h)
	return got, err
}

// ResumeMessage is RESUME_CHECK_HALF_MESSAGE: it names a message by its offset
// message id or by its unique key.
func (f *Flow) ResumeMessage(ctx context.Context, id string) error {
	_, at, err := mq.ParseMessageID(id)
	if err == nil {
		v, release, err := f.p.Store.Record(at)
		if err == nil {
			ref, ok := refOf(v)
			release()
			if !ok {
				return fmt.Errorf("%w: message %s is of topic %s, no transaction", mq.ErrSystem, id, v.Topic())
			}
			_, err = f.Resolve(ctx, ref, Resume)
			return err
		}
	}
	if _, err := f.Resolve(ctx, Ref{ID: id}, Resume); err != nil {
		return fmt.Errorf("%w: message %s: %w", mq.ErrSystem, id, err)
	}
	return nil
}

func refOf(v record.View) (Ref, bool) {
	switch string(v.Topic()) {
	case mq.TopicTransHalf:
		return Ref{Offset: v.QueueOffset()}, true
	case mq.TopicTransDiscard:
		return Ref{GivenUp: true, Offset: v.QueueOffset()}, true
	}
	return Ref{}, false
}
