package txn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// halfQueue, markQueue and discardQueue are where RocketMQ keeps halves, marks and
// those given up: one queue each.
var (
	halfQueue    = mq.QueueKey{Topic: mq.TopicTransHalf}
	markQueue    = mq.QueueKey{Topic: mq.TopicTransOp}
	discardQueue = mq.QueueKey{Topic: mq.TopicTransDiscard}
)

// half is an open half message, or one that was open until a moment ago.
type half struct {
	off   int64 // in the half queue
	pos   mq.LogOffset
	due   int64 // of the next check, ms
	born  int64 // ms
	group int32
	topic int32
	tries uint16
	flags flags
}

type flags uint16

const (
	closed  flags = 1 << iota
	dirty         // the journal does not say what is true now
	saved         // the journal says it is open
	timed         // in the due-time queue
	waiting       // in the line of its group: a check is due
	asked         // a check was sent and not answered yet
)

const maxTries = math.MaxUint16

func (h *half) is(f flags) bool { return h.flags&f != 0 }

// halves is all open half messages, by offset. Who is closed stays until the
// journal knows.
type halves struct {
	list   []half // by off, and so by pos
	head   int    // all before it are closed
	open   int
	groups names
	topics names
	dirty  []int64
}

// names gives short numbers to names that are used, and counts their users.
type names struct {
	ids  map[string]int32
	list []named
	free []int32
}

type named struct {
	text  string
	users int64
}

func (n *names) use(text string) int32 {
	if id, ok := n.ids[text]; ok {
		n.list[id].users++
		return id
	}
	if n.ids == nil {
		n.ids = map[string]int32{}
	}
	text = strings.Clone(text)
	id := int32(len(n.list))
	if k := len(n.free); k > 0 {
		id, n.free = n.free[k-1], n.free[:k-1]
		n.list[id] = named{text, 1}
	} else {
		n.list = append(n.list, named{text, 1})
	}
	n.ids[text] = id
	return id
}

func (n *names) drop(id int32) {
	e := &n.list[id]
	if e.users--; e.users == 0 {
		delete(n.ids, e.text)
		e.text = ""
		n.free = append(n.free, id)
	}
}

func (n *names) text(id int32) string { return n.list[id].text }

// counts is how many users each name has.
func (n *names) counts() map[string]int64 {
	out := make(map[string]int64, len(n.ids))
	for text, id := range n.ids {
		out[text] = n.list[id].users
	}
	return out
}

func (t *halves) index(off int64) (int, bool) {
	if n := len(t.list); n == 0 || t.list[n-1].off < off {
		return n, false
	}
	return slices.BinarySearchFunc(t.list, off, func(h half, off int64) int { return cmp.Compare(h.off, off) })
}

// find returns an open half, good until the next add, or nil.
func (t *halves) find(off int64) *half {
	if i, ok := t.index(off); ok && !t.list[i].is(closed) {
		return &t.list[i]
	}
	return nil
}

// at finds an open half by its place in the log.
func (t *halves) at(pos mq.LogOffset) *half {
	i, ok := slices.BinarySearchFunc(t.list, pos, func(h half, pos mq.LogOffset) int { return cmp.Compare(h.pos, pos) })
	if ok && !t.list[i].is(closed) {
		return &t.list[i]
	}
	return nil
}

// add takes in an open half, or replaces what is known of it.
func (t *halves) add(h half, group, topic string) *half {
	i, ok := t.index(h.off)
	switch {
	case ok && !t.list[i].is(closed):
		t.groups.drop(t.list[i].group)
		t.topics.drop(t.list[i].topic)
		t.open--
	case ok:
	default:
		t.list = slices.Insert(t.list, i, half{})
		t.head = min(t.head, i)
	}
	h.group, h.topic = t.groups.use(group), t.topics.use(topic)
	t.list[i] = h
	t.open++
	return &t.list[i]
}

// touch notes that the journal has to hear of h.
func (t *halves) touch(h *half) {
	if !h.is(dirty) {
		h.flags |= dirty
		t.dirty = append(t.dirty, h.off)
	}
}

// close ends a half.
func (t *halves) close(h *half) {
	h.flags |= closed
	h.flags &^= waiting | asked
	t.groups.drop(h.group)
	t.topics.drop(h.topic)
	t.open--
	if h.is(saved) {
		t.touch(h)
	}
	for t.head < len(t.list) && t.list[t.head].is(closed) {
		t.head++
	}
}

// settled takes the dirty marks off; what the journal was just told is true.
func (t *halves) settled() {
	for _, off := range t.dirty {
		i, ok := t.index(off)
		if !ok {
			continue
		}
		h := &t.list[i]
		h.flags &^= dirty
		if h.is(closed) {
			h.flags &^= saved
		} else {
			h.flags |= saved
		}
	}
	t.dirty = t.dirty[:0]
	t.prune()
}

// prune forgets closed halves when they are many.
func (t *halves) prune() {
	if len(t.list) < 2*t.open+1024 {
		return
	}
	t.list = slices.DeleteFunc(t.list, func(h half) bool { return h.is(closed) && !h.is(dirty|saved) })
	if cap(t.list) > 4*len(t.list)+4096 {
		t.list = slices.Clone(t.list)
	}
	t.head = 0
	for t.head < len(t.list) && t.list[t.head].is(closed) {
		t.head++
	}
}

// lowest returns the oldest open half, nil when there is none.
func (t *halves) lowest() *half {
	if t.head < len(t.list) {
		return &t.list[t.head]
	}
	return nil
}

// halfOf reads a half message from its record. The names alias the record.
func halfOf(v record.View, cfg *Config) (h half, group, topic string, err error) {
	switch {
	case string(v.Topic()) != mq.TopicTransHalf || v.QueueID() != 0:
		return h, "", "", fmt.Errorf("the record is message %d of %s/%d", v.QueueOffset(), v.Topic(), v.QueueID())
	case v.SysFlag().Tx() != 0:
		return h, "", "", fmt.Errorf("it is no half message: its flag is %#x", int32(v.SysFlag()))
	}
	if _, err := destinationOf(v.Properties()); err != nil {
		return h, "", "", err
	}
	h = half{off: int64(v.QueueOffset()), pos: v.LogOffset(), born: bornBy(v.BornTime(), v.StoreTime()), tries: triesOf(v.Properties())}
	h.due = firstCheck(v.Properties(), v.BornTime(), v.StoreTime(), h.tries, cfg)
	real, _ := v.Property(mq.PropRealTopic)
	producers, _ := v.Property(mq.PropProducerGroup)
	return h, bin.String(producers), bin.String(real), nil
}

// destinationOf is where a half message is to go. The string aliases props.
func destinationOf(props []byte) (mq.QueueKey, error) {
	topic, ok := record.Property(props, mq.PropRealTopic)
	if !ok {
		return mq.QueueKey{}, fmt.Errorf("it has no destination (property %s)", mq.PropRealTopic)
	}
	if name := string(topic); name == mq.TopicTransHalf || name == mq.TopicTransOp || name == mq.TopicTransDiscard {
		return mq.QueueKey{}, fmt.Errorf("its destination is %s", name)
	}
	value, _ := record.Property(props, mq.PropRealQueueID)
	queue, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || queue < 0 {
		return mq.QueueKey{}, fmt.Errorf("its destination queue (property %s) is %q", mq.PropRealQueueID, value)
	}
	return mq.QueueKey{Topic: bin.String(topic), ID: mq.QueueID(queue)}, nil
}

func number(props []byte, name string) (int64, bool) {
	value, ok := record.Property(props, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(bin.String(value), 10, 64)
	return n, err == nil
}

// bornBy is when a message was born, by a producer's clock that may be wrong.
func bornBy(born, stored int64) int64 {
	if born <= 0 || born > stored {
		return stored
	}
	return born
}

func triesOf(props []byte) uint16 {
	n, _ := number(props, mq.PropCheckTimes)
	return uint16(min(max(n, 0), maxTries))
}

// maxImmunity bounds what a producer may ask for, so that times can be added.
const maxImmunity = 100 * 365 * 24 * time.Hour

// immunity is how long after its birth a message is not asked about.
func immunity(props []byte, timeout time.Duration) int64 {
	n, ok := number(props, mq.PropCheckImmunity)
	if !ok || n < 0 {
		return timeout.Milliseconds()
	}
	return min(n, int64(maxImmunity/time.Second)) * 1000
}

// firstCheck is when a half message of which only the record is known is asked
// about next. A copy that RocketMQ made for a check was made when it sent it; one
// that it made in the time of immunity counts from the birth.
func firstCheck(props []byte, born, stored int64, tries uint16, cfg *Config) int64 {
	if due, ok := number(props, mq.PropTxDue); ok {
		return due
	}
	if tries > 0 {
		return stored + cfg.Interval.Milliseconds()
	}
	from := stored
	if _, copied := record.Property(props, mq.PropPreparedOffset); copied {
		from = min(born, stored)
	}
	return from + immunity(props, cfg.Timeout)
}
