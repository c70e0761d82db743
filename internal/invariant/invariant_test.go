package invariant

import (
	"sync"
	"testing"
)

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestChecksPanicExactlyWhenOnAndWrong(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var rw sync.RWMutex
	for _, c := range []struct {
		name  string
		f     func()
		wrong bool
	}{
		{"Check holds", func() { Check(true, "x") }, false},
		{"Check fails", func() { Check(false, "x") }, true},
		{"Checkf holds", func() { Checkf(true, "%d", 1) }, false},
		{"Checkf fails", func() { Checkf(false, "%d", 1) }, true},
		{"Locked without", func() { Locked(&mu) }, true},
		{"Locked with", func() { mu.Lock(); defer mu.Unlock(); Locked(&mu) }, false},
		{"RLocked without", func() { RLocked(&rw) }, true},
		{"RLocked with", func() { rw.RLock(); defer rw.RUnlock(); RLocked(&rw) }, false},
		{"RLocked with the writer's", func() { rw.Lock(); defer rw.Unlock(); RLocked(&rw) }, false},
		{"WLocked without", func() { WLocked(&rw) }, true},
		{"WLocked with a reader's", func() { rw.RLock(); defer rw.RUnlock(); WLocked(&rw) }, true},
		{"WLocked with", func() { rw.Lock(); defer rw.Unlock(); WLocked(&rw) }, false},
	} {
		if got, want := panics(c.f), On && c.wrong; got != want {
			t.Errorf("%s: panic %v, want %v (On=%v)", c.name, got, want, On)
		}
	}
	if !mu.TryLock() || !rw.TryLock() {
		t.Error("a check left its lock taken")
	}
}
