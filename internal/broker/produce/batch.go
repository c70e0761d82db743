package produce

import (
	"bytes"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// acceptBatch stores all messages of a batch, or none: those that ask for a delay
// where they wait for it, the others with consecutive queue offsets. Each keeps
// its own property block as it came, but for what nobody may bring in from outside.
func (f *Flow) acceptBatch(req *Request, to place) (Result, mq.LogOffset, error) {
	if to.retry {
		return Result{}, 0, fmt.Errorf("%w: a batch can't go to the retry topic %s", mq.ErrIllegalMessage, req.Topic)
	}
	if err := f.checkSizes(req, to); err != nil {
		return Result{}, 0, err
	}
	var whole read // of the batch itself
	copyProperties(nil, req.Properties, &whole, false)
	if err := refuseItem(req, &whole, -1); err != nil {
		return Result{}, 0, err
	}

	s := scratches.Get().(*scratch)
	defer s.free()
	s.many, s.refs = s.many[:0], s.refs[:0]
	for item, err := range record.Batch(req.Body) {
		if err != nil {
			return Result{}, 0, err
		}
		n := len(s.many)
		if len(item.Body) == 0 {
			return Result{}, 0, fmt.Errorf("%w: item %d of the batch has no body", mq.ErrIllegalMessage, n)
		}
		if limit := record.MaxProperties - PropertyReserve; len(item.Properties) > limit {
			return Result{}, 0, fmt.Errorf("%w: the properties of item %d of the batch have %d bytes, the limit is %d",
				mq.ErrIllegalMessage, n, len(item.Properties), limit)
		}
		var r read
		s.props = copyProperties(s.props[:0], item.Properties, &r, false)
		if err := refuseItem(req, &r, n); err != nil {
			return Result{}, 0, err
		}
		props := item.Properties
		if r.dropped {
			props = bytes.Clone(s.props)
		}
		s.many = append(s.many, record.Message{})
		m := &s.many[n]
		f.fill(m, req, to)
		m.Flag, m.Body, m.Properties = item.Flag, item.Body, props
		if level, _ := r.level(); level > 0 || r.timed != "" {
			if err := f.delay.Retarget(m); err != nil {
				return Result{}, 0, fmt.Errorf("item %d of the batch: %w", n, err)
			}
		}
	}
	for i := range s.many {
		s.refs = append(s.refs, &s.many[i])
	}
	placed, err := f.store.AppendBatch(s.refs)
	if err != nil {
		return Result{}, 0, err
	}
	ids := make([]byte, 0, 33*len(placed))
	for i, at := range placed {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = append(ids, mq.MessageID(f.cfg.StoreHost, at.Log)...)
	}
	res := Result{MessageID: string(ids), Queue: to.queue, Offset: placed[0].Queue, Messages: len(placed), Tally: placed[0].Tally}
	if f.store.SyncFlush() && !whole.noWait {
		return res, placed[len(placed)-1].End, nil
	}
	return res, 0, nil
}

// refuseItem says no to what a batch can't hold, naming the part at fault: the
// item, or below 0 the batch itself, which says nothing for its items.
func refuseItem(req *Request, r *read, item int) error {
	what := "the batch"
	if item >= 0 {
		what = fmt.Sprintf("item %d of the batch", item)
	}
	level, err := r.level()
	tx := req.SysFlag.Tx()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case r.half || tx == mq.SysTxPrepared || tx == mq.SysTxRollback:
		return fmt.Errorf("%w: %s is transactional, which a batch can't be", mq.ErrIllegalMessage, what)
	case r.timed == mq.PropTimerDeleteKey:
		return fmt.Errorf("%w: %s would recall another message (property %s); send a recall request with its handle instead", mq.ErrIllegalMessage, what, r.timed)
	case item < 0 && level > 0:
		return fmt.Errorf("%w: %s asks for delay level %d (property %s); each of its items says so for itself", mq.ErrIllegalMessage, what, level, mq.PropDelay)
	case item < 0 && r.timed != "":
		return fmt.Errorf("%w: %s asks for a due time (property %s); each of its items says so for itself", mq.ErrIllegalMessage, what, r.timed)
	}
	return nil
}
