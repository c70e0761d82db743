package catalog

import (
	"context"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Table maps names to values. A value is immutable once it is in a table: put
// another one in its place. Methods are safe for concurrent use.
type Table[V any] struct {
	// save begins a save of a snapshot, which it owns. It is called under mu; what
	// it returns replaces the document, without mu.
	save func(entries map[string]*V, version mq.DataVersion) (write func() error)

	entries sync.Map // string to *V; stored to under mu only

	mu struct {
		sync.Mutex
		version mq.DataVersion
		count   int    // of entries
		edits   uint64 // made so far
		saved   uint64 // of them, in the document
		waiting []waiter
	}
	saving sync.Mutex    // held while the document is written; taken before mu
	poke   chan struct{} // capacity 1: there is something to save
}

// waiter is told when the document holds the first edits edits.
type waiter struct {
	edits uint64
	tell  func(error)
}

// New makes a table with what was loaded. save takes a snapshot, which it owns,
// together with whatever lies beside the entries and is changed within edits; the
// function it returns replaces the document and returns when it is durable.
func New[V any](loaded map[string]*V, version mq.DataVersion, save func(entries map[string]*V, version mq.DataVersion) (write func() error)) *Table[V] {
	t := &Table[V]{save: save, poke: make(chan struct{}, 1)}
	for name, v := range loaded {
		t.entries.Store(name, v)
	}
	t.mu.version, t.mu.count = version, len(loaded)
	return t
}

// Get returns the value of name, nil when there is none.
func (t *Table[V]) Get(name string) *V {
	v, ok := t.entries.Load(name)
	if !ok {
		return nil
	}
	return v.(*V)
}

// Version is the data version of the table as it is now.
func (t *Table[V]) Version() mq.DataVersion {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.version
}

// Snapshot copies the table, which no edit divides, with its version.
func (t *Table[V]) Snapshot() (map[string]*V, mq.DataVersion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshotLocked(), t.mu.version
}

func (t *Table[V]) snapshotLocked() map[string]*V {
	all := make(map[string]*V)
	t.entries.Range(func(name, v any) bool {
		all[name.(string)] = v.(*V)
		return true
	})
	return all
}

// Edit is a change under way. It ends with the function it was handed to.
type Edit[V any] struct {
	t       *Table[V]
	changed bool
}

// Get sees the table with the edit so far.
func (e *Edit[V]) Get(name string) *V { return e.t.Get(name) }

// Len is the number of entries with the edit so far.
func (e *Edit[V]) Len() int { return e.t.mu.count }

// Put gives name the value v.
func (e *Edit[V]) Put(name string, v *V) {
	if _, had := e.t.entries.Swap(name, v); !had {
		e.t.mu.count++
	}
	e.changed = true
}

// Delete removes name and reports whether it was there.
func (e *Edit[V]) Delete(name string) bool {
	if _, ok := e.t.entries.LoadAndDelete(name); !ok {
		return false
	}
	e.t.mu.count--
	e.changed = true
	return true
}

// Touch counts as a change of something that lives beside the entries and that
// is saved with them.
func (e *Edit[V]) Touch() { e.changed = true }

// Edit runs fn alone among edits and reports whether it changed something. It
// does not wait for the disk: call [Table.Save] for that.
func (t *Table[V]) Edit(fn func(e *Edit[V])) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &Edit[V]{t: t}
	fn(e)
	if !e.changed {
		return false
	}
	t.mu.version = t.mu.version.Next(time.Now().UnixMilli())
	t.mu.edits++
	select {
	case t.poke <- struct{}{}:
	default:
	}
	return true
}

// Save makes all edits made before the call durable.
func (t *Table[V]) Save() error {
	t.mu.Lock()
	want := t.mu.edits
	t.mu.Unlock()

	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	if t.mu.saved >= want {
		t.mu.Unlock()
		return nil // somebody else's save had ours with it
	}
	write, edits := t.save(t.snapshotLocked(), t.mu.version), t.mu.edits
	t.mu.Unlock()
	err := write()
	t.tell(edits, err)
	return err
}

// WhenSaved calls fn once: at once when nothing is unsaved, else from the save
// that has all edits made so far, with its error. It does not wait.
func (t *Table[V]) WhenSaved(fn func(error)) {
	t.mu.Lock()
	if t.mu.saved < t.mu.edits {
		t.mu.waiting = append(t.mu.waiting, waiter{t.mu.edits, fn})
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	fn(nil)
}

// tell ends a save of the first edits edits.
func (t *Table[V]) tell(edits uint64, err error) {
	t.mu.Lock()
	if err == nil {
		t.mu.saved = edits
	}
	n := 0 // waiting is in the order of edits
	for n < len(t.mu.waiting) && t.mu.waiting[n].edits <= edits {
		n++
	}
	told := t.mu.waiting[:n:n]
	t.mu.waiting = t.mu.waiting[n:]
	t.mu.Unlock()
	for _, w := range told {
		w.tell(err)
	}
}

// Pauses between saves that fail, growing from the first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// Run saves edits that nobody waits for, until ctx is done; then it saves what
// is left. A save that fails is tried again, and failed hears of it.
func (t *Table[V]) Run(ctx context.Context, failed func(error)) error {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return t.Save()
		case <-t.poke:
		}
		for {
			err := t.Save()
			if err == nil {
				pause = firstPause
				break
			}
			failed(err)
			select {
			case <-ctx.Done():
				return t.Save()
			case <-time.After(pause):
			}
			pause = min(2*pause, lastPause)
		}
	}
}
