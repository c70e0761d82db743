package txn

import (
	"strconv"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// A mark says which halves are ended: a message in the op topic with the tag d,
// whose body lists their offsets, each with a comma behind it. A rollback is such a
// mark, written before it is answered. A commit is proven by its receipt; its mark
// is for RocketMQ, and waits for others to share a message with. A mark with a
// receipt says that a transaction that was given up is rolled back.

const markTag = "d"

// maxMark is the longest entry of a mark.
const maxMark = 24

// markProps is the property block of all marks.
var markProps = record.AppendProperty(record.AppendProperty(nil, mq.PropWait, "true"), mq.PropTags, markTag)

// marks are those to be written and those that RocketMQ would still have to read.
// Guarded by Flow.put.
type marks struct {
	body  []byte
	top   int64     // the highest offset in body
	since time.Time // when the first came

	// Marks that are written, oldest first: from where on, and the highest half they
	// name. When there are many, neighbours are taken together.
	spans []markSpan
	floor int64 // of spans
}

type markSpan struct{ off, top int64 }

// maxSpans bounds the memory.
const maxSpans = 1 << 16

func (m *marks) add(off int64, now time.Time) {
	if len(m.body) == 0 {
		m.since, m.top = now, off
	}
	m.body = append(strconv.AppendInt(m.body, off, 10), ',')
	m.top = max(m.top, off)
}

// written notes a mark that stands at off.
func (m *marks) written(off, top int64) {
	m.spans = append(m.spans, markSpan{off, top})
	if len(m.spans) < maxSpans {
		return
	}
	n := 0
	for i := 0; i+1 < len(m.spans); i += 2 {
		m.spans[n] = markSpan{m.spans[i].off, max(m.spans[i].top, m.spans[i+1].top)}
		n++
	}
	m.spans = m.spans[:n]
}

// restore begins with what RocketMQ's progress says: all marks from there on count
// until all halves of now are ended.
func (m *marks) restore(progress Offsets, t *halves, next int64) {
	off, ok := progress.Query(mq.GroupTrans, mq.TopicTransOp, 0)
	if ok {
		m.floor = int64(off)
	}
	m.spans = append(m.spans, markSpan{m.floor, next - 1})
}

// low is the first mark that names a half from lowHalf on; end is that of the queue.
func (m *marks) low(lowHalf, end int64) int64 {
	n := 0
	for n < len(m.spans) && m.spans[n].top < lowHalf {
		n++
	}
	m.spans = append(m.spans[:0], m.spans[n:]...)
	if len(m.spans) > 0 {
		end = min(end, m.spans[0].off)
	}
	m.floor = max(m.floor, end)
	return m.floor
}

// writeMarks writes what waits when it is time, or all of it.
func (f *Flow) writeMarks(all bool) error {
	f.gate.RLock()
	defer f.gate.RUnlock()
	f.put.Lock()
	defer f.put.Unlock()
	m := &f.put.marks
	if len(m.body) == 0 || !all && len(m.body) < f.cfg.MarkBytes && time.Since(m.since) < f.cfg.MarkInterval {
		return nil
	}
	_, err := f.writeMark()
	return err
}

// writeMarksGated writes all that waits; gate is held.
func (f *Flow) writeMarksGated() error {
	f.put.Lock()
	defer f.put.Unlock()
	_, err := f.writeMark()
	return err
}

// writeMark appends one message with all that waits; put is held. When it fails
// all of it still waits.
func (f *Flow) writeMark() (storage.Appended, error) {
	m := &f.put.marks
	if len(m.body) == 0 {
		return storage.Appended{}, nil
	}
	at, err := f.appendMark(m.body, markProps)
	if err != nil {
		return at, err
	}
	m.written(int64(at.Queue), m.top)
	m.body = m.body[:0]
	if cap(m.body) > 1<<20 {
		m.body = nil
	}
	return at, nil
}

func (f *Flow) appendMark(body, props []byte) (storage.Appended, error) {
	return f.p.Store.AppendInternal(&record.Message{
		Topic: mq.TopicTransOp, BornTime: time.Now().UnixMilli(), BornHost: f.cfg.StoreHost, StoreHost: f.cfg.StoreHost,
		Body: body, Properties: props,
	})
}
