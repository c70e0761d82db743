package metric

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Label is one name and value that tell metrics of the same name apart.
type Label struct{ Name, Value string }

// Kind is what a metric is to an exporter.
type Kind uint8

// Kinds of metrics.
const (
	KindCounter Kind = iota
	KindGauge
	KindHistogram
)

// Registry makes metrics and lists them by name. Names are as in the
// exposition ("sundial_store_appends_total"). Asking twice for the same name and
// labels is a bug and panics, as two owners would overwrite each other. A nil
// *Registry makes metrics and lists none.
type Registry struct {
	mu struct {
		sync.Mutex
		entries map[string]entry
		sampled []interface{ Sample(now time.Time) }
	}
}

type entry struct {
	name, help string
	labels     []Label
	kind       Kind
	value      func() float64
	histogram  *Histogram
}

// NewRegistry is an empty Registry.
func NewRegistry() *Registry { return new(Registry) }

func (r *Registry) add(e entry) {
	if r == nil {
		return
	}
	key := e.name
	for _, l := range e.labels {
		key += "\x00" + l.Name + "\x00" + l.Value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, dup := r.mu.entries[key]; dup {
		panic("BUG: metric " + strings.ReplaceAll(key, "\x00", " ") + " is registered twice")
	}
	if r.mu.entries == nil {
		r.mu.entries = make(map[string]entry)
	}
	r.mu.entries[key] = e
}

// Counter makes a counter.
func (r *Registry) Counter(name, help string, labels ...Label) *Counter {
	c := new(Counter)
	r.add(entry{name: name, help: help, labels: labels, kind: KindCounter, value: func() float64 { return float64(c.Value()) }})
	return c
}

// Meter makes a counter with rates, sampled by [Registry.Run].
func (r *Registry) Meter(name, help string, labels ...Label) *Meter {
	m := new(Meter)
	r.add(entry{name: name, help: help, labels: labels, kind: KindCounter, value: func() float64 { return float64(m.Value()) }})
	r.sampled(m)
	return m
}

// MeterFunc makes a meter of something that is counted elsewhere and only grows.
func (r *Registry) MeterFunc(name, help string, read func() int64, labels ...Label) *Meter {
	m := &Meter{read: read}
	r.add(entry{name: name, help: help, labels: labels, kind: KindCounter, value: func() float64 { return float64(read()) }})
	r.sampled(m)
	return m
}

func (r *Registry) sampled(m interface{ Sample(now time.Time) }) {
	if r != nil {
		r.mu.Lock()
		r.mu.sampled = append(r.mu.sampled, m)
		r.mu.Unlock()
	}
}

// CounterFunc registers a counter whose value is asked for when it is listed.
func (r *Registry) CounterFunc(name, help string, value func() int64, labels ...Label) {
	r.add(entry{name: name, help: help, labels: labels, kind: KindCounter, value: func() float64 { return float64(value()) }})
}

// Gauge makes a gauge.
func (r *Registry) Gauge(name, help string, labels ...Label) *Gauge {
	g := new(Gauge)
	r.GaugeFunc(name, help, func() float64 { return float64(g.Value()) }, labels...)
	return g
}

// GaugeFunc registers a gauge whose value is asked for when it is listed.
func (r *Registry) GaugeFunc(name, help string, value func() float64, labels ...Label) {
	r.add(entry{name: name, help: help, labels: labels, kind: KindGauge, value: value})
}

// Histogram makes a histogram of durations.
func (r *Registry) Histogram(name, help string, labels ...Label) *Histogram {
	h := new(Histogram)
	r.add(entry{name: name, help: help, labels: labels, kind: KindHistogram, histogram: h})
	return h
}

// Latency makes a histogram that knows its last minute, sampled by [Registry.Run].
func (r *Registry) Latency(name, help string, labels ...Label) *Latency {
	l := new(Latency)
	r.add(entry{name: name, help: help, labels: labels, kind: KindHistogram, histogram: &l.Histogram})
	r.sampled(l)
	return l
}

// Run samples the registry's meters once a second until ctx is done.
func (r *Registry) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	r.sample(time.Now())
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.sample(now)
		}
	}
}

func (r *Registry) sample(now time.Time) {
	r.mu.Lock()
	meters := slices.Clone(r.mu.sampled)
	r.mu.Unlock()
	for _, m := range meters {
		m.Sample(now)
	}
}

// Reading is one metric as [Registry.Read] found it.
type Reading struct {
	Name, Help string
	Labels     []Label
	Kind       Kind
	Value      float64   // of counters and gauges
	Histogram  *Snapshot // of histograms
}

// Read lists all metrics, sorted by name and labels.
func (r *Registry) Read() []Reading {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	entries := make([]entry, 0, len(r.mu.entries))
	for _, e := range r.mu.entries {
		entries = append(entries, e)
	}
	r.mu.Unlock()
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.name, b.name), slices.CompareFunc(a.labels, b.labels, func(x, y Label) int {
			return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Value, y.Value))
		}))
	})
	out := make([]Reading, len(entries))
	for i, e := range entries {
		out[i] = Reading{Name: e.name, Help: e.help, Labels: e.labels, Kind: e.kind}
		if e.histogram != nil {
			s := e.histogram.Snapshot()
			out[i].Histogram = &s
		} else {
			out[i].Value = e.value()
		}
	}
	return out
}
