package bench

import (
	"context"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	maxLatency  = int64(10 * time.Minute / time.Microsecond)
	maxProblems = 50 // kinds that are counted each by itself
	maxShards   = 8
)

// meter takes measurements from many goroutines: in shards, so that they rarely
// meet.
type meter struct {
	shards []shard
}

type shard struct {
	mu struct {
		sync.Mutex
		h        *hdr.Histogram // microseconds
		messages int64
		bytes    int64
		errors   int64
		problems map[string]*problem // by kind
	}
	_ [64]byte // shards are not neighbours in a cache line
}

// problem is what went wrong in the same way several times.
type problem struct {
	example string // the first one's text
	n       int64
}

// kindOf is a problem's text without its numbers.
func kindOf(text string) string {
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		if c := text[i]; c < '0' || c > '9' {
			b = append(b, c)
		} else if n := len(b); n == 0 || b[n-1] != '#' {
			b = append(b, '#')
		}
	}
	return string(b)
}

func newHistogram() *hdr.Histogram { return hdr.New(1, maxLatency, 3) }

func newMeter(users int) *meter {
	m := &meter{make([]shard, max(1, min(users, maxShards)))}
	for i := range m.shards {
		m.shards[i].mu.h = newHistogram()
	}
	return m
}

func (m *meter) shard(user int) *shard { return &m.shards[user%len(m.shards)] }

// took counts messages that one request brought, and its latency.
func (s *shard) took(d time.Duration, messages, bytes int64) {
	us := min(max(int64(d/time.Microsecond), 1), maxLatency)
	s.mu.Lock()
	_ = s.mu.h.RecordValue(us) // its only error is a value out of range
	s.mu.messages += messages
	s.mu.bytes += bytes
	s.mu.Unlock()
}

// failed counts what went wrong.
func (s *shard) failed(text string) {
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	kind := kindOf(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.errors++
	if s.mu.problems == nil {
		s.mu.problems = make(map[string]*problem)
	}
	p := s.mu.problems[kind]
	if p == nil {
		if len(s.mu.problems) >= maxProblems {
			kind, text = "other", "other"
		}
		if p = s.mu.problems[kind]; p == nil {
			p = &problem{example: text}
			s.mu.problems[kind] = p
		}
	}
	p.n++
}

// totals are all shards together.
type totals struct {
	h                       *hdr.Histogram
	messages, bytes, errors int64
	problems                map[string]int64 // by example
}

func (m *meter) totals() totals {
	t := totals{h: newHistogram()}
	examples := make(map[string]string) // of each kind the same, whichever shard saw it
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		t.h.Merge(s.mu.h)
		t.messages += s.mu.messages
		t.bytes += s.mu.bytes
		t.errors += s.mu.errors
		for kind, p := range s.mu.problems {
			if t.problems == nil {
				t.problems = make(map[string]int64)
			}
			if examples[kind] == "" {
				examples[kind] = p.example
			}
			t.problems[examples[kind]] += p.n
		}
		s.mu.Unlock()
	}
	return t
}

// clock is the time of a run: its beginning, its reports, what the server used.
type clock struct {
	cfg   *Config
	m     *meter
	total int64
	begin time.Time
	use   *useMeter

	stop chan struct{}
	done chan struct{}
}

// startClock begins a run. Reports of progress are made until end is called.
func startClock(cfg *Config, m *meter, total int64) *clock {
	c := &clock{cfg: cfg, m: m, total: total, use: startUse(cfg.Usage), begin: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go c.report()
	return c
}

func (c *clock) report() {
	defer close(c.done)
	t := time.NewTicker(c.cfg.Every)
	defer t.Stop()
	last, lastAt := int64(0), c.begin
	for {
		select {
		case <-c.stop:
			return
		case <-t.C:
		}
		use := c.use.sample()
		if c.cfg.Progress == nil {
			continue
		}
		sum := c.m.totals()
		now := time.Now()
		c.cfg.Progress(Progress{
			Elapsed: now.Sub(c.begin), Messages: sum.messages, Total: c.total, Errors: sum.errors,
			Rate:    float64(sum.messages-last) / now.Sub(lastAt).Seconds(),
			Latency: latencies(sum.h), Server: use.of(sum.messages),
		})
		last, lastAt = sum.messages, now
	}
}

// end stops the reports and fills in what was measured.
func (c *clock) end(r *Result) {
	elapsed := time.Since(c.begin)
	close(c.stop)
	<-c.done
	sum := c.m.totals()
	l := latencies(sum.h)
	r.Started, r.Seconds = c.begin, elapsed.Seconds()
	r.Messages, r.Bytes, r.Errors, r.Problems, r.Latency = sum.messages, sum.bytes, sum.errors, sum.problems, &l
	r.PerSecond = float64(sum.messages) / elapsed.Seconds()
	r.MBPerSec = float64(sum.bytes) / 1e6 / elapsed.Seconds()
	r.Server = c.use.sample().of(sum.messages)
}

// within bounds ctx by the configured duration.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}
