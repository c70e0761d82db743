package delay

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

func TestDeliveredInItsMillisecondAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		due := w.send("Orders", 3, 2, "hello")
		if got := w.delivered(); len(got) != 0 || w.pending() != 1 {
			t.Fatalf("at once: %d delivered, %d pending", len(got), w.pending())
		}
		w.pass(5*time.Second - time.Nanosecond)
		synctest.Wait()
		if got := w.delivered(); len(got) != 0 {
			t.Fatalf("delivered early: %+v", got)
		}
		w.pass(time.Nanosecond)
		synctest.Wait()
		all := w.delivered()
		if len(all) != 1 || w.pending() != 0 {
			t.Fatalf("%d delivered, %d pending", len(all), w.pending())
		}
		g := all[0]
		if g.Topic != "Orders" || g.Queue != 3 || g.Body != "hello" || g.At != due {
			t.Errorf("delivered %+v, due %d", g, due)
		}
		v := g.View
		if v.Flag() != 7 || v.BornHost() != host || v.StoreHost() != host || v.BornTime() != due-5000 {
			t.Errorf("flag %d, born %v at %d, stored by %v", v.Flag(), v.BornHost(), v.BornTime(), v.StoreHost())
		}
		props := map[string]string{}
		for name, value := range record.EachProperty(v.Properties()) {
			props[string(name)] = string(value)
		}
		want := map[string]string{
			"UNIQ_KEY": "hello", "TAGS": "TagA", "DELAY": "2", "REAL_TOPIC": "Orders", "REAL_QID": "3",
			"SUNDIAL_DELAY_MS": "5000", "SUNDIAL_RECEIPT": w.store.ID() + " SCHEDULE_TOPIC_XXXX 1 0",
		}
		if !maps.Equal(props, want) {
			t.Errorf("properties %v, want %v", props, want)
		}
		e, _ := w.store.Entry(mq.QueueKey{Topic: "Orders", ID: 3}, 0)
		if e.TagsCode != mq.TagsCode("TagA") {
			t.Errorf("tags code %d", e.TagsCode)
		}
	})
}

func TestManyLevelsExactToTheMillisecond(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		rnd := rand.New(rand.NewPCG(3, 4))
		want := map[string]int64{}
		for i := range 500 {
			b := body("m", i)
			want[b] = w.send("T", i%4, 1+rnd.IntN(4), b)
			w.pass(time.Duration(rnd.IntN(5000)) * time.Microsecond)
		}
		w.pass(40 * time.Second)
		synctest.Wait()
		w.once(want)
		for _, g := range w.delivered() {
			if g.At != want[g.Body] {
				t.Fatalf("%s came at %d, due %d", g.Body, g.At, want[g.Body])
			}
		}
	})
}

// A persisted offset beyond the queue's end, negative, or in a file that cannot
// be read does not make a level dead.
func TestD04WrongProgressIsClampedAndTheLevelLives(t *testing.T) {
	for name, content := range map[string]string{
		"too large": `{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1},"offsetTable":{1:1,4:1000}}`,
		"negative":  `{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1},"offsetTable":{1:1,4:-7}}`,
		"empty":     "",
		"truncated": `{"dataVersion":{"counter":3,"stateV`,
	} {
		for _, own := range []string{"kept", "lost"} {
			t.Run(name+", own progress "+own, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.start()
					want := map[string]int64{"a": w.send("T", 0, 1, "a")}
					w.pass(1100 * time.Millisecond)
					want["b"] = w.send("T", 0, 4, "b") // still pending at the stop
					w.stopClean()
					w.write("config/delayOffset.json", content)
					w.write("config/delayOffset.json.bak", content)
					if own == "lost" {
						w.write("sundial/delay.json", "")
						w.write("sundial/delay.json.bak", "")
					}
					w.start()
					want["c"] = w.send("T", 0, 4, "c")
					w.pass(31 * time.Second)
					synctest.Wait()
					if name == "too large" && own == "lost" {
						// Nothing but the wrong number is left: as RocketMQ, go on from the end.
						delete(want, "b")
					}
					w.once(want)
					if n := strings.Count(w.logs.String(), "out of range"); n > 1 {
						t.Errorf("told %d times", n)
					}
				})
			})
		}
	}
}

// What was corrected in memory is corrected on disk, too.
func TestD05CorrectionIsSavedAtTheFirstStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.send("T", 0, 1, "a")
		w.pass(2 * time.Second)
		w.stopClean()
		w.write("config/delayOffset.json", `{"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1},"offsetTable":{1:1001}}`)
		w.start()
		if got := w.fileOf("config/delayOffset.json"); !strings.Contains(got, `"1": 1,`) && !strings.Contains(got, `"1":1,`) {
			t.Fatalf("after the start the file says\n%s", got)
		}
		for range 2 {
			w.stopClean()
			before := w.fileOf("config/delayOffset.json")
			w.start()
			if got := w.fileOf("config/delayOffset.json"); got != before {
				t.Fatalf("the file changed without need from\n%s\nto\n%s", before, got)
			}
		}
		if n := strings.Count(w.logs.String(), "out of range"); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
}

// No progress is written before it was read, and none that knows less than the
// file, however long the start takes.
func TestD07ProgressIsNotSavedBeforeItWasLoaded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.FlushInterval = 10 * time.Millisecond }
		w.start()
		want := map[string]int64{}
		for i := range 50 {
			want[body("m", i)] = w.send("T", 0, 1, body("m", i))
		}
		w.pass(2 * time.Second)
		w.stopClean()
		before := w.fileOf("config/delayOffset.json")
		if _, err := ReadPrior(w.disk, dir+"/config", dir+"/sundial", nil); err != nil {
			t.Fatal(err)
		}
		w.pass(15 * time.Second) // between reading and running
		if got := w.fileOf("config/delayOffset.json"); got != before {
			t.Fatalf("the file changed while nothing ran:\n%s", got)
		}
		w.start()
		w.pass(time.Second)
		synctest.Wait()
		if got := w.fileOf("config/delayOffset.json"); got != before {
			t.Fatalf("the file changed although nothing was delivered:\n%s", got)
		}
		w.once(want)
	})
}

// A stop in the middle of deliveries: none lost, none twice, and the file is exact.
func TestD08StopWhileDelivering(t *testing.T) {
	for _, flush := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", flush), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.sync = flush
				w.start()
				want := map[string]int64{}
				for i := range 2000 {
					want[body("m", i)] = w.send("T", i%4, 1, body("m", i))
					if i%10 == 0 {
						w.pass(time.Millisecond)
					}
				}
				for i := range 20 {
					if i%2 == 0 {
						w.stopClean()
						low := w.level(1).Low
						if got := w.fileOf("config/delayOffset.json"); !strings.Contains(strings.ReplaceAll(got, " ", ""), fmt.Sprintf(`"1":%d,`, low)) {
							t.Fatalf("lowest not delivered is %d, the file says\n%s", low, got)
						}
					} else {
						w.kill()
					}
					w.start()
					w.pass(45 * time.Millisecond)
				}
				w.pass(2 * time.Second)
				synctest.Wait()
				w.once(want)
			})
		})
	}
}

// A record that waits keeps its log file, however short the retention.
func TestD13DelayLongerThanRetention(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.levels = "3m"
		w.tuneStore = func(c *storage.Config) {
			c.Expiry.Reserved = time.Minute
			c.Expiry.Hours = nil
			for h := range 24 {
				c.Expiry.Hours = append(c.Expiry.Hours, h)
			}
		}
		w.start()
		want := map[string]int64{"a": w.send("T", 0, 1, "a")}
		for range 30 { // filler, so that files roll
			if _, err := w.store.Append(&record.Message{Topic: "F", BornHost: host, StoreHost: host, Body: make([]byte, 20_000)}); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(179 * time.Second)
		synctest.Wait()
		if w.store.MinLog() != 0 {
			t.Errorf("the log begins at %d and a message waits at 0", w.store.MinLog())
		}
		w.pass(time.Second)
		synctest.Wait()
		found := 0
		for _, g := range w.delivered() {
			if g.Body == "a" && g.At == want["a"] {
				found++
			}
		}
		if found != 1 {
			t.Errorf("delivered %d times", found)
		}
		w.pass(time.Minute)
		synctest.Wait()
		if w.store.MinLog() == 0 {
			t.Error("the log file stays although nothing waits")
		}
	})
}

// A message of the largest size, and one with hardly room for a property, are
// delivered like any other, and so is the small one behind them.
func TestD14LargestMessages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const limit = 10_000
		w.tuneStore = func(c *storage.Config) { c.LogFileSize, c.MaxMessage = 1<<20, limit }
		w.start()
		sent := 0
		for _, size := range []int{limit - 1, limit} {
			for _, props := range []int{0, record.MaxProperties - receiptRoom - 200, record.MaxProperties - receiptRoom - 1} {
				m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, Body: make([]byte, size)}
				m.Properties = record.AppendProperty(record.AppendProperty(nil, mq.PropDelay, "1"), "X", strings.Repeat("x", props))
				if err := w.flow.cfg.Levels.Retarget(m); errors.Is(err, mq.ErrIllegalMessage) && props == record.MaxProperties-receiptRoom-1 {
					continue // refused loudly
				} else if err != nil {
					t.Fatal(err)
				}
				if _, err := w.store.Append(m); err != nil {
					t.Fatal(err)
				}
				sent++
			}
		}
		w.send("T", 0, 1, "small")
		w.pass(2 * time.Second)
		synctest.Wait()
		if n := len(w.delivered()); n != sent+1 || sent != 4 {
			t.Errorf("%d delivered of %d", n, sent+1)
		}
	})
}

// Only what failed is tried again.
func TestD16OnlyTheFailedPutIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var failures atomic.Int32
		w.fail = func(m *record.Message) error {
			if string(m.Body) == body("m", 2) && failures.Load() < 2 {
				failures.Add(1)
				return errors.New("disk on fire")
			}
			return nil
		}
		w.start()
		want := map[string]int64{}
		for i := range 10 {
			want[body("m", i)] = w.send("T", i%2, 1, body("m", i))
		}
		w.pass(1200 * time.Millisecond)
		synctest.Wait()
		if st := w.flow.Stats(); st.Pending == 0 || len(st.Parked) != 1 || st.Levels[0].Low != 2 {
			t.Errorf("while one is refused: %+v", st)
		}
		w.pass(time.Second)
		synctest.Wait()
		w.once(want)
		if n := failures.Load(); n != 2 {
			t.Errorf("%d failures", n)
		}
	})
}

// Due times at and around the full second: never before the millisecond.
func TestD20SecondBoundary(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		want := map[string]int64{}
		for i, wait := range []time.Duration{0, 1, 998, 1, 1, 999, 999, 2} {
			w.pass(wait * time.Millisecond)
			want[body("m", i)] = w.send("T", 0, 1, body("m", i))
			w.pass(300 * time.Microsecond)
		}
		w.pass(3 * time.Second)
		synctest.Wait()
		w.once(want)
		for _, g := range w.delivered() {
			if g.At != want[g.Body] {
				t.Errorf("%s came at %d, due %d", g.Body, g.At, want[g.Body])
			}
		}
	})
}

// A message due earlier than the one ahead of it in the queue comes first, also
// when thousands are ahead of it.
func TestD26DueTimesThatGoBackInAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window = 16 }
		w.levels = "1h"
		w.start()
		want := map[string]int64{}
		for i := range 200 {
			want[body("long", i)] = w.send("T", 0, 1, body("long", i))
		}
		w.stopClean()
		w.levels = "1s" // the same queue, due times an hour back
		w.start()
		for i := range 200 {
			want[body("short", i)] = w.send("T", 0, 1, body("short", i))
			w.pass(time.Millisecond)
		}
		w.stopClean() // found again from the queue
		w.start()
		w.pass(time.Second)
		synctest.Wait()
		for _, g := range w.delivered() {
			if g.At != want[g.Body] {
				t.Fatalf("%s came at %d, due %d", g.Body, g.At, want[g.Body])
			}
		}
		if n := len(w.delivered()); n != 200 {
			t.Fatalf("%d delivered after a second, want 200", n)
		}
		w.pass(time.Hour)
		synctest.Wait()
		w.once(want)
	})
}

// Due times are absolute: a broker that was down delivers in time what is not yet
// due, and at once what has become due.
func TestD28DueTimeIsAbsoluteAcrossDowntime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		want := map[string]int64{"a": w.send("T", 0, 4, "a")}
		w.stopClean()
		w.pass(10 * time.Second)
		w.start()
		want["b"] = w.send("T", 0, 4, "b")
		w.pass(19999 * time.Millisecond)
		synctest.Wait()
		if n := len(w.delivered()); n != 0 {
			t.Fatalf("%d delivered early", n)
		}
		w.pass(time.Millisecond)
		synctest.Wait()
		if all := w.delivered(); len(all) != 1 || all[0].At != want["a"] {
			t.Fatalf("delivered %+v, want a at %d", all, want["a"])
		}
		w.stopClean()
		w.pass(time.Hour)
		w.start()
		synctest.Wait()
		w.once(want)
	})
}

// Each level tells what is pending, how late it is and how fast it goes.
func TestD31BacklogIsVisible(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		var due int64
		for i := range 3000 {
			d := w.send("T", 0, 1, body("m", i))
			if i == 0 {
				due = d
			}
		}
		if l := w.level(1); l.Pending != 3000 || l.NextDue != due || l.LagMillis != 0 || l.Millis != 1000 || l.Max != 3000 {
			t.Errorf("before: %+v", l)
		}
		w.stopClean()
		w.pass(61 * time.Second)
		var full atomic.Bool
		full.Store(true)
		w.fail = func(*record.Message) error {
			if full.Load() {
				return mq.ErrUnavailable
			}
			return nil
		}
		w.start()
		synctest.Wait()
		if l := w.level(1); l.Pending != 3000 || l.LagMillis != 60_000 || l.Parked == 0 {
			t.Errorf("while refused: %+v", l)
		}
		full.Store(false)
		w.pass(2 * time.Second)
		synctest.Wait()
		w.pass(time.Second)
		if l := w.level(1); l.Pending != 0 || l.LagMillis != 0 || l.Delivered != 3000 || l.PerSecond != 300 {
			t.Errorf("after: %+v", l)
		}
		late := w.flow.count.late.Snapshot()
		if late.Count != 3000 || late.Quantile(0.01) < 59*time.Second || late.Max > 63*time.Second {
			t.Errorf("lateness %v of %d, at most %v; they were a minute late", late.Quantile(0.5), late.Count, late.Max)
		}
	})
}

// One with a long delay fires in time although short ones are always pending.
func TestX01LongDelayDoesNotStarve(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window = 16 }
		w.start()
		due := w.send("T", 0, 4, "long")
		for i := 0; time.Now().UnixMilli() < due; i++ {
			for j := range 200 {
				w.send("S", 0, 1, fmt.Sprint(i, "-", j))
			}
			w.pass(time.Second)
		}
		synctest.Wait()
		for _, g := range w.delivered() {
			if g.Body == "long" && g.At == due {
				return
			}
		}
		t.Error("the long one did not come in its millisecond")
	})
}

// A failed try neither breaks the timer nor needs new traffic to go on.
func TestX03FailedTryIsRepeatedByItself(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		broken.Store(true)
		w.fail = func(*record.Message) error {
			if broken.Load() {
				return errors.New("no")
			}
			return nil
		}
		w.start()
		want := map[string]int64{"a": w.send("T", 0, 1, "a")}
		w.pass(1001 * time.Millisecond)
		synctest.Wait()
		broken.Store(false)
		w.pass(200 * time.Millisecond)
		synctest.Wait()
		w.once(want)
	})
}

// Days without traffic: the next one is in time.
func TestX04LongIdleGaps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.levels = "1s 3d"
		w.tune = func(c *Config) { c.FlushInterval = time.Hour }
		w.tuneStore = func(c *storage.Config) {
			c.FlushInterval, c.QueueFlushInterval, c.QueueSyncInterval = time.Hour, time.Hour, time.Hour
			c.Expiry.Interval, c.Expiry.GuardInterval = time.Hour, time.Hour
		}
		w.start()
		due := w.send("T", 0, 2, "a")
		w.pass(72 * time.Hour)
		synctest.Wait()
		w.once(map[string]int64{"a": due})
		if all := w.delivered(); all[0].At != due {
			t.Errorf("%d ms late", all[0].At-due)
		}
	})
}

// Due while the broker was down: fires at the start.
func TestX06DueWhileDown(t *testing.T) {
	for _, how := range []string{"stop", "kill"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				want := map[string]int64{"a": w.send("T", 0, 2, "a")}
				if how == "stop" {
					w.stopClean()
				} else {
					w.kill()
				}
				w.pass(time.Minute)
				w.start()
				synctest.Wait()
				w.once(want)
			})
		})
	}
}

// Messages 100 ms apart do not get later and later.
func TestX13SpacedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		want := map[string]int64{}
		for i := range 1000 {
			want[body("m", i)] = w.send("T", 0, 4, body("m", i))
			w.pass(100 * time.Millisecond)
		}
		w.pass(31 * time.Second)
		synctest.Wait()
		w.once(want)
		for _, g := range w.delivered() {
			if g.At != want[g.Body] {
				t.Fatalf("%s came %d ms late", g.Body, g.At-want[g.Body])
			}
		}
	})
}

// Our bookkeeping that a user sends along does not count, and does not survive.
func TestX18ForeignBookkeepingIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, Body: []byte("x")}
		for _, p := range [][2]string{
			{mq.PropReceipt, w.store.ID() + " SCHEDULE_TOPIC_XXXX 0 0"}, {mq.PropDelayMillis, "1"},
			{mq.PropRealTopic, "Elsewhere"}, {mq.PropRealQueueID, "9"}, {mq.PropTimerDeliverMs, "1"}, {mq.PropDelay, "2"},
		} {
			m.Properties = record.AppendProperty(m.Properties, p[0], p[1])
		}
		if err := w.flow.cfg.Levels.Retarget(m); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Append(m); err != nil {
			t.Fatal(err)
		}
		w.pass(5*time.Second - time.Millisecond)
		synctest.Wait()
		if n := len(w.delivered()); n != 0 {
			t.Fatal("delivered early")
		}
		w.pass(time.Millisecond)
		synctest.Wait()
		all := w.delivered()
		if len(all) != 1 || all[0].Topic != "T" || all[0].Queue != 0 {
			t.Fatalf("delivered %+v", all)
		}
		if r, _ := all[0].View.Property(mq.PropReceipt); string(r) != w.store.ID()+" SCHEDULE_TOPIC_XXXX 1 0" {
			t.Errorf("receipt %q", r)
		}
	})
}

func TestClockSetForwardAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.send("T", 0, 4, "a")
		w.shift.Store(int64(-time.Hour))
		w.pass(time.Hour)
		synctest.Wait()
		if n := len(w.delivered()); n != 0 {
			t.Fatalf("%d delivered before the clock showed their time", n)
		}
		w.shift.Store(0)
		w.pass(time.Second)
		synctest.Wait()
		if n := len(w.delivered()); n != 1 {
			t.Fatalf("%d delivered a second after the clock was put right", n)
		}
	})
}

func TestChangedLevelTable(t *testing.T) {
	for name, levels := range map[string]string{
		"longer":    "1h 2h 3h 4h",
		"shorter":   "1s 1s 1s 1s",
		"shortened": "7s",
		"extended":  "1s 5s 10s 30s 1m 2m 3m",
		"reversed":  "30s 10s 5s 1s",
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				want := map[string]int64{}
				for i := range 40 {
					want[body("old", i)] = w.send("T", i%3, 1+i%4, body("old", i))
				}
				w.pass(2 * time.Second)
				w.kill()
				w.levels = levels
				w.start()
				want["new"] = w.send("T", 0, 9, "new") // above the last: the last
				w.pass(5 * time.Hour)
				synctest.Wait()
				w.once(want)
				for _, g := range w.delivered() {
					if g.At != want[g.Body] {
						t.Errorf("%s came at %d, due %d", g.Body, g.At, want[g.Body])
					}
				}
				if w.pending() != 0 {
					t.Errorf("%d pending", w.pending())
				}
			})
		})
	}
}

func TestRefusingDestinationBlocksNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window = 16 }
		var mu sync.Mutex
		var tries []time.Time
		var broken atomic.Bool
		broken.Store(true)
		w.fail = func(m *record.Message) error {
			if broken.Load() && m.Topic == "Bad" {
				mu.Lock()
				defer mu.Unlock()
				tries = append(tries, time.Now())
				return errors.New("no")
			}
			return nil
		}
		w.start()
		want := map[string]int64{}
		for i := range 200 {
			topic := "Good"
			if i%2 == 0 {
				topic = "Bad"
			}
			want[body(topic, i)] = w.send(topic, 0, 1, body(topic, i))
		}
		w.pass(time.Second)
		synctest.Wait()
		good := w.delivered()
		if len(good) != 100 {
			t.Fatalf("%d delivered, want the 100 of the good topic", len(good))
		}
		if l := w.level(1); l.Low != 0 || l.Pending != 100 || l.Parked != 100 {
			t.Errorf("%+v", l)
		}
		w.pass(20 * time.Minute)
		synctest.Wait()
		w.stopClean()
		w.start()
		if w.pending() != 100 {
			t.Errorf("%d pending after a restart", w.pending())
		}
		synctest.Wait()
		mu.Lock()
		tried := slices.Clone(tries)
		mu.Unlock()
		for i, at := range tried {
			if i == 0 || i > 15 {
				continue
			}
			pause := at.Sub(tried[i-1])
			if want := min(time.Minute, 100*time.Millisecond<<(i-1)); pause != want {
				t.Errorf("pause %d was %v, want %v", i, pause, want)
			}
		}
		broken.Store(false)
		w.pass(time.Minute)
		synctest.Wait()
		w.once(want)
	})
}

func TestParkedMessagesAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window, c.MaxParked = 16, 50 }
		var broken atomic.Bool
		broken.Store(true)
		w.fail = func(m *record.Message) error {
			if broken.Load() && m.Topic == "Bad" {
				return errors.New("no")
			}
			return nil
		}
		w.start()
		want := map[string]int64{}
		for i := range 500 {
			want[body("m", i)] = w.send("Bad", i%3, 1, body("m", i))
		}
		w.pass(5 * time.Second)
		synctest.Wait()
		if l := w.level(1); l.Parked < 50 || l.Parked > 50+32 {
			t.Errorf("%d are parked, want about 50", l.Parked)
		}
		broken.Store(false)
		w.pass(2 * time.Minute)
		synctest.Wait()
		w.once(want)
	})
}

func TestUndeliverableRecordIsSetAside(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		bad := &record.Message{Topic: mq.TopicSchedule, BornHost: host, StoreHost: host, Body: []byte("bad"),
			Properties: record.AppendProperty(nil, mq.PropDelay, "1")}
		if _, err := w.store.Append(bad); err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"good": w.send("T", 0, 1, "good")}
		w.pass(2 * time.Second)
		synctest.Wait()
		w.once(want)
		check := func() {
			t.Helper()
			st, list := w.flow.Stats(), w.flow.Aside()
			if st.Aside != 1 || st.Pending != 0 || len(list) != 1 || list[0].Level != 1 || list[0].Offset != 0 || !strings.Contains(list[0].Reason, "REAL_TOPIC") {
				t.Errorf("%+v %+v", st, list)
			}
		}
		check()
		w.stopClean()
		w.start()
		synctest.Wait()
		check()
	})
}

func TestReceiptThatNamesAnotherDestinationIsIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		want := map[string]int64{"a": w.send("T", 0, 2, "a")}
		forge := func(topic, store string, off int) {
			m := &record.Message{Topic: topic, BornHost: host, StoreHost: host, Body: []byte("forged"),
				Properties: record.AppendProperty(nil, mq.PropReceipt, fmt.Sprintf("%s SCHEDULE_TOPIC_XXXX 1 %d", store, off))}
			if _, err := w.store.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		forge("Other", w.store.ID(), 0)
		forge("T", "another", 0)
		forge("T", w.store.ID(), 77)
		w.kill()
		w.start()
		w.pass(6 * time.Second)
		synctest.Wait()
		n := 0
		for _, g := range w.delivered() {
			if g.Body == "a" && g.At == want["a"] {
				n++
			}
		}
		if n != 1 {
			t.Errorf("delivered %d times", n)
		}
	})
}

// With both files gone everything is made again from the log.
func TestX12ProgressIsRebuiltFromReceipts(t *testing.T) {
	for _, lost := range [][]string{
		{"config/delayOffset.json"}, {"sundial/delay.json"}, {"config/delayOffset.json", "sundial/delay.json"},
	} {
		for _, how := range []string{"missing", "damaged"} {
			t.Run(fmt.Sprint(how, lost), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.start()
					want := map[string]int64{}
					for i := range 300 {
						want[body("m", i)] = w.send("T", i%4, 1+i%4, body("m", i))
					}
					w.pass(6 * time.Second)
					w.kill()
					for _, name := range lost {
						for _, suffix := range []string{"", ".bak"} {
							if how == "damaged" {
								w.write(name+suffix, "{")
							} else {
								_ = w.disk.Remove(dir + "/" + name + suffix)
							}
						}
					}
					w.start()
					if w.pending() != 150 {
						t.Errorf("%d pending, want 150", w.pending())
					}
					w.pass(time.Minute)
					synctest.Wait()
					w.once(want)
				})
			})
		}
	}
}

func TestPinIsTheLowestUndelivered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		if pin := w.flow.Pin(); pin < w.store.MaxLog() {
			t.Errorf("pin %d with nothing pending", pin)
		}
		w.send("T", 0, 1, "a")
		at := w.store.MaxLog()
		w.send("T", 0, 4, "b")
		w.send("T", 0, 1, "c")
		if pin := w.flow.Pin(); pin != 0 {
			t.Errorf("pin %d, want 0", pin)
		}
		w.pass(2 * time.Second) // and flushed
		synctest.Wait()
		if pin := w.flow.Pin(); pin != at {
			t.Errorf("pin %d, want %d", pin, at)
		}
		w.pass(30 * time.Second)
		synctest.Wait()
		if pin := w.flow.Pin(); pin < w.store.MaxLog() {
			t.Errorf("pin %d with nothing pending", pin)
		}
	})
}

// A herd that is overdue does not keep what falls due meanwhile waiting, not even
// on the same level.
func TestD02CanariesPassTheHerd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window = 64; c.Timer.Slice = 32; c.Timer.Turn = 4 }
		w.fail = func(*record.Message) error {
			w.shift.Add(int64(time.Millisecond)) // each delivery takes a millisecond
			return nil
		}
		w.start()
		const herd = 5000
		for i := range herd {
			w.send("T", 0, 1, body("herd", i))
		}
		var due int64
		for i := range 10 {
			w.pass(80 * time.Millisecond)
			due = w.send("C", 0, 1, body("canary", i))
		}
		w.pass(time.Second)
		synctest.Wait()
		all := w.delivered()
		last := 0
		for i, g := range all {
			if g.Topic == "C" {
				last = i
			}
		}
		// The herd was due 800 ms before the last canary.
		if late := last - 800; len(all) != herd+10 || late < 0 || late > 2*64+32 {
			t.Errorf("%d delivered, the last canary, due %d, was number %d: %d ms late", len(all), due, last, late)
		}
	})
}

func TestPowerCutUnderSyncFlushLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.sync = true
		w.tune = func(c *Config) { c.FlushInterval = 50 * time.Millisecond }
		w.start()
		want := map[string]int64{}
		rnd := rand.New(rand.NewPCG(5, 6))
		for round := range 30 {
			for i := range 20 {
				b := body(fmt.Sprint("r", round), i)
				due := w.send("T", i%4, 1, b)
				done := make(chan error, 1)
				w.store.WhenDurable(w.store.MaxLog(), time.Minute, func(err error) { done <- err })
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				want[b] = due
			}
			w.pass(time.Duration(rnd.IntN(1200)) * time.Millisecond)
			if round%3 == 0 {
				w.kill()
			} else {
				w.cutPower()
			}
			w.start()
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		w.once(want)
	})
}

func TestStatsNameTheLevels(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.send("T", 0, 4, "a")
		w.stopClean()
		w.levels = "2s"
		w.start()
		var names []string
		for _, l := range w.flow.Stats().Levels {
			names = append(names, fmt.Sprint(l.Level, "=", l.Millis, " pending ", l.Pending))
		}
		if want := []string{"1=2000 pending 0", "4=0 pending 1"}; !slices.Equal(names, want) {
			t.Errorf("levels %q, want %q", names, want)
		}
		if got := w.flow.Offsets(); got.Offsets["1"] != 0 || got.Offsets["4"] != 0 || len(got.Offsets) != 2 {
			t.Errorf("offsets %+v", got)
		}
	})
}

// Appending goroutines may overtake each other between the append and its announcement.
func TestAnnouncementsOutOfOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.deaf = true
		w.start()
		want := map[string]int64{}
		var due []int64
		for i := range 8 {
			due = append(due, w.send("T", 0, 1, body("m", i)))
			want[body("m", i)] = due[i]
		}
		for _, i := range []int{3, 0, 1, 2, 7, 6, 4} { // the fifth is never announced
			w.flow.Arrived(mq.QueueKey{Topic: mq.TopicSchedule}, mq.QueueOffset(i), due[i])
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		w.once(want)
	})
}
