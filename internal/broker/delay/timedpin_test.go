package delay

import (
	"context"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// fillLog stores ordinary messages of n bytes in all, so that files fill up.
func (w *world) fillLog(n int) {
	w.t.Helper()
	for ; n > 0; n -= 4096 {
		w.sendPlain("filler", make([]byte, 4096))
	}
}

// D13 for timed messages: what is pending outlives the retention of the log and
// comes on time, and the log goes up to the oldest that is pending; also across
// kills, power cuts and the loss of the index.
func TestD13TimedRetention(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *world)
	}{
		{"kill", (*world).kill},
		{"power cut", (*world).cutPower},
		{"clean stop", (*world).stopClean},
		{"kill, index is lost", func(w *world) {
			w.kill()
			if err := w.disk.RemoveAll(dir + "/sundial/timers"); err != nil {
				w.t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.sync = true
				w.tune = func(cfg *Config) { cfg.FlushInterval = time.Second }
				w.tuneStore = func(c *storage.Config) {
					c.Expiry.Reserved, c.Expiry.FilePause = time.Minute, 0
				}
				w.start()
				start := time.Now().UnixMilli()
				want := map[string]int64{}
				at := func(ms int64, body string) {
					want[body] = start + ms
					w.sendAt("T", 0, start+ms, body)
				}
				expire := func() int {
					t.Helper()
					n, err := w.store.ExpireNow(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					return n
				}
				for i := range 10 {
					at(int64(1000*i), body("early", i))
				}
				recalled := w.sendAt("T", 1, start+86_400_000, "recalled")
				w.pass(20 * time.Second)
				w.fillLog(200 << 10)
				at(180_000, "late")
				w.fillLog(200 << 10)
				at(3_600_000, "last")
				w.fillLog(200 << 10)
				w.pass(time.Second)
				if _, err := w.flow.Recall(Name{Topic: "T", Unique: "recalled", Seq: recalled}); err != nil {
					t.Fatal(err)
				}
				w.pass(90 * time.Second)
				c.end(w)
				w.start()
				w.pass(5 * time.Second)
				if expire() == 0 {
					t.Error("the log is kept although what is pending lies further on")
				}
				delete(want, "recalled")
				at(3_600_001, "after")
				c.end(w)
				w.start()
				w.pass(100 * time.Second) // late has come
				c.end(w)
				w.start()
				w.pass(5 * time.Second)
				if expire() == 0 {
					t.Error("the log is kept although what was pending in it has come")
				}
				if n := w.pending(); n != 2 {
					t.Errorf("%d are pending, want 2", n)
				}
				c.end(w)
				w.start()
				if list, _, err := w.flow.List(Listing{To: math.MaxInt64, Max: 10}); err != nil || len(list) != 2 {
					t.Errorf("listed %+v, %v", list, err)
				}
				w.pass(3600 * time.Second)
				synctest.Wait()
				seen := map[string]int{}
				for _, g := range w.delivered() {
					seen[g.Body]++
					if due := want[g.Body]; due != 0 && g.At != due && g.Body != "early-00000" {
						t.Errorf("%q came %d ms late", g.Body, g.At-due)
					}
				}
				for _, body := range []string{"late", "last", "after"} {
					if n := seen[body]; n != 1 && (body != "late" || n != 0) {
						t.Errorf("%q was delivered %d times", body, n)
					}
				}
				if seen["recalled"] != 0 {
					t.Error("a recalled message came")
				}
				if n := w.pending(); n != 0 {
					t.Errorf("%d are pending", n)
				}
				if a := w.flow.Stats().Aside; a != 0 {
					t.Errorf("%d were set aside", a)
				}
			})
		})
	}
}

// The index is lost under a stopped broker that had delivered, recalled and
// pending messages: it is built anew, and each comes once.
func TestIndexIsDerived(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		want := map[string]int64{}
		for i := range 300 {
			due := start + int64(i*100)
			want[body("m", i)] = due
			w.sendAt("T", i%3, due, body("m", i))
		}
		far := w.sendAt("T", 0, start+3_600_000, "recalled")
		w.pass(2 * time.Second)
		if _, err := w.flow.Recall(Name{Topic: "T", Unique: "recalled", Seq: far}); err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(){w.stopClean, w.kill, w.stopClean} {
			w.pass(5 * time.Second)
			end()
			if err := w.disk.RemoveAll(dir + "/sundial/timers"); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			w.start()
		}
		w.pass(2 * time.Hour)
		synctest.Wait()
		w.once(want)
		if n := w.pending(); n != 0 {
			t.Errorf("%d are pending", n)
		}
	})
}

// A checkpoint that is asked for while a delivery is in the log and not yet noted
// waits for it: its position would pass the receipt.
func TestCheckpointWaitsForDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var left atomic.Pointer[memfs.FS]
		saved := make(chan error, 1)
		w.after = func() {
			if left.Load() != nil {
				return
			}
			if err := w.store.Flush(); err != nil {
				t.Error(err)
			}
			f := w.flow
			go func() { saved <- f.saveTimed() }()
			for i := 0; i < 20_000 && len(saved) == 0; i++ {
				runtime.Gosched()
			}
			left.Store(w.disk.KillClone())
		}
		w.start()
		start := time.Now().UnixMilli()
		w.sendAt("T", 0, start+1000, "a")
		w.sendAt("T", 0, start+3_600_000, "b")
		w.pass(3 * time.Second)
		if err := <-saved; err != nil {
			t.Error(err)
		}
		w.abandon()
		w.after, w.disk = nil, left.Load()
		w.start()
		w.pass(2 * time.Hour)
		synctest.Wait()
		w.once(map[string]int64{"a": start + 1000, "b": start + 3_600_000})
	})
}
