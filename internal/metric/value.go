package metric

import "sync/atomic"

// Counter only grows. The zero Counter is ready; it must not be copied.
type Counter struct{ n atomic.Int64 }

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n, which must not be negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Value is the count since the start of the process.
func (c *Counter) Value() int64 { return c.n.Load() }

// Gauge goes up and down. The zero Gauge is ready; it must not be copied.
type Gauge struct{ n atomic.Int64 }

// Set makes n the value.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative, and returns the new value.
func (g *Gauge) Add(n int64) int64 { return g.n.Add(n) }

// Value is the current value.
func (g *Gauge) Value() int64 { return g.n.Load() }
