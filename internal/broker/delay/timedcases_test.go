package delay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// putTimed stores m as a timed message, or says why it may not be one.
func (w *world) putTimed(m *record.Message, due int64) error {
	m.Properties = record.AppendProperty(m.Properties, mq.PropTimerDeliverMs, strconv.FormatInt(due, 10))
	if err := w.rules.Retarget(m); err != nil {
		return err
	}
	_, err := w.store.Append(m)
	return err
}

// D14: timed messages of the largest size and with the most properties are
// delivered, and so is the small one behind them.
func TestD14TimedMessagesAtTheLimits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const limit = 10_000
		w.tuneStore = func(c *storage.Config) { c.LogFileSize, c.MaxMessage = 1<<20, limit }
		w.start()
		due := time.Now().UnixMilli() + 1500
		want, refused := map[string]int64{}, 0
		for _, size := range []int{limit - 1, limit} {
			for _, props := range []int{0, 30_000, record.MaxProperties - timedRoom - 140, record.MaxProperties - timedRoom - 1} {
				text := fmt.Sprintf("%d+%d ", size, props)
				text += strings.Repeat("b", size-len(text))
				m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, Body: []byte(text), Properties: record.AppendProperty(nil, "X", strings.Repeat("x", props))}
				switch err := w.putTimed(m, due); {
				case errors.Is(err, mq.ErrIllegalMessage):
					refused++
				case err != nil:
					t.Fatal(err)
				default:
					want[text] = due
				}
			}
		}
		w.sendAt("T", 0, due+500, "small")
		want["small"] = due + 500
		w.pass(time.Second)
		w.kill()
		w.start()
		w.pass(2 * time.Second)
		synctest.Wait()
		w.once(want)
		if len(want) != 7 || refused != 2 || w.pending() != 0 {
			t.Errorf("%d accepted, %d refused, %d pending", len(want), refused, w.pending())
		}
	})
}

// D16: of timed messages due together only the one that failed is put again.
func TestD16OnlyTheFailedTimedMessageIsRepeated(t *testing.T) {
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
		due := time.Now().UnixMilli() + 1000
		for i := range 10 {
			want[body("m", i)] = due
			w.sendAt("T", i%2, due, body("m", i))
		}
		w.pass(3 * time.Second)
		synctest.Wait()
		w.once(want)
		if n := failures.Load(); n != 2 {
			t.Errorf("%d failures", n)
		}
	})
}

// D17: there is no rolling of what is far away, so restarts on the way double nothing.
func TestD17FarDueTimesAcrossRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		due := time.Now().UnixMilli() + 35_000
		want := map[string]int64{}
		for i := range 200 {
			want[body("m", i)] = due + int64(i%3)
			w.sendAt("T", 0, due+int64(i%3), body("m", i))
		}
		for i := range 4 {
			w.pass(8 * time.Second)
			if i%2 == 0 {
				w.kill()
			} else {
				w.stopClean()
			}
			w.start()
		}
		w.pass(5 * time.Second)
		synctest.Wait()
		w.once(want)
	})
}

// D20: never before the millisecond around the full second, and a recall that comes
// last among thousands of one millisecond is honoured, also across a power cut
// before any of it is done.
func TestD20TimedSecondsAndRecallInACrowd(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.sync = true
		w.tuneStore = func(c *storage.Config) { c.LogFileSize, c.QueueFileSize = 4<<20, 20_000 }
		w.start()
		second := (time.Now().UnixMilli()/1000 + 4) * 1000
		want := map[string]int64{}
		first := w.sendAt("T", 0, second, "taken back")
		for i := range 5000 {
			want[body("m", i)] = second
			w.sendAt("T", i%4, second, body("m", i))
		}
		for _, ms := range []int64{-1, 1, 999, 1000, 1001, 1999} {
			text := fmt.Sprint("at ", ms)
			want[text] = second + ms
			w.sendAt("T", 0, second+ms, text)
		}
		synctest.Wait()
		if _, err := w.flow.Recall(Name{Topic: "T", Unique: "taken back", Seq: first}); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second) // everything is flushed
		w.cutPower()
		w.start()
		w.pass(6 * time.Second)
		synctest.Wait()
		w.once(want)
		for _, g := range w.delivered() {
			if strings.HasPrefix(g.Body, "at ") && g.At-want[g.Body] > 100 {
				t.Errorf("%s came %d ms late behind the crowd", g.Body, g.At-want[g.Body])
			}
		}
	})
}

// D29: an absolute due time is of the broker's clock, whatever the producer's shows; a
// relative one counts from the arrival.
func TestD29TimedBySkewedProducers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		now := time.Now().UnixMilli()
		for i, skew := range []int64{-3000, 0, 3000, -1 << 40, 1 << 40} {
			for name, value := range map[string]int64{mq.PropTimerDelayMs: 1234, mq.PropTimerDeliverMs: now + 1234} {
				m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, BornTime: now + skew, Body: []byte(fmt.Sprint(i, name)),
					Properties: record.AppendProperty(nil, name, strconv.FormatInt(value, 10))}
				if err := w.rules.Retarget(m); err != nil {
					t.Fatal(err)
				}
				if _, err := w.store.Append(m); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		all := w.delivered()
		for _, g := range all {
			if g.At != now+1234 {
				t.Errorf("%s came after %d ms", g.Body, g.At-now)
			}
		}
		if len(all) != 10 {
			t.Errorf("%d delivered", len(all))
		}
	})
}

// X01: one that is due late is in time although early ones are always pending.
func TestX01FarTimedMessageDoesNotStarve(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		w.sendAt("T", 0, start+10_000, "far")
		for i := range 2000 {
			w.sendAt("U", 0, time.Now().UnixMilli()+1000, body("near", i))
			w.pass(6 * time.Millisecond)
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		found := 0
		for _, g := range w.delivered() {
			if g.Body == "far" {
				found++
				if g.At != start+10_000 {
					t.Errorf("it came %d ms late", g.At-start-10_000)
				}
			}
		}
		if found != 1 {
			t.Errorf("it came %d times", found)
		}
	})
}

// X15: a restart changes no field of a pending timed message.
func TestX15RestartChangesNoTimedField(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		send := func() {
			m := &record.Message{Topic: "T", QueueID: 2, Flag: -7, SysFlag: mq.SysCompressed, ReconsumeTimes: 3, BornTime: 12345, BornHost: host, StoreHost: host, Body: []byte("\x78\x9c\x00raw")}
			for _, p := range [][2]string{{"KEYS", "k1 k2"}, {"TAGS", "a"}, {"own", "wert=ü"}, {"UNIQ_KEY", "U"}} {
				m.Properties = record.AppendProperty(m.Properties, p[0], p[1])
			}
			if err := w.putTimed(m, time.Now().UnixMilli()+5000); err != nil {
				t.Fatal(err)
			}
		}
		own := []string{mq.PropReceipt, mq.PropTimerDeliverMs, mq.PropTimerOutMs, mq.PropTimerEnqueueMs, mq.PropTimerDequeueMs} // of the times and places themselves
		fields := func(v record.View) string {
			return fmt.Sprintf("%s %d %d %d %d %d %v %v %q %q", v.Topic(), v.QueueID(), v.Flag(), v.SysFlag(), v.ReconsumeTimes(), v.BornTime(),
				v.BornHost(), v.StoreHost(), v.Body(), record.AppendWithout(nil, v.Properties(), own...))
		}
		send()
		w.pass(6 * time.Second)
		for _, end := range []func(){w.stopClean, w.kill} {
			send()
			w.pass(2 * time.Second)
			end()
			w.start()
			w.pass(4 * time.Second)
		}
		synctest.Wait()
		all := w.delivered()
		if len(all) != 3 {
			t.Fatalf("%d delivered", len(all))
		}
		want := fields(all[0].View)
		for _, g := range all[1:] {
			if got := fields(g.View); got != want {
				t.Errorf("after a restart\n%s\nwithout\n%s", got, want)
			}
		}
		if !strings.Contains(want, "T 2 -7") || !strings.Contains(want, "KEYS") {
			t.Error(want)
		}
	})
}

// X16: what is recalled stays so when the power goes right behind the answer, and in
// every life that follows.
func TestX16RecalledStaysRecalled(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.sync = true
		w.start()
		due := time.Now().UnixMilli() + 10_000
		seq := w.sendAt("T", 0, due, "recalled")
		w.sendAt("T", 0, due, "stays")
		w.pass(time.Second)
		at, err := w.flow.Recall(Name{Topic: "T", Unique: "recalled", Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		durable := make(chan error, 1)
		w.store.WhenDurable(at.End, time.Second, func(err error) { durable <- err }) // as the answer waits for it
		if err := <-durable; err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(){w.cutPower, w.kill, w.stopClean, w.kill} {
			end()
			w.start()
			w.pass(4 * time.Second)
		}
		synctest.Wait()
		w.once(map[string]int64{"stays": due})
		if w.pending() != 0 {
			t.Errorf("%d are pending", w.pending())
		}
	})
}

// X18: bookkeeping that a user sends along with a timed message does not count, and a
// delivered copy that is sent again is due when it says now.
func TestX18ForeignBookkeepingOfTimedMessages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, Body: []byte("x")}
		for _, p := range [][2]string{
			{mq.PropReceipt, w.store.ID() + " " + mq.TopicTimer + " 0 0"}, {mq.PropDue, "1"}, {mq.PropDelayMillis, "1"}, {mq.PropTimerOutMs, "1"},
			{mq.PropTimerEnqueueMs, "1"}, {mq.PropTimerDequeueMs, "1"}, {mq.PropTimerRollTimes, "9"}, {mq.PropRealTopic, "Elsewhere"}, {mq.PropRealQueueID, "9"},
		} {
			m.Properties = record.AppendProperty(m.Properties, p[0], p[1])
		}
		if err := w.putTimed(m, start+5000); err != nil {
			t.Fatal(err)
		}
		w.pass(6 * time.Second)
		synctest.Wait()
		all := w.delivered()
		if len(all) != 1 || all[0].Topic != "T" || all[0].Queue != 0 || all[0].At != start+5000 {
			t.Fatalf("delivered %+v", all)
		}
		if r, _ := all[0].View.Property(mq.PropReceipt); string(r) != fmt.Sprint(w.store.ID(), " ", mq.TopicTimer, " 0 0 ", start+5000) {
			t.Errorf("receipt %q", r)
		}
		again := all[0].View.Message()
		again.Topic, again.QueueID, again.Body = "T", 1, []byte("again")
		again.Properties = record.AppendWithout(nil, again.Properties, mq.PropTimerDeliverMs)
		if err := w.putTimed(&again, start+9000); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Second)
		synctest.Wait()
		all = w.delivered()
		if len(all) != 2 || all[1].Queue != 1 || all[1].At != start+9000 {
			t.Errorf("sent again: %+v", all)
		}
	})
}
