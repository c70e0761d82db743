package bench

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run measured. It is written as JSON.
type Result struct {
	Run      string    `json:"run"` // send, consume, delay, latency
	Brokers  []string  `json:"brokers"`
	Topic    string    `json:"topic"`
	Queues   int       `json:"queues"` // over all brokers
	Size     int       `json:"size,omitempty"`
	Conns    int       `json:"conns"`
	InFlight int       `json:"inFlight,omitempty"`
	Rate     float64   `json:"rate,omitempty"` // asked for
	Level    int       `json:"level,omitempty"`
	Header   string    `json:"header"`
	Started  time.Time `json:"started"`

	Seconds   float64 `json:"seconds"`
	Messages  int64   `json:"messages"`
	Bytes     int64   `json:"bytes"` // of bodies sent, of records received
	PerSecond float64 `json:"perSecond"`
	MBPerSec  float64 `json:"mbPerSecond"`

	// Latency of a send (until its answer), of a pull, or from producer to
	// consumer.
	Latency *Latencies `json:"latency"`

	// Errors counts what failed. Problems tells how often by what: the text of the
	// first of those that differ only in numbers.
	Errors   int64            `json:"errors"`
	Problems map[string]int64 `json:"problems,omitempty"`

	// Of Delay.
	Delay *DelayResult `json:"delay,omitempty"`

	// Pulls is the number of pulls that Consume made, There how many messages the
	// topic had when it began: with Count or Duration it may read them repeatedly.
	Pulls int64 `json:"pulls,omitempty"`
	There int64 `json:"there,omitempty"`

	// Server is what the server used meanwhile, nil if that is not known.
	Server *ServerUse `json:"server,omitempty"`
}

// Latencies are times in milliseconds.
type Latencies struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// ServerUse is what the server process used during a run.
type ServerUse struct {
	CPUSeconds    float64 `json:"cpuSeconds"`
	CPUPerMillion float64 `json:"cpuSecondsPerMillion"` // messages
	AnonMB        float64 `json:"anonMB"`               // RssAnon at the end
	PeakAnonMB    float64 `json:"peakAnonMB"`           // the most seen
}

// Progress is how a run goes.
type Progress struct {
	Elapsed  time.Duration
	Messages int64
	Total    int64   // that the run is to have; 0 if only time bounds it
	Errors   int64   // so far
	Rate     float64 // messages a second since the last report
	Latency  Latencies
	Server   *ServerUse // so far
}

func latencies(h *hdr.Histogram) Latencies {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Latencies{
		Count: h.TotalCount(), Mean: h.Mean() / 1000,
		P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)),
		P999: ms(h.ValueAtQuantile(99.9)), Max: ms(h.Max()),
	}
}
