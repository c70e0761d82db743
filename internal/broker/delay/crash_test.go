package delay

import (
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
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// The disk stops at its n-th operation, for every n of a life that sends,
// delivers, saves and stops. Whatever was acknowledged before is delivered
// exactly once by the next life.
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
					w.disk = memfs.New(uint64(n))
					w.sync = c.sync
					w.tune = func(cfg *Config) { cfg.FlushInterval = 300 * time.Millisecond }
					w.disk.StopAfter(n)
					want := w.oneLife()
					done = !w.disk.Stopped()
					if c.power {
						w.disk = w.disk.Crash()
					} else {
						w.disk = w.disk.KillClone()
					}
					w.start()
					defer w.abandon()
					time.Sleep(6 * time.Second)
					synctest.Wait()
					counts := map[string]int{}
					for _, g := range w.delivered() {
						counts[g.Body]++
					}
					for body, acknowledged := range want {
						if n := counts[body]; n > 1 || n == 0 && acknowledged {
							t.Errorf("%q, acknowledged %v, was delivered %d times", body, acknowledged, n)
						}
					}
					if w.pending() != 0 {
						t.Errorf("%d pending", w.pending())
					}
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

// oneLife sends, delivers and stops, and returns what was sent and whether it was
// acknowledged. It gives up when the disk does.
func (w *world) oneLife() map[string]bool {
	sent := map[string]bool{}
	if w.tryStart() != nil {
		return sent
	}
	for i := range 12 {
		body := body("m", i)
		m := &record.Message{Topic: "T", QueueID: mq.QueueID(i % 2), BornHost: host, StoreHost: host, Body: []byte(body)}
		if i%3 == 2 {
			m.Properties = record.AppendProperty(nil, mq.PropTimerDelayMs, fmt.Sprint(300*i))
		} else {
			m.Properties = record.AppendProperty(nil, mq.PropDelay, fmt.Sprint(1+i%2))
		}
		if err := w.rules.Retarget(m); err != nil {
			w.t.Fatal(err)
		}
		a, err := w.store.Append(m)
		if err == nil {
			// Stores into mapped memory do not fail when the disk has stopped.
			sent[body] = !w.sync && !w.disk.Stopped()
			if w.sync {
				done := make(chan error, 1)
				w.store.WhenDurable(a.End, time.Minute, func(err error) { done <- err })
				sent[body] = <-done == nil
			}
		}
		w.pass(170 * time.Millisecond)
	}
	w.abandon()
	return sent
}

var histories = flag.Int("histories", 100, "how many histories TestModelOfLives tries")

// Lives of random length that end in random ways, with destinations that fail at
// random: each message once, whatever happens.
func TestModelOfLives(t *testing.T) {
	t.Parallel()
	n := *histories
	if invariant.On {
		n = (n + 9) / 10
	}
	for seed := range uint64(n) {
		flush := seed%2 == 0
		lives := 1 + int(seed/2%5)
		var failure string
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t)
			w.disk, w.sync = memfs.New(seed), flush
			w.tune = func(c *Config) {
				c.FlushInterval = time.Duration(1+rnd.IntN(3000)) * time.Millisecond
				c.Window = 16 + rnd.IntN(32)
				c.MaxParked = 1 + rnd.IntN(40)
			}
			var failing atomicTopics
			w.fail = func(m *record.Message) error {
				if failing.has(m.Topic) {
					return mq.ErrUnavailable
				}
				return nil
			}
			want := map[string]int64{}
			tables := []string{"1s 5s 10s 30s", "2s 1s", "30s 10s 5s 1s", "1s 1s 1s 1s 40s"}
			for life := range lives {
				w.levels = tables[rnd.IntN(len(tables))]
				w.start()
				for i := range rnd.IntN(150) {
					b := body(fmt.Sprint("life", life), i)
					want[b] = w.send(fmt.Sprint("T", rnd.IntN(3)), rnd.IntN(2), 1+rnd.IntN(5), b)
					if rnd.IntN(3) == 0 {
						time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
					}
					if rnd.IntN(10) == 0 {
						failing.toggle(fmt.Sprint("T", rnd.IntN(3)))
					}
				}
				time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
				if flush {
					done := make(chan error, 1)
					w.store.WhenDurable(w.store.MaxLog(), time.Minute, func(err error) { done <- err })
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				switch how := rnd.IntN(4); {
				case how == 0:
					w.stopClean()
				case how == 1 && flush:
					w.cutPower()
				default:
					w.kill()
				}
				if rnd.IntN(4) == 0 {
					time.Sleep(time.Duration(rnd.IntN(30)) * time.Second)
				}
			}
			failing.clear()
			w.start()
			defer w.abandon()
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			counts := map[string]int{}
			for _, g := range w.delivered() {
				counts[g.Body]++
				if g.At < want[g.Body] {
					failure = fmt.Sprintf("%s was delivered %d ms early", g.Body, want[g.Body]-g.At)
				}
			}
			for b := range want {
				if counts[b] != 1 {
					failure = fmt.Sprintf("%s was delivered %d times", b, counts[b])
				}
			}
			if n := w.pending(); n != 0 {
				failure = fmt.Sprintf("%d pending", n)
			}
			if l := w.level(1); l.Parked != 0 {
				failure = fmt.Sprintf("%d parked", l.Parked)
			}
			if failure != "" {
				failure += "\n" + tail(w.logs.String(), 40)
			}
		})
		if failure != "" {
			t.Fatalf("history %d: %s", seed, failure)
		}
	}
}

func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
