package stats

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Register holds the statistics of one broker. Its methods are safe for
// concurrent use.
type Register struct {
	cfg    Config
	doc    *table.Document[calendar]
	report Report

	// Of the whole broker, since the process began: in topics of users and in those
	// of the broker's own.
	putUser, putOwn metric.Counter
	getUser, getOwn metric.Counter
	lost            metric.Counter // read, but not told apart by name, because there were too many

	readers sync.Map     // pair to *reading; stored to under mu only
	count   atomic.Int64 // of the queues in readers

	mu struct {
		sync.Mutex
		clock  clock
		topics map[string]map[mq.QueueID]*writing
		pairs  int
		broker *past
		days   calendar // up to seen
		seen   [2]int64 // how much of putUser and getUser is in days
		saved  calendar // what the file holds
	}
}

// Report says what was odd about the saved numbers.
type Report struct {
	Loaded table.Report
	// Aside is where unreadable files are now, Damaged what was wrong with them: the
	// numbers begin anew.
	Aside   []string
	Damaged error
}

// String is a sentence for the log, empty when there is nothing to tell.
func (r Report) String() string {
	if r.Damaged != nil {
		return fmt.Sprintf("damaged: %v; kept as %s; the numbers of the day begin anew", r.Damaged, strings.Join(r.Aside, ", "))
	}
	return r.Loaded.String()
}

// Open reads the numbers of the day from stats.json in dir.
func Open(fs vfs.FS, dir string, cfg Config) (*Register, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	if cfg.Location == nil {
		cfg.Location = time.Local
	}
	r := &Register{cfg: cfg}
	path := filepath.Join(dir, "stats.json")
	doc, days, loaded, err := table.Open[calendar](fs, path)
	r.report.Loaded = loaded
	if err != nil {
		// Numbers for people are no reason not to start.
		fresh, aside, err2 := table.Reset[calendar](fs, path)
		if err2 != nil {
			return nil, fmt.Errorf("statistics: %w", err2)
		}
		doc, days = fresh, calendar{}
		r.report.Aside, r.report.Damaged = aside, err
	}
	now := time.Now()
	r.doc = doc
	r.mu.saved = days
	r.mu.days = days.sane()
	r.mu.clock.begin = now
	r.mu.topics = map[string]map[mq.QueueID]*writing{}
	r.mu.broker = newPast(make([]int64, tCount), now)
	r.mu.days.turn(now.In(cfg.Location))
	return r, nil
}

// Loaded says what was odd about the file.
func (r *Register) Loaded() Report { return r.report }

// Measure lists the numbers of the broker as a whole in reg.
func (r *Register) Measure(reg *metric.Registry) {
	reg.CounterFunc("sundial_broker_messages_stored_total", "Messages stored, by clients and by the broker itself.", r.Stored)
	reg.CounterFunc("sundial_broker_user_messages_stored_total", "Messages stored, those in topics of the broker not counted.", r.putUser.Value)
	reg.CounterFunc("sundial_broker_user_messages_read_total", "Messages handed to consumers, those of topics of the broker not counted.", r.getUser.Value)
	reg.CounterFunc("sundial_stats_nameless_total", "Messages read that are counted for the whole broker only, because there are too many groups and queues.", r.lost.Value)
	reg.GaugeFunc("sundial_stats_readers", "Queues, each as one group reads it, that have statistics.", func() float64 { return float64(r.count.Load()) })
	day := func(of func(Days) int64) func() float64 {
		return func() float64 { return float64(of(r.Days())) }
	}
	reg.GaugeFunc("sundial_broker_user_messages_stored_today", "Messages stored since midnight, without topics of the broker.", day(func(d Days) int64 { return d.Put.Today() }))
	reg.GaugeFunc("sundial_broker_user_messages_stored_yesterday", "Messages stored the day before.", day(func(d Days) int64 { return d.Put.Yesterday() }))
	reg.GaugeFunc("sundial_broker_user_messages_read_today", "Messages handed to consumers since midnight, without topics of the broker.", day(func(d Days) int64 { return d.Get.Today() }))
	reg.GaugeFunc("sundial_broker_user_messages_read_yesterday", "Messages handed to consumers the day before.", day(func(d Days) int64 { return d.Get.Yesterday() }))
}

// Stored is how many messages were stored since the process began.
func (r *Register) Stored() int64 { return r.putUser.Value() + r.putOwn.Value() }

// Handed is how many messages consumers were given since the process began.
func (r *Register) Handed() int64 { return r.getUser.Value() + r.getOwn.Value() }

// Run takes the samples, turns the day and saves, until ctx is done. What a save
// fails with goes to failed and is tried again.
func (r *Register) Run(ctx context.Context, failed func(error)) error {
	now := time.Now()
	sample, save := now.Add(Step), now.Add(r.cfg.SaveInterval)
	for {
		next := sample
		for _, t := range []time.Time{save, now.Add(untilMidnight(now.In(r.cfg.Location)))} {
			if t.Before(next) {
				next = t
			}
		}
		select {
		case <-ctx.Done():
			return r.Save()
		case <-time.After(time.Until(next)):
		}
		now = time.Now()
		r.turn(now)
		if !now.Before(sample) {
			r.Sample(now)
			sample = now.Add(Step)
		}
		if !now.Before(save) {
			if err := r.Save(); err != nil {
				failed(err)
			}
			save = time.Now().Add(r.cfg.SaveInterval)
		}
	}
}

// Sample notes all counters. Run does it every Step.
func (r *Register) Sample(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := r.mu.clock.tick(now)
	r.mu.broker.sample(&r.mu.clock, due, r.totals(), now)
	r.sampleWritingLocked(due, now)
	r.sampleReadingLocked(due, now)
}

// The counters of the whole broker.
const (
	tPut = iota
	tPutUser
	tGet
	tGetUser
	tCount
)

func (r *Register) totals() []int64 {
	return []int64{r.Stored(), r.putUser.Value(), r.Handed(), r.getUser.Value()}
}
