package delay

import (
	"github.com/sundial-mq/sundial/internal/metric"
)

// metrics are what the flow counts. What it only knows, it tells when asked.
type metrics struct {
	delivered *metric.Counter
	refused   *metric.Counter // puts that failed
	late      *metric.Latency // from the due millisecond to the append
	indexed   *metric.Meter   // entries of the timer queue that the index knows
}

func newMetrics(reg *metric.Registry, f *Flow) *metrics {
	count := func(get func(*lane) int64) func() float64 {
		return func() float64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			var sum int64
			for _, l := range f.mu.lanes {
				sum += get(l)
			}
			return float64(sum)
		}
	}
	reg.GaugeFunc("sundial_delay_pending", "Delayed messages that are not delivered yet.", count((*lane).pending))
	reg.GaugeFunc("sundial_delay_parked", "Delayed messages that are due and that their destination does not take.", count(func(l *lane) int64 { return int64(l.parked) }))
	reg.GaugeFunc("sundial_delay_set_aside", "Delayed messages that cannot be delivered, since the store was made.", func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return float64(f.mu.aside.count)
	})
	reg.GaugeFunc("sundial_timed_pending", "Timed messages that are not delivered yet.", func() float64 { return float64(f.timed.index.Stats().Pending) })
	reg.GaugeFunc("sundial_timed_behind", "Timed messages that are stored and not indexed yet.", func() float64 { return float64(f.behind()) })
	reg.GaugeFunc("sundial_clock_steps", "How often the clock was set, ahead or back.", func() float64 {
		st := f.guard.State()
		return float64(st.Forward + st.Back)
	})
	return &metrics{
		delivered: reg.Counter("sundial_delay_delivered_total", "Delayed messages delivered."),
		refused:   reg.Counter("sundial_delay_refused_total", "Tries to deliver a delayed message that failed."),
		late:      reg.Latency("sundial_delay_late_seconds", "From the due time of a delayed message to its delivery."),
		indexed:   reg.MeterFunc("sundial_timed_indexed_total", "Entries of the queue of timed messages, recalls among them, that are indexed.", func() int64 { return int64(f.timed.index.Next()) }),
	}
}
