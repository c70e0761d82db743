package delay

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// What RocketMQ 5.5.0 had pending in its timer comes once, each at its time: at the
// millisecond it asked for where that is known, else at the end of its second. What
// was recalled or delivered never comes, what was rolled comes once.
func TestTakesOverRocketMQsTimers(t *testing.T) {
	for _, c := range []struct {
		store   string
		stopped int64
		due     map[string]int64 // by body
	}{
		{"timer", 1796067250000, map[string]int64{
			"in an hour": 1796070814000, "hour2": 1796070814000, "other topic": 1796069014000,
			"pending same slot 0": 1796074411500, "pending same slot 1": 1796074411500, "pending same slot 2": 1796074411500, "pending same slot 3": 1796074411500,
			"in a day": 1796153614000, "in 2.5 days": 1796283214000, "in 3 days less a minute": 1796326354000,
		}},
		{"timer-roll", 1796067825000, map[string]int64{"rolls 3600": 1796071381000}},
		// Killed while the slot of 904000 was under way: RocketMQ does not know that 17 is
		// out, and delivers it again when it starts; here it comes again, too.
		{"timer-killed", 1796067905269, func() map[string]int64 {
			due := map[string]int64{"timer killed 17": 1796067905269}
			for n := int64(18); n < 30; n++ {
				due[fmt.Sprint("timer killed ", n)] = 1796067878701 + n*1500
			}
			return due
		}()},
	} {
		t.Run(c.store, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.unpack("../../storage/testdata/" + c.store + ".tar.gz")
				w.levels = DefaultLevels
				w.tune = func(c *Config) { c.FlushInterval = 10 * time.Minute }
				w.tuneStore = func(c *storage.Config) { c.LogFileSize, c.QueueFileSize = 65536, 1000 }
				w.shift.Store(int64(time.Until(time.UnixMilli(c.stopped))))
				w.start()
				if got := w.flow.Stats().Timed.Pending; got != int64(len(c.due)) && c.store != "timer-killed" {
					t.Errorf("%d pending, want %d", got, len(c.due))
				}
				// A second start finds the same, and takes nothing over again.
				w.stopClean()
				w.start()
				for _, step := range []time.Duration{time.Minute, 3 * time.Hour, 80 * time.Hour} {
					w.pass(step)
				}
				synctest.Wait()
				got := map[string]int64{}
				for _, g := range w.delivered() {
					at, _ := g.View.Property(mq.PropTimerDequeueMs)
					dequeued, _ := strconv.ParseInt(string(at), 10, 64)
					if dequeued < c.stopped {
						continue // RocketMQ delivered it
					}
					name := g.Body
					if g.View.SysFlag()&mq.SysCompressed != 0 {
						keys, _ := g.View.Property(mq.PropKeys)
						name = string(keys)
					}
					if _, twice := got[name]; twice {
						t.Errorf("%q came twice", name)
					}
					got[name] = dequeued
				}
				for _, body := range slices.Sorted(maps.Keys(c.due)) {
					if got[body] != c.due[body] {
						t.Errorf("%q came at %d, want %d", body, got[body], c.due[body])
					}
					delete(got, body)
				}
				if len(got) > 0 || w.flow.Stats().Timed.Pending != 0 {
					t.Errorf("also came %v; %d pending", got, w.flow.Stats().Timed.Pending)
				}
			})
		})
	}
}

// Java after us, and we after Java: a stop with nothing pending leaves a directory from
// which RocketMQ delivers nothing; of what it takes while it runs, its progress decides.
func TestRocketMQRunsInBetween(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.write("timerwheel", "stale")
		due := w.sendAt("T", 0, w.now().Add(time.Second).UnixMilli(), "ours")
		w.stopClean()
		h, ok, err := ReadHandover(w.disk, dir+"/sundial")
		if err != nil || !ok || h.Ready() || h.Pending != 1 || w.fileOf("timerwheel") != "stale" {
			t.Errorf("with one pending: %+v %v %v, message %d", h, ok, err, due)
		}
		w.start()
		w.pass(2 * time.Second)
		synctest.Wait()
		if h, _, _ = ReadHandover(w.disk, dir+"/sundial"); h.Stopped {
			t.Errorf("while running: %+v", h)
		}
		w.stopClean()
		if h, _, _ = ReadHandover(w.disk, dir+"/sundial"); !h.Ready() || h.TimerEnd != 1 || w.fileOf("timerwheel") == "stale" {
			t.Errorf("with nothing pending: %+v", h)
		}
		check, err := ReadTimerCheck(w.disk, dir+"/config/timercheck")
		if err != nil || check.enqueued != 1 || check.readTime > w.now().UnixMilli() || check.readTime < w.now().Add(-time.Second).UnixMilli() || len(w.fileOf("config/timercheck")) != timerCheckSize {
			t.Errorf("timercheck %+v, %v", check, err)
		}

		// RocketMQ's life: it takes three and delivers the first.
		now := w.now().UnixMilli() / 1000 * 1000
		store, err := storage.Open(w.disk, w.storeConfig())
		if err != nil {
			t.Fatal(err)
		}
		for i, out := range []int64{now + 1000, now + 5000, now + 9000} {
			props := record.AppendProperty(nil, mq.PropUniqueKey, fmt.Sprint("java", i))
			props = record.AppendProperty(props, mq.PropTimerOutMs, fmt.Sprint(out))
			props = record.AppendProperty(props, mq.PropRealTopic, "T")
			props = record.AppendProperty(props, mq.PropRealQueueID, "0")
			if _, err := store.AppendInternal(&record.Message{Topic: mq.TopicTimer, BornHost: host, StoreHost: host, Body: []byte(fmt.Sprint("java", i)), Properties: props}); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		w.write("config/timercheck", string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(now+3000)), 0), 4)))
		w.start()
		w.pass(20 * time.Second)
		synctest.Wait()
		var bodies []string
		for _, g := range w.delivered() {
			bodies = append(bodies, g.Body)
		}
		if got := fmt.Sprint(bodies); got != "[ours java1 java2]" {
			t.Errorf("delivered %s", got)
		}
	})
}
