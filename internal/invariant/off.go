//go:build !invariants && !race

package invariant

import "sync"

// On reports whether checks are compiled in.
const On = false

// Check panics with the sentence unless ok.
func Check(ok bool, sentence string) {}

// Checkf panics with the formatted sentence unless ok.
func Checkf(ok bool, format string, args ...any) {}

// Locked panics when nobody holds mu. It cannot tell who does, but a function
// that needs the lock and is called without it is found out soon.
func Locked(mu *sync.Mutex) {}

// RLocked panics when nobody holds mu, neither for reading nor for writing.
func RLocked(mu *sync.RWMutex) {}

// WLocked panics when nobody holds mu for writing.
func WLocked(mu *sync.RWMutex) {}
