package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// Class is a kind of traffic that shares workers: pulls, administration,
// heartbeats. Servers may share a class.
type Class struct {
	cfg     ClassConfig
	inline  bool
	busy    *metric.Counter
	waiting *metric.Gauge
	handled *metric.Histogram
	waited  *metric.Histogram // nil for inline classes

	mu struct {
		sync.Mutex
		queue   ring[job]
		bytes   int64 // of all requests in queue
		workers int   // goroutines
		running int   // those of them that are handling a request
		coming  bool  // one of them has been started and not looked at the queue yet
	}
}

// ClassConfig bounds a class.
type ClassConfig struct {
	// Name is told in busy answers, logs and metrics.
	Name string

	// Workers is how many requests may be handled at a time, 1 or more.
	// Goroutines are started when there is work and end when there is none.
	Workers int

	// Queue is how many requests may wait for a worker, 0 or more. One more is
	// answered SYSTEM_BUSY.
	Queue int

	// QueueBytes bounds the memory of the requests that wait; 0 means 64 MiB.
	// A request larger than that is let in when nothing else waits.
	QueueBytes int64

	// MaxWait answers SYSTEM_BUSY to a request that waited longer, as its asker
	// has given up by then; 0 means that all are handled.
	MaxWait time.Duration
}

// Validate says everything that is wrong with the configuration.
func (c *ClassConfig) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("a class needs a name"))
	}
	if c.Workers < 1 {
		errs = append(errs, fmt.Errorf("class %s: Workers is %d, must be 1 or more", c.Name, c.Workers))
	}
	if c.Queue < 0 || c.QueueBytes < 0 || c.MaxWait < 0 {
		errs = append(errs, fmt.Errorf("class %s: Queue %d, QueueBytes %d, MaxWait %v must not be negative", c.Name, c.Queue, c.QueueBytes, c.MaxWait))
	}
	return errors.Join(errs...)
}

// NewClass makes a class with workers of its own.
func NewClass(cfg ClassConfig, reg *metric.Registry) (*Class, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.QueueBytes == 0 {
		cfg.QueueBytes = 64 << 20
	}
	l := metric.Label{Name: "class", Value: cfg.Name}
	return &Class{
		cfg:     cfg,
		busy:    reg.Counter("sundial_remoting_busy_total", "Requests answered SYSTEM_BUSY because their class was full.", l),
		waiting: reg.Gauge("sundial_remoting_waiting", "Requests that wait for a worker of their class.", l),
		handled: reg.Histogram("sundial_remoting_handle_seconds", "Time in the handler.", l),
		waited:  reg.Histogram("sundial_remoting_wait_seconds", "Time from the arrival of a request to its handler.", l),
	}, nil
}

// NewInline makes a class whose requests are handled on the reader of their
// connection, in order of arrival. Its handlers must not wait.
func NewInline(name string, reg *metric.Registry) *Class {
	l := metric.Label{Name: "class", Value: name}
	return &Class{
		cfg:     ClassConfig{Name: name},
		inline:  true,
		handled: reg.Histogram("sundial_remoting_handle_seconds", "Time in the handler.", l),
	}
}

// Name returns the name of the class.
func (cl *Class) Name() string { return cl.cfg.Name }

// Handled returns how long handlers of the class took.
func (cl *Class) Handled() metric.Snapshot { return cl.handled.Snapshot() }

// Waiting is how many requests wait for a worker of the class, how many may, and
// how long the first of them has waited. Nobody waits in an inline class.
func (cl *Class) Waiting() (n, limit int, oldest time.Duration) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if n = cl.mu.queue.len(); n > 0 {
		oldest = time.Since(cl.mu.queue.first().at)
	}
	return n, cl.cfg.Queue, oldest
}

// job is a request on its way to a worker.
type job struct {
	ctx  context.Context
	conn *Conn
	rt   *route
	req  *remoting.Command // a clone
	ask  asker
	at   time.Time
	size int64
}

// submit queues a request or says why it cannot.
func (cl *Class) submit(j job) (refusal string) {
	cl.mu.Lock()
	n := cl.mu.queue.len()
	full := n >= cl.cfg.Queue+cl.cfg.Workers-cl.mu.running || n > 0 && cl.mu.bytes+j.size > cl.cfg.QueueBytes
	if full {
		var oldest time.Duration
		if n > 0 {
			oldest = j.at.Sub(cl.mu.queue.first().at)
		}
		bytes, running := cl.mu.bytes, cl.mu.running
		cl.mu.Unlock()
		cl.busy.Inc()
		return fmt.Sprintf("[OVERLOAD] class %s is full: %d requests wait (limit %d) with %d bytes (limit %d), the oldest for %v, %d of %d workers are busy; try again later",
			cl.cfg.Name, n, cl.cfg.Queue, bytes, cl.cfg.QueueBytes, oldest.Round(time.Millisecond), running, cl.cfg.Workers)
	}
	cl.mu.queue.push(j)
	cl.mu.bytes += j.size
	start := cl.needWorkerLocked()
	cl.mu.Unlock()
	cl.waiting.Add(1)
	if start {
		go cl.work()
	}
	return ""
}

// needWorkerLocked reports whether to start a worker now, and counts it.
//
// Starting one for every request that comes would start sixteen for sixteen
// requests that came together, though the first could do them all before the
// second has begun. So at most one is on its way at a time; when it finds work and
// there is more, it has the next one started before it begins. If handlers are
// quick that ends after one or two, if they wait it goes on up to the limit.
func (cl *Class) needWorkerLocked() bool {
	if cl.mu.coming || cl.mu.workers >= cl.cfg.Workers || cl.mu.queue.len() == 0 {
		return false
	}
	cl.mu.coming = true
	cl.mu.workers++
	return true
}

// work handles requests until none waits. The servers of those requests wait
// for them (Server.jobs), so nobody needs to wait for the worker.
func (cl *Class) work() {
	cl.mu.Lock()
	cl.mu.coming = false
	for cl.mu.queue.len() > 0 {
		j := cl.mu.queue.pop()
		cl.mu.bytes -= j.size
		cl.mu.running++
		start := cl.needWorkerLocked()
		cl.mu.Unlock()
		if start {
			go cl.work()
		}
		cl.waiting.Add(-1)
		cl.do(j)
		cl.mu.Lock()
		cl.mu.running--
	}
	cl.mu.workers--
	cl.mu.Unlock()
}

func (cl *Class) do(j job) {
	defer j.conn.srv.jobs.Done()
	start := time.Now()
	waited := start.Sub(j.at)
	cl.waited.Record(waited)
	if cl.cfg.MaxWait > 0 && waited > cl.cfg.MaxWait {
		cl.busy.Inc()
		j.conn.answer(j.ask, remoting.NewResponse(j.req, codeBusy, fmt.Sprintf(
			"[TIMEOUT_CLEAN_QUEUE] class %s: the request waited %v (limit %v) for one of %d workers; try again later",
			cl.cfg.Name, waited.Round(time.Millisecond), cl.cfg.MaxWait, cl.cfg.Workers)))
		return
	}
	resp := j.conn.handle(j.ctx, j.rt, j.req, j.ask)
	cl.handled.Record(time.Since(start))
	if resp != nil {
		j.conn.answer(j.ask, resp)
	}
}

// ring is a queue that gives its memory back when it runs empty.
type ring[T any] struct {
	items []T // len is a power of two
	head  int
	n     int
}

func (r *ring[T]) len() int { return r.n }

func (r *ring[T]) first() *T { return &r.items[r.head] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.items) {
		grown := make([]T, max(8, 2*r.n))
		for i := range r.n {
			grown[i] = r.items[(r.head+i)&(len(r.items)-1)]
		}
		r.items, r.head = grown, 0
	}
	r.items[(r.head+r.n)&(len(r.items)-1)] = v
	r.n++
}

func (r *ring[T]) pop() T {
	v := r.items[r.head]
	var zero T
	r.items[r.head] = zero
	r.head = (r.head + 1) & (len(r.items) - 1)
	if r.n--; r.n == 0 && len(r.items) > 1024 {
		r.items, r.head = nil, 0
	}
	return v
}
