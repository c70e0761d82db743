package metric

import (
	"sync/atomic"
	"time"
)

// Tally counts what happens in one place: how many things, of what size, in how
// many calls that took how long. Who works there keeps a pointer to it, so that
// counting looks nothing up. The zero Tally is ready, a nil one counts nothing; it
// must not be copied.
type Tally struct {
	things atomic.Int64
	bytes  atomic.Int64
	extra  atomic.Int64 // things beyond the first of their call
	nanos  atomic.Int64
	of     *Counter // what counts the things, too, or nil
}

// CountIn has the things of t counted in another counter, too. It comes before
// the first Add.
func (t *Tally) CountIn(of *Counter) { t.of = of }

// Add counts one call that brought n things of so many bytes together.
func (t *Tally) Add(n, bytes int64) {
	if t == nil {
		return
	}
	t.things.Add(n)
	t.bytes.Add(bytes)
	if n != 1 {
		t.extra.Add(n - 1)
	}
	if t.of != nil {
		t.of.Add(n)
	}
}

// Took adds the time of a call, which need not have ended when it was counted.
func (t *Tally) Took(d time.Duration) {
	if t != nil {
		t.nanos.Add(int64(max(d, 0)))
	}
}

// TallyValues are what a [Tally] holds.
type TallyValues struct {
	Things, Bytes, Calls int64
	Time                 time.Duration
}

// Values reads the tally. What is counted meanwhile is in some of them or in
// none.
func (t *Tally) Values() TallyValues {
	extra := t.extra.Load()
	things := t.things.Load()
	return TallyValues{Things: things, Bytes: t.bytes.Load(), Calls: things - extra, Time: time.Duration(t.nanos.Load())}
}
