package txn

import (
	"errors"
	"fmt"
	"math"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// late deals with a verdict about a half that is not open under the offset that is
// named: it was ended, given up, or appended again and has another one now.
func (f *Flow) late(req *EndRequest) (mq.LogOffset, error) {
	id, err := f.named(req)
	if err != nil {
		return 0, err
	}
	// Each step of the way leads to a younger record, so this ends; the bound is for
	// a log that says otherwise.
	off := int64(req.Offset)
	for range 64 {
		f.mu.Lock()
		e, known := f.mu.recent.get(off)
		discard, left := f.mu.aside.byHalf[off]
		f.mu.Unlock()
		switch {
		case left:
			end, err := f.decideAbandoned(discard, req.Verdict)
			if !errors.Is(err, errNotOpen) {
				return end, err
			}
			continue
		case known && (e.state == StateCommitted || e.state == StateRolledBack):
			return f.again(req, e.state)
		case known && (e.state == StateResumed || e.state == copied):
			off = e.to
		case known && e.state == StateGivenUp:
			s, err := f.abandonedAs(e.to)
			if err != nil || s != StateResumed {
				return f.againOr(req, s, err)
			}
			if off, err = f.lifeOf(id, req.Group); err != nil {
				return f.searched(req, id, err)
			}
		default:
			if off, err = f.lifeOf(id, req.Group); err != nil {
				return f.searched(req, id, err)
			}
		}
		end, err := f.decide(off, req.Verdict)
		if !errors.Is(err, errNotOpen) {
			return end, err
		}
	}
	return 0, fmt.Errorf("BUG: %w: half message %d leads in circles", mq.ErrSystem, req.Offset)
}

// named reads the record that a verdict names, to see that it is the half message
// of that group, and returns the transaction's id. When the log does not hold the
// record any more the verdict's own id has to do.
func (f *Flow) named(req *EndRequest) (id string, err error) {
	v, release, err := f.p.Store.Record(req.Log)
	if err != nil {
		if req.ID != "" && req.Log >= 0 && req.Log < f.p.Store.MinLog() {
			return req.ID, nil
		}
		return "", fmt.Errorf("%w: find prepared transaction message failed: %w", mq.ErrSystem, err)
	}
	defer release()
	group, _ := v.Property(mq.PropProducerGroup)
	switch {
	case string(v.Topic()) != mq.TopicTransHalf:
		return "", fmt.Errorf("%w: find prepared transaction message failed: the message at log position %d is of topic %s", mq.ErrSystem, req.Log, v.Topic())
	case string(group) != req.Group:
		return "", fmt.Errorf("%w: the producer group wrong: half message %d was not sent by group %q", mq.ErrSystem, v.QueueOffset(), req.Group)
	case v.QueueOffset() != req.Offset:
		return "", fmt.Errorf("%w: the transaction state table offset wrong: the half message at log position %d is %d, not %d", mq.ErrSystem, req.Log, v.QueueOffset(), req.Offset)
	}
	unique, _ := v.Property(mq.PropUniqueKey)
	return string(unique), nil
}

// again answers a verdict on what is decided: the same is as good as done.
func (f *Flow) again(req *EndRequest, was State) (mq.LogOffset, error) {
	if was == req.Verdict.becomes() {
		f.count.repeated.Inc()
		return f.p.Store.MaxLog(), nil // durable with everything that is there now
	}
	f.count.contradicted.Inc()
	f.note.Warn("a verdict came after another one and does not count", "group", req.Group, "halfOffset", int64(req.Offset), "transaction", req.ID,
		"first", was.String(), "second", req.Verdict.becomes().String(), "fromCheck", req.FromCheck)
	return 0, fmt.Errorf("%w: the transaction is already decided: it was %s first", mq.ErrIllegalOperation, was)
}

func (f *Flow) againOr(req *EndRequest, was State, err error) (mq.LogOffset, error) {
	if err != nil {
		return 0, err
	}
	return f.again(req, was)
}

// searched answers from what the log says when no open half was found.
func (f *Flow) searched(req *EndRequest, id string, err error) (mq.LogOffset, error) {
	if !errors.Is(err, errNotOpen) {
		return 0, err
	}
	was, err := f.outcome(id, req.Group)
	if err != nil {
		return 0, err
	}
	return f.again(req, was)
}

// errForgotten says that it is known that a transaction ended, and not how.
func errForgotten(err error) error {
	return fmt.Errorf("%w: the transaction is already decided, and how cannot be said any more: %w", mq.ErrIllegalOperation, err)
}

// lives calls fn for each record of the half topic that is a copy of the
// transaction, newest first, until fn returns false.
func (f *Flow) lives(id, group string, fn func(v record.View) bool) error {
	if id == "" {
		return errForgotten(errors.New("the message has no unique key"))
	}
	hits, err := f.p.Store.Query(mq.TopicTransHalf, id, 0, 0, math.MaxInt64)
	if err != nil {
		return errForgotten(err)
	}
	defer hits.Release()
	for _, v := range hits.Records {
		producers, _ := v.Property(mq.PropProducerGroup)
		unique, _ := v.Property(mq.PropUniqueKey)
		if string(producers) == group && string(unique) == id && !fn(v) {
			break
		}
	}
	return nil
}

// lifeOf finds the half that a transaction is now, errNotOpen when it is none.
func (f *Flow) lifeOf(id, group string) (int64, error) {
	found := int64(-1)
	err := f.lives(id, group, func(v record.View) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.mu.halves.find(int64(v.QueueOffset())) != nil {
			found = int64(v.QueueOffset())
		} else if _, left := f.mu.aside.byHalf[int64(v.QueueOffset())]; left {
			found = int64(v.QueueOffset())
		}
		return found < 0
	})
	if err == nil && found < 0 {
		err = errNotOpen
	}
	return found, err
}

// outcome looks into the log for how a transaction ended: what was committed names
// the place of a copy that it was made from, in its topic or, delayed, in one of
// those where messages wait. It is younger than that copy, so when the log holds a copy and no
// commit there was none.
func (f *Flow) outcome(id, group string) (State, error) {
	places := map[mq.LogOffset]bool{}
	topic := ""
	err := f.lives(id, group, func(v record.View) bool {
		places[v.LogOffset()] = true
		if real, ok := v.Property(mq.PropRealTopic); ok && topic == "" {
			topic = string(real)
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	if len(places) == 0 {
		return 0, errForgotten(errors.New("its messages are gone from the log"))
	}
	committed := false
	for _, in := range []string{mq.TopicTransDiscard, topic, mq.TopicSchedule, mq.TopicTimer} {
		if in == "" {
			continue
		}
		hits, err := f.p.Store.Query(in, id, 0, 0, math.MaxInt64)
		if err != nil {
			return 0, errForgotten(err)
		}
		for _, v := range hits.Records {
			if in == mq.TopicTransDiscard {
				places[v.LogOffset()] = true
			} else if v.SysFlag().Tx() == mq.SysTxCommit && places[v.PreparedOffset()] {
				committed = true
			}
		}
		hits.Release()
	}
	if committed {
		return StateCommitted, nil
	}
	return StateRolledBack, nil
}
