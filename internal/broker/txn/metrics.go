package txn

import (
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// metrics are what the flow counts. What it only knows, it tells when asked.
type metrics struct {
	prepared     *metric.Counter
	committed    *metric.Counter
	rolledBack   *metric.Counter
	unknown      *metric.Counter
	repeated     *metric.Counter
	contradicted *metric.Counter
	checks       *metric.Counter
	checkLate    *metric.Histogram // from the due millisecond to the request
	givenUp      *metric.Counter
	renewed      *metric.Counter
}

func newMetrics(reg *metric.Registry, f *Flow) *metrics {
	reg.GaugeFunc("sundial_txn_open", "Transactions without a verdict.", func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return float64(f.mu.halves.open)
	})
	reg.GaugeFunc("sundial_txn_waiting", "Open transactions whose check is due and waits for a producer.", func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		n := 0
		for _, l := range f.mu.lines {
			n += len(l.queue)
		}
		return float64(n)
	})
	reg.GaugeFunc("sundial_txn_given_up", "Transactions that were given up and that nobody has decided since.", func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return float64(f.mu.aside.open)
	})
	return &metrics{
		prepared:     reg.Counter("sundial_txn_prepared_total", "Half messages stored."),
		committed:    reg.Counter("sundial_txn_committed_total", "Transactions committed."),
		rolledBack:   reg.Counter("sundial_txn_rolled_back_total", "Transactions rolled back."),
		unknown:      reg.Counter("sundial_txn_unknown_total", "Verdicts that said nothing yet."),
		repeated:     reg.Counter("sundial_txn_repeated_total", "Verdicts that came again."),
		contradicted: reg.Counter("sundial_txn_contradicted_total", "Verdicts that came after another one and did not count."),
		checks:       reg.Counter("sundial_txn_checks_total", "Checks sent to producers."),
		checkLate:    reg.Histogram("sundial_txn_check_late_seconds", "From the time a check is due to its request."),
		givenUp:      reg.Counter("sundial_txn_given_up_total", "Transactions given up after the last check."),
		renewed:      reg.Counter("sundial_txn_renewed_total", "Open half messages stored again because their log file was to go."),
	}
}

// MetricsTable is RocketMQ's config/transactionMetrics: open transactions by topic.
type MetricsTable struct {
	Version mq.DataVersion         `json:"dataVersion"`
	Counts  map[string]MetricsItem `json:"transactionCount"`
}

// MetricsItem is the count of one topic and when it changed last, in ms.
type MetricsItem struct {
	Count int64 `json:"count"`
	Time  int64 `json:"timeStamp"`
}

// MetricsDocument is that file and what it holds.
type MetricsDocument struct {
	doc  *table.Document[MetricsTable]
	held MetricsTable
}

// OpenMetrics reads RocketMQ's config/transactionMetrics. A damaged one is set
// aside and made again.
func OpenMetrics(fsys vfs.FS, configDir string, note *slog.Logger) (*MetricsDocument, error) {
	path := filepath.Join(configDir, "transactionMetrics")
	d, held, report, err := table.Open[MetricsTable](fsys, path)
	if _, damaged := errors.AsType[*mq.CorruptionError](err); damaged {
		note.Warn("counts of transactions are made again", "document", path, "err", err)
		d, _, err = table.Reset[MetricsTable](fsys, path)
		return &MetricsDocument{doc: d}, err
	}
	if err != nil {
		return nil, err
	}
	if text := report.String(); text != "" {
		note.Warn(path + " is " + text)
	}
	return &MetricsDocument{d, held}, nil
}

type metricsFile struct {
	doc   *MetricsDocument // nil: none is written
	saved time.Time
}

// metricsEvery is how often the file is written at most, as in RocketMQ.
const metricsEvery = 10 * time.Second

// saveMetrics writes RocketMQ's counts when they changed; saving is held.
func (f *Flow) saveMetrics() error {
	d := f.saving.metrics.doc
	if d == nil || time.Since(f.saving.metrics.saved) < metricsEvery {
		return nil
	}
	now := time.Now()
	counts := f.Counts()
	next := MetricsTable{Counts: map[string]MetricsItem{}}
	for topic, n := range counts {
		at := now.UnixMilli()
		if had, ok := d.held.Counts[topic]; ok && had.Count == n {
			at = had.Time
		}
		next.Counts[topic] = MetricsItem{n, at}
	}
	f.saving.metrics.saved = now
	if maps.Equal(next.Counts, d.held.Counts) {
		return nil
	}
	next.Version = d.held.Version.Next(now.UnixMilli())
	if err := d.doc.Save(next); err != nil {
		return err
	}
	d.held = next
	return nil
}
