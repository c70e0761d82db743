package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Usage is what a process has used since it began.
type Usage struct {
	CPU  time.Duration // user and system
	Anon int64         // RssAnon: memory that is not a file's, in bytes
}

// clockTick is the unit of times in /proc: a hundredth of a second on every
// Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// ProcUsage reads the usage of a process from /proc, through readFile.
func ProcUsage(pid int, readFile func(name string) ([]byte, error)) func() (Usage, error) {
	return func() (Usage, error) {
		stat, err := readFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
		}
		status, err := readFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
		}
		u, err := parseUsage(stat, status)
		if err != nil {
			return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
		}
		return u, nil
	}
}

// parseUsage reads the fields utime and stime of stat, and RssAnon of status.
func parseUsage(stat, status []byte) (u Usage, err error) {
	// The second field is the program's name in parentheses, which may hold
	// blanks and parentheses itself.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return u, fmt.Errorf("unexpected stat: %.100q", stat)
	}
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return u, fmt.Errorf("unexpected stat: %w", err)
		}
		u.CPU += time.Duration(n) * clockTick
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			if err != nil {
				return u, fmt.Errorf("unexpected RssAnon: %w", err)
			}
			u.Anon = kb << 10
			return u, nil
		}
	}
	return u, fmt.Errorf("status has no RssAnon")
}

// useMeter follows the usage of the server. It is used by one goroutine at a time.
type useMeter struct {
	read  func() (Usage, error)
	begin Usage
	now   Usage
	peak  int64
}

// startUse returns nil when nothing can be read.
func startUse(read func() (Usage, error)) *useMeter {
	if read == nil {
		return nil
	}
	u, err := read()
	if err != nil {
		return nil
	}
	return &useMeter{read: read, begin: u, now: u, peak: u.Anon}
}

// sample reads the usage; the last known stays when that fails.
func (u *useMeter) sample() *useMeter {
	if u == nil {
		return nil
	}
	if now, err := u.read(); err == nil {
		u.now = now
		u.peak = max(u.peak, now.Anon)
	}
	return u
}

// of is the use for so many messages.
func (u *useMeter) of(messages int64) *ServerUse {
	if u == nil {
		return nil
	}
	use := &ServerUse{CPUSeconds: (u.now.CPU - u.begin.CPU).Seconds(), AnonMB: float64(u.now.Anon) / 1e6, PeakAnonMB: float64(u.peak) / 1e6}
	if messages > 0 {
		use.CPUPerMillion = use.CPUSeconds * 1e6 / float64(messages)
	}
	return use
}
