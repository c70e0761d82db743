package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// tinyConfig has files so small that a short story rolls all of them.
func tinyConfig() Config {
	c := smallConfig("/data/store")
	c.LogFileSize = 8 << 10
	c.QueueFileSize = 100
	c.IndexSlots, c.IndexEntries = 7, 16
	c.MaxMessage = 4000
	return c
}

// diary is what a client knows: which body it was told to be where.
type diary struct {
	told    map[mq.QueueKey][]string // Append returned
	durable map[mq.QueueKey]int      // so many of them were confirmed durable
	deleted map[string]bool          // topics deleted for certain
	maybe   map[string][]string      // topics whose deletion did not return: what was told before
}

func newDiary() *diary {
	return &diary{told: map[mq.QueueKey][]string{}, durable: map[mq.QueueKey]int{}, deleted: map[string]bool{}, maybe: map[string][]string{}}
}

func (d *diary) confirm() {
	for key, list := range d.told {
		d.durable[key] = len(list)
	}
}

// story drives a store by hand, so that each run does the same operations in the
// same order. It ends at the first error, which must be the power.
type story struct {
	s *Store
	d *diary
	n int // messages so far
	r *rand.Rand
}

func (y *story) append(topic string, queue int) error {
	body := fmt.Sprintf("%s-%d-%d-%s", topic, queue, y.n, strings.Repeat("x", y.r.IntN(1500)))
	y.n++
	m := message(topic, queue, body)
	m.Properties = record.AppendProperty(m.Properties, mq.PropKeys, fmt.Sprintf("k%d all", y.n))
	a, err := y.s.Append(m)
	if err != nil {
		return err
	}
	key := mq.QueueKey{Topic: topic, ID: mq.QueueID(queue)}
	if int(a.Queue) != len(y.d.told[key]) {
		return fmt.Errorf("BUG: told offset %d of %v, and %d were told before", a.Queue, key, len(y.d.told[key]))
	}
	y.d.told[key] = append(y.d.told[key], body)
	return nil
}

func (y *story) batch(topic string, queue, n int) error {
	var ms []*record.Message
	var texts []string
	for range n {
		texts = append(texts, fmt.Sprintf("%s-%d-%d-batch", topic, queue, y.n))
		y.n++
		ms = append(ms, message(topic, queue, texts[len(texts)-1]))
	}
	if _, err := y.s.AppendBatch(ms); err != nil {
		return err
	}
	key := mq.QueueKey{Topic: topic, ID: mq.QueueID(queue)}
	y.d.told[key] = append(y.d.told[key], texts...)
	return nil
}

func (y *story) flush() error {
	if err := y.s.Flush(); err != nil {
		return err
	}
	y.d.confirm()
	return nil
}

func (y *story) delete(topic string) error {
	for key, list := range y.d.told {
		if key.Topic == topic {
			y.d.maybe[topic] = list
		}
	}
	if err := y.s.DeleteTopic(topic); err != nil {
		return err
	}
	for key := range y.d.told {
		if key.Topic == topic {
			delete(y.d.told, key)
			delete(y.d.durable, key)
		}
	}
	delete(y.d.maybe, topic)
	y.d.confirm()
	return nil
}

// live is one life of a store, from Open to a clean stop.
func live(disk vfs.FS, cfg Config, d *diary, seed uint64) error {
	s, err := Open(disk, cfg)
	if err != nil {
		return err
	}
	y := &story{s: s, d: d, r: rand.New(rand.NewPCG(seed, 1))}
	for _, list := range d.told {
		y.n += len(list)
	}
	for i := range 40 {
		err := y.append([]string{"A", "B", "C"}[y.r.IntN(3)], y.r.IntN(2))
		if err == nil && i%7 == 3 {
			err = y.batch("B", 0, 3)
		}
		if err == nil && (cfg.SyncFlush || i%5 == 2) {
			err = y.flush()
		}
		if err == nil && i%6 == 5 {
			err = s.sets.Flush(s.log.Durable())
		}
		if err == nil && i%9 == 8 {
			err = s.followOnce()
		}
		if err == nil && i%11 == 10 {
			err = s.save(false)
		}
		if err == nil && i == 25 {
			err = y.delete("C")
		}
		if err != nil {
			return err
		}
	}
	if err := s.Close(); err != nil {
		return err
	}
	d.confirm()
	return nil
}

// holds checks a store opened after some end of a life against what is known.
// killed: the process died and the disk lived on.
func (d *diary) holds(s *Store, killed bool) error {
	var errs []error
	for key, told := range d.told {
		if _, deleting := d.maybe[key.Topic]; deleting {
			continue
		}
		least := d.durable[key]
		if killed {
			least = len(told)
		}
		lo, hi := s.MinOffset(key), s.MaxOffset(key)
		if lo != 0 || int(hi) < least {
			errs = append(errs, fmt.Errorf("queue %v holds %d to %d, %d were confirmed and %d told", key, lo, hi, least, len(told)))
			continue
		}
		for off := range hi {
			e, ok := s.Entry(key, off)
			if !ok {
				errs = append(errs, fmt.Errorf("queue %v has no entry %d", key, off))
				break
			}
			v, release, err := s.Record(e.Pos)
			if err != nil {
				errs = append(errs, err)
				break
			}
			if int(off) < len(told) && string(v.Body()) != told[off] {
				errs = append(errs, fmt.Errorf("queue %v at %d holds %.20q, told was %.20q", key, off, v.Body(), told[off]))
			}
			if v.QueueOffset() != off || string(v.Topic()) != key.Topic || v.QueueID() != key.ID {
				errs = append(errs, fmt.Errorf("queue %v at %d: the record says %s/%d at %d", key, off, v.Topic(), v.QueueID(), v.QueueOffset()))
			}
			release()
		}
	}
	return errors.Join(append(errs, s.Check(nil))...)
}

// settle makes the diary agree with what the store turned out to hold, for a
// further life: the unflushed tail may be gone, a message whose Append did not
// return may be there.
func (d *diary) settle(s *Store) {
	for topic := range d.maybe {
		for key := range d.told {
			if key.Topic == topic {
				delete(d.told, key)
				delete(d.durable, key)
			}
		}
	}
	d.maybe = map[string][]string{}
	s.Queues(func(key mq.QueueKey, lo, hi mq.QueueOffset) {
		var list []string
		for off := range hi {
			e, _ := s.Entry(key, off)
			v, release, err := s.Record(e.Pos)
			if err != nil {
				panic(err)
			}
			list = append(list, string(v.Body()))
			release()
		}
		d.told[key] = list
	})
	for key := range d.told {
		if int(s.MaxOffset(key)) < len(d.told[key]) {
			d.told[key] = d.told[key][:s.MaxOffset(key)]
		}
	}
	d.confirm()
}

func TestPowerMayGoAtAnyOperation(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if testing.Short() || raceEnabled() { // the other build does them all
		step = 17
	}
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			t.Parallel()
			cfg := tinyConfig()
			cfg.SyncFlush = sync
			for n := int64(0); ; n += step {
				if done := crashAt(t, cfg, n); done {
					t.Logf("%d operations", n)
					return
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// crashAt lets the power go, and another process be killed, at operation n of a
// life, then again somewhere in the recovery, and looks at what is left.
func crashAt(t *testing.T, cfg Config, n int64) (done bool) {
	disk := memfs.New(uint64(n))
	d := newDiary()
	disk.StopAfter(n)
	err := live(disk, cfg, d, 1)
	if !disk.Stopped() {
		if err != nil {
			t.Fatal(err)
		}
		return true
	}
	if err == nil || strings.Contains(err.Error(), "BUG") {
		t.Fatalf("operation %d: power off, and the store says %v", n, err)
	}
	for try := range 4 {
		killed := try == 0
		after := disk.Crash()
		if killed {
			after = disk.KillClone()
		}
		if try >= 2 { // and again while it recovers
			after.StopAfter(int64(rand.New(rand.NewPCG(uint64(n), uint64(try))).IntN(40)))
			if s, err := Open(after, cfg); err == nil {
				s.giveUp()
			}
			after = after.Crash()
		}
		s, err := Open(after, cfg)
		if err != nil {
			t.Fatalf("operation %d, try %d: %v", n, try, err)
		}
		if err := d.holds(s, killed); err != nil {
			t.Fatalf("operation %d, try %d: %v", n, try, err)
		}
		if n%5 != 0 {
			s.giveUp()
			continue
		}
		// Life goes on.
		next := newDiary()
		next.settle(s)
		s.giveUp()
		after = after.KillClone()
		if err := live(after, cfg, next, 2); err != nil {
			t.Fatalf("operation %d, try %d, next life: %v", n, try, err)
		}
		if s, err = Open(after, cfg); err != nil {
			t.Fatalf("operation %d, try %d, third life: %v", n, try, err)
		}
		if err := next.holds(s, true); err != nil {
			t.Fatalf("operation %d, try %d, third life: %v", n, try, err)
		}
		s.giveUp()
	}
	return false
}

// Four producers wait for each of their messages, everything runs in the
// background as it does in earnest, and the power goes at some moment.
func TestPowerGoesUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 24
	if testing.Short() || raceEnabled() { // the other build does them all
		rounds = 6
	}
	for round := range rounds {
		disk := memfs.New(uint64(round))
		cfg := tinyConfig()
		cfg.SyncFlush = round%3 != 0
		cfg.FlushInterval, cfg.QueueFlushInterval, cfg.QueueSyncInterval = time.Millisecond, time.Millisecond, 3*time.Millisecond
		s, err := Open(disk, cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		disk.StopAfter(int64(rand.New(rand.NewPCG(uint64(round), 9)).IntN(1500)))
		var confirmed [4][]string
		var wg sync.WaitGroup
		for p := range confirmed {
			wg.Go(func() {
				key := fmt.Sprintf("P%d", p)
				for i := 0; ; i++ {
					body := fmt.Sprintf("%d-%s", i, strings.Repeat("x", i%900))
					a, err := s.Append(message(key, 0, body))
					if err != nil {
						return
					}
					told := make(chan error, 1)
					s.WhenDurable(a.End, time.Minute, func(err error) { told <- err })
					if err := <-told; err != nil {
						return
					}
					if int(a.Queue) != len(confirmed[p]) {
						t.Errorf("told offset %d, %d were told before", a.Queue, len(confirmed[p]))
						return
					}
					confirmed[p] = append(confirmed[p], body)
				}
			})
		}
		wg.Wait()
		stop()
		<-ended // with whatever the dead disk made of it
		after := disk.Crash()
		if round%2 == 0 {
			after = disk.KillClone()
		}
		if s, err = Open(after, cfg); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for p, want := range confirmed {
			got := bodies(t, s, mq.QueueKey{Topic: fmt.Sprintf("P%d", p)})
			if len(got) < len(want) || fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) {
				t.Errorf("round %d: producer %d has %d messages confirmed, %d are there", round, p, len(want), len(got))
			}
		}
		if err := s.Check(nil); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		s.giveUp()
	}
}
