package txn

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// fate is what may be true of a message at last.
type fate struct {
	sent
	prepared bool // the send was acknowledged
	asked    Verdict
	decided  bool // that verdict was acknowledged
}

// The disk stops at its n-th operation, for every n of a life that sends, commits,
// rolls back, asks, gives up, stores again and stops. In the next life nothing is
// visible twice, nothing that was committed is missing, nothing that was rolled
// back is visible, and nothing that is open is lost.
func TestX02EveryCrashPoint(t *testing.T) {
	for _, c := range []struct {
		name  string
		sync  bool
		power bool
	}{
		{"kill, asynchronous flush", false, false},
		{"kill, synchronous flush", true, false},
		{"power cut, synchronous flush", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			step := int64(1)
			if invariant.On {
				step = 7 // everything takes ten times as long
			}
			for n := int64(0); ; n += step {
				done := false
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.disk, w.sync = memfs.New(uint64(n)), c.sync
					w.tune = func(cfg *Config) { cfg.MaxChecks = 3 }
					w.disk.StopAfter(n)
					fates := w.oneLife()
					done = !w.disk.Stopped()
					if c.power {
						w.disk = w.disk.Crash()
					} else {
						w.disk = w.disk.KillClone()
					}
					w.judge(fates)
					if t.Failed() {
						t.Log(w.logs.String())
					}
				})
				if t.Failed() {
					t.Fatalf("the disk stopped at operation %d", n)
				}
				if done {
					return
				}
			}
		})
	}
}

// oneLife sends and decides, and returns what was acknowledged. It gives up when
// the disk does.
func (w *world) oneLife() []*fate {
	var fates []*fate
	if w.tryStart() != nil {
		return nil
	}
	w.join("P", "conn")
	for i := range 9 {
		m := message("T", body("m", i), mq.PropTransaction, "true", mq.PropUniqueKey, body("K", i))
		if i%2 == 1 { // one that is committed waits then; another one is committed in the next life
			m.Properties = record.AppendProperty(m.Properties, mq.PropTimerDelayMs, "3600000")
		}
		f := &fate{}
		fates = append(fates, f)
		var err error
		f.sent, err = w.trySend(m, "P", "conn")
		// Stores into mapped memory do not fail when the disk has stopped.
		f.prepared = err == nil && (w.sync || !w.disk.Stopped())
		if err != nil {
			continue
		}
		switch i % 3 {
		case 0:
			f.asked = VerdictCommit
		case 1:
			f.asked = VerdictRollback
		}
		if f.asked != VerdictUnknown {
			err = w.end(f.as(f.asked))
			f.decided = err == nil && (w.sync || !w.disk.Stopped())
		}
		w.pass(170 * time.Millisecond)
	}
	if f := fates[2]; f.body != "" {
		_ = w.flow.renew(int64(f.Offset))
	}
	w.pass(6 * time.Second) // the rest is asked about, and given up
	w.abandon()
	return fates
}

// judge looks at the next life.
func (w *world) judge(fates []*fate) {
	t := w.t
	w.start()
	defer w.abandon()
	got := w.visible()
	for _, f := range fates {
		n := got[f.body]
		switch {
		case n > 1:
			t.Errorf("%q is visible %d times", f.body, n)
		case n == 1 && f.asked != VerdictCommit:
			t.Errorf("%q is visible, its verdict was %d", f.body, f.asked)
		case n == 0 && f.asked == VerdictCommit && f.decided:
			t.Errorf("%q was committed and is not visible", f.body)
		}
	}
	// What has no verdict, or one that was not acknowledged, takes a commit now, and
	// is visible once after it; or says truly that it was decided.
	for _, f := range fates {
		if !f.prepared || f.asked == VerdictRollback && f.decided {
			continue
		}
		err := w.end(f.as(VerdictCommit))
		n := w.visible()[f.body]
		switch {
		case err == nil && n != 1:
			t.Errorf("%q: the commit is acknowledged, it is visible %d times", f.body, n)
		case err != nil && f.asked != VerdictRollback && !(f.asked == VerdictCommit && n == 1):
			t.Errorf("%q is lost: %v", f.body, err)
		case n > 1:
			t.Errorf("%q is visible %d times", f.body, n)
		}
	}
	if err := w.flow.check(); err != nil {
		t.Error(err)
	}
}

var histories = flag.Int("histories", 60, "how many histories TestModelOfLives tries")

// Lives of random length that end in random ways: sends, verdicts that come twice,
// late and contradict each other, checks, operators, retention, a store that
// refuses. The model is what was first acknowledged.
func TestModelOfLives(t *testing.T) {
	t.Parallel()
	n := *histories
	if invariant.On {
		n = (n + 9) / 10
	}
	for seed := range uint64(n) {
		failed := false
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			oneHistory(w, seed)
			if failed = t.Failed(); failed {
				t.Log(w.logs.String())
			}
		})
		if failed {
			t.Fatalf("history %d", seed)
		}
	}
}

// model is what may be seen of one message.
type model struct {
	sent
	final Verdict // the first that was acknowledged, 0: none
	maybe bool    // a verdict failed halfway: either may be true
}

func oneHistory(w *world, seed uint64) {
	t := w.t
	rnd := rand.New(rand.NewPCG(seed, 7))
	w.disk, w.sync = memfs.New(seed), seed%2 == 0
	expireFast(w)
	tuneStore := w.tuneStore
	w.tuneStore = func(c *storage.Config) { tuneStore(c); c.Expiry.Interval = time.Second; c.Expiry.Hours = allHours() }
	w.tune = func(c *Config) {
		c.Timeout, c.Interval = time.Duration(1+rnd.IntN(5000))*time.Millisecond, time.Duration(500+rnd.IntN(9000))*time.Millisecond
		c.MaxChecks, c.Window = 1+rnd.IntN(100), 1+rnd.IntN(20)
		c.SaveInterval, c.MarkInterval = time.Duration(1+rnd.IntN(4000))*time.Millisecond, time.Duration(1+rnd.IntN(4000))*time.Millisecond
	}
	refusing := false
	w.fail = func(*record.Message) error {
		if refusing {
			return mq.ErrUnavailable
		}
		return nil
	}
	var all []*model
	w.start()
	w.join("P", "conn")
	decide := func(m *model, v Verdict) {
		err := w.end(m.as(v))
		w.logf("%q: verdict %d at offset %d, log %d: %v", m.body, v, m.Offset, m.Log, err)
		if err != nil && strings.Contains(err.Error(), "gone") && w.store.MinLog() > 0 {
			return // nobody can know any more
		}
		switch {
		case err == nil && m.final == VerdictUnknown:
			m.final = v
		case err == nil && m.final != v:
			t.Errorf("%q: %d was acknowledged after %d", m.body, v, m.final)
		case err != nil && m.final == v:
			t.Errorf("%q: %d again: %v", m.body, v, err)
		case errors.Is(err, mq.ErrIllegalOperation) && m.final == VerdictUnknown && !m.maybe:
			t.Errorf("%q: %d is refused, and nobody decided: %v", m.body, v, err)
		}
	}
	for range 40 + rnd.IntN(60) {
		var m *model
		if len(all) > 0 {
			m = all[rnd.IntN(len(all))]
		}
		switch rnd.IntN(14) {
		case 0, 1, 2, 3:
			b := fmt.Sprint("m", len(all))
			s, err := w.trySend(message("T", b, mq.PropTransaction, "true", mq.PropUniqueKey, "K-"+b), "P", "conn")
			if err == nil {
				all = append(all, &model{sent: s})
			}
		case 4, 5:
			if m != nil {
				decide(m, VerdictCommit)
			}
		case 6:
			if m != nil {
				decide(m, VerdictRollback)
			}
		case 7:
			w.pass(time.Duration(rnd.IntN(10000)) * time.Millisecond)
		case 8:
			refusing = !refusing
			w.logf("refusing %v", refusing)
		case 9:
			for range 10 {
				_, _ = w.store.Append(message("filler", string(make([]byte, 8<<10))))
			}
			w.pass(70 * time.Second)
		case 10:
			if list := w.checks(""); len(list) > 0 {
				a := list[rnd.IntN(len(list))]
				for _, x := range all {
					if x.body != a.body {
						continue
					}
					old := x.sent
					x.Offset, x.Log = a.check.Offset, a.check.Log
					decide(x, []Verdict{VerdictCommit, VerdictRollback}[rnd.IntN(2)])
					x.sent = old
				}
			}
		case 11:
			w.leave("P", "conn")
			w.pass(time.Second)
			w.join("P", "conn")
		case 12:
			w.logf("kill")
			refusing = false
			w.kill()
			w.start()
		case 13:
			w.logf("restart")
			refusing = false
			w.restart()
		}
	}
	refusing = false
	w.kill()
	w.start()
	got := w.visible()
	for _, m := range all {
		n, want := got[m.body], 0
		if m.final == VerdictCommit {
			want = 1
		}
		// Messages expire, too.
		if n > want || n < want && w.store.MinLog() == 0 {
			t.Errorf("%q is visible %d times, want %d", m.body, n, want)
		}
	}
	// All that is open can be ended.
	for _, m := range all {
		if m.final == VerdictUnknown {
			if err := w.end(m.as(VerdictRollback)); err != nil && w.store.MinLog() == 0 {
				t.Errorf("%q is lost: %v", m.body, err)
			}
		}
	}
	if n := w.open(); n != 0 && w.store.MinLog() == 0 {
		t.Errorf("%d are open that nobody knows", n)
	}
	if err := w.flow.check(); err != nil {
		t.Error(err)
	}
	w.abandon()
}

func (w *world) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(w.logs, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

func allHours() []int {
	var h []int
	for i := range 24 {
		h = append(h, i)
	}
	return h
}
