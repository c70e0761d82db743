package timer

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Precise returns a waiter that wakes within about a tenth of a millisecond: it
// sleeps in the kernel, on a thread that the waiting goroutine keeps for itself.
// Go's own timers come up to a millisecond late on an idle machine, because the
// runtime sleeps in whole milliseconds, and tens of milliseconds late when all
// processors are busy. While nothing is pending no thread sleeps in the kernel.
//
// With GOMAXPROCS equal to the cores and all of them busy, the scheduler delays
// even the goroutine that is awake; a server sets GOMAXPROCS two higher.
func Precise() Waiter {
	return &precise{plain: plain{now: time.Now, wake: make(chan struct{}, 1)}}
}

type precise struct {
	plain
	asleep atomic.Bool // in the kernel or about to be, so that Wake must write

	mu struct {
		sync.Mutex
		event int // eventfd plus one, 0 when there is none
	}
}

func (p *precise) Start() (done func(), err error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make eventfd: %w", err)
	}
	p.mu.Lock()
	p.mu.event = fd + 1
	p.mu.Unlock()
	runtime.LockOSThread()
	// By default the kernel rounds the ends of sleeps by 50 µs. Not being allowed
	// to change that costs just so much.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) // the default
		runtime.UnlockOSThread()
		p.mu.Lock()
		p.mu.event = 0
		p.mu.Unlock()
		_ = unix.Close(fd)
	}, nil
}

func (p *precise) Wait(d time.Duration) {
	if d < 0 {
		p.plain.Wait(d)
		return
	}
	p.asleep.Store(true)
	defer p.asleep.Store(false)
	// A Wake that came before the flag was up is in the channel, and nowhere else.
	select {
	case <-p.wake:
		return
	default:
	}
	p.mu.Lock()
	fd := p.mu.event - 1
	p.mu.Unlock()
	ts := unix.NsecToTimespec(int64(d))
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, _ := unix.Ppoll(poll, &ts, nil); n > 0 {
		var b [8]byte
		_, _ = unix.Read(fd, b[:])
	}
}

func (p *precise) Wake() {
	p.plain.Wake()
	if !p.asleep.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.event > 0 {
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(p.mu.event-1, one[:])
	}
}
