//go:build invariants || race

package invariant

import (
	"fmt"
	"sync"
)

// On reports whether checks are compiled in.
const On = true

// Check panics with the sentence unless ok.
func Check(ok bool, sentence string) {
	if !ok {
		panic("BUG: " + sentence)
	}
}

// Checkf panics with the formatted sentence unless ok.
func Checkf(ok bool, format string, args ...any) {
	if !ok {
		panic("BUG: " + fmt.Sprintf(format, args...))
	}
}

// Locked panics when nobody holds mu. It cannot tell who does, but a function
// that needs the lock and is called without it is found out soon.
func Locked(mu *sync.Mutex) {
	if mu.TryLock() {
		mu.Unlock()
		panic("BUG: the lock must be held here")
	}
}

// RLocked panics when nobody holds mu, neither for reading nor for writing.
func RLocked(mu *sync.RWMutex) {
	if mu.TryLock() {
		mu.Unlock()
		panic("BUG: the lock must be held here, for reading at least")
	}
}

// WLocked panics when nobody holds mu for writing.
func WLocked(mu *sync.RWMutex) {
	if mu.TryRLock() {
		mu.RUnlock()
		panic("BUG: the lock must be held here for writing")
	}
}
