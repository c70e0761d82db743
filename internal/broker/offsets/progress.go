package offsets

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
)

// key names a pair in "topic@group" order, which is how the file joins it.
type key struct{ topic, group string }

// pairs maps pairs to progress. Looking up takes no lock and allocates nothing.
type pairs struct {
	all sync.Map // key to *progress
}

// progress is one pair's offsets. A pair that was deleted while somebody commits
// to it takes the commit with it.
type progress struct {
	mu struct {
		sync.Mutex
		queues []position // in the order of ids
	}
}

type position struct {
	id  mq.QueueID
	off mq.QueueOffset
}

func byID(p position, id mq.QueueID) int { return cmp.Compare(p.id, id) }

func (t *pairs) get(k key) *progress {
	if p, ok := t.all.Load(k); ok {
		return p.(*progress)
	}
	return nil
}

func (t *pairs) query(k key, id mq.QueueID) (mq.QueueOffset, bool) {
	p := t.get(k)
	if p == nil {
		return mq.UnknownOffset, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := slices.BinarySearchFunc(p.mu.queues, id, byID)
	if !ok {
		return mq.UnknownOffset, false
	}
	return p.mu.queues[i].off, true
}

// set puts an offset and reports whether that changed something.
func (t *pairs) set(k key, id mq.QueueID, off mq.QueueOffset) bool {
	return t.put(k, id, off, false)
}

// put is set; forward leaves an offset that is higher already.
func (t *pairs) put(k key, id mq.QueueID, off mq.QueueOffset, forward bool) bool {
	p := t.get(k)
	if p == nil {
		// The strings may be views into a frame.
		k = key{strings.Clone(k.topic), strings.Clone(k.group)}
		made, _ := t.all.LoadOrStore(k, &progress{})
		p = made.(*progress)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := slices.BinarySearchFunc(p.mu.queues, id, byID)
	if !ok {
		p.mu.queues = slices.Insert(p.mu.queues, i, position{id, off})
		return true
	}
	if had := p.mu.queues[i].off; had == off || forward && had > off {
		return false
	}
	p.mu.queues[i].off = off
	return true
}

// queues copies the offsets of one pair, nil when there is none.
func (t *pairs) queues(k key) map[mq.QueueID]mq.QueueOffset {
	p := t.get(k)
	if p == nil {
		return nil
	}
	return p.copy()
}

func (p *progress) copy() map[mq.QueueID]mq.QueueOffset {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := make(map[mq.QueueID]mq.QueueOffset, len(p.mu.queues))
	for _, q := range p.mu.queues {
		m[q.id] = q.off
	}
	return m
}

// deleteIf removes the pairs that match and reports whether there were any.
func (t *pairs) deleteIf(match func(key) bool) bool {
	found := false
	t.each(func(k key, _ *progress) {
		if match(k) {
			t.all.Delete(k)
			found = true
		}
	})
	return found
}

func (t *pairs) each(fn func(key, *progress)) {
	t.all.Range(func(k, p any) bool {
		fn(k.(key), p.(*progress))
		return true
	})
}
