package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// tuneRuntime sets what only a process of its own may set. Two more Ps than
// cores keep what waits for its millisecond from waiting for a core whose
// goroutine is in a page fault or a write. A broker's live heap is small beside
// what passes through it, so the collector may let it double twice before it
// works; the floor under that is a few MB.
func tuneRuntime() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
}
