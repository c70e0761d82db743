package delay

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// A topic with a rate gets no more than that, in order and never early, also across
// a kill; all others get theirs in time.
func TestRateOfATopic(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const rate, queues = 100, 3
		w.tune = func(c *Config) {
			c.Rate = func(topic string) int64 {
				if topic == "T" {
					return rate
				}
				return 0
			}
		}
		w.start()
		due := time.Now().UnixMilli() + 1000
		want := map[string]int64{}
		for i := range 450 {
			b := body("t", i)
			want[b] = due
			w.sendAt("T", i%queues, due, b)
		}
		for i := range 50 {
			b := body("level", i)
			want[b] = w.send("T", 0, 1, b)
		}
		for i := range 60 {
			b := body("u", i)
			want[b] = due + int64(i)*100
			w.sendAt("U", 0, want[b], b)
		}
		w.pass(3 * time.Second)
		w.kill()
		w.start()
		w.pass(20 * time.Second)
		synctest.Wait()
		w.once(want)
		var limited []int64
		last := map[mq.QueueID]string{}
		for _, g := range w.delivered() {
			if g.Topic == "U" {
				if g.At != want[g.Body] {
					t.Errorf("%q came %d ms late", g.Body, g.At-want[g.Body])
				}
				continue
			}
			limited = append(limited, g.At)
			if g.Body[0] == 't' {
				if g.Body <= last[g.Queue] {
					t.Errorf("%q came behind %q", g.Body, last[g.Queue])
				}
				last[g.Queue] = g.Body
			}
		}
		for i := rate + 2; i < len(limited); i++ {
			// The kill forgets what was delivered a moment ago: one handful more.
			if d := limited[i] - limited[i-rate-2]; d < 980 {
				t.Fatalf("%d deliveries in %d ms", rate+3, d)
			}
		}
		if took := limited[len(limited)-1] - due; took < 4900 || took > 5200 {
			t.Errorf("500 messages at %d a second took %d ms", rate, took)
		}
	})
}

func TestRateIsKeptOverTime(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{1, 7, 1000, 250_000, 1_000_000_000} {
		r := rates{of: func(string) int64 { return rate }}
		start := time.Unix(1000, 0)
		now, n := start, int64(0)
		for now.Sub(start) < 2*time.Second && n < 100_000 {
			if d := r.wait("T", now); d > 0 {
				now = now.Add(d)
				continue
			}
			n++
		}
		span := now.Sub(start) + burst
		if most := int64(float64(rate)*span.Seconds()) + 1; n > most || n < 100_000 && n < rate*2-1 {
			t.Errorf("%d deliveries in %v at %d a second", n, now.Sub(start), rate)
		}
		// A clock that is set back does not stop the topic.
		if d := r.wait("T", start.Add(-time.Hour)); d > 0 {
			t.Errorf("it waits %v after the clock was set back", d)
		}
	}
}

// Messages for a topic with jitter are spread behind their time, never before it.
func TestJitterOfATopic(t *testing.T) {
	t.Parallel()
	levels, err := ParseLevels("1s 5s")
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_700_000_000_000)
	rules := Rules{Levels: levels, Timers: DefaultTimers(), Now: func() time.Time { return now }, Jitter: func(topic string) int64 {
		if topic == "T" {
			return 30_000
		}
		return 0
	}}
	for _, c := range []struct {
		name  string
		wait  int64
		apply func(m *record.Message) error
	}{
		{"level", 5000, func(m *record.Message) error {
			m.Properties = record.AppendProperty(nil, mq.PropDelay, "2")
			return rules.Retarget(m)
		}},
		{"timed", 700, func(m *record.Message) error {
			m.Properties = record.AppendProperty(nil, mq.PropTimerDelayMs, "700")
			return rules.Retarget(m)
		}},
		{"pause", 1234, func(m *record.Message) error { _, err := rules.RetargetAfter(m, 1234); return err }},
		{"pause of a level", 1000, func(m *record.Message) error { _, err := rules.RetargetAfter(m, 1000); return err }},
	} {
		seen := map[int64]bool{}
		for i := range 200 {
			m := &record.Message{Topic: "T"}
			if i%2 == 0 {
				m.Topic = "U"
			}
			topic := m.Topic
			if err := c.apply(m); err != nil {
				t.Fatal(err)
			}
			late := rules.TagsCode(m.Topic, m.Properties, now.UnixMilli()) - now.UnixMilli() - c.wait
			if late < 0 || late > 30_000 || topic == "U" && late != 0 {
				t.Fatalf("%s: %d ms late for %s", c.name, late, topic)
			}
			if m.Topic == mq.TopicTimer {
				v, _ := record.Property(m.Properties, mq.PropTimerOutMs)
				if out, _ := strconv.ParseInt(string(v), 10, 64); out >= now.UnixMilli()+c.wait+late || out < now.UnixMilli()+c.wait+late-1000 {
					t.Fatalf("%s: TIMER_OUT_MS %d", c.name, out)
				}
			}
			seen[late/3000] = true
		}
		if len(seen) < 8 {
			t.Errorf("%s: spread over %d tenths of the jitter", c.name, len(seen))
		}
	}
}

// Within a queue messages come by due time and, of one millisecond, in the order in
// which they were sent, whatever happens meanwhile.
func TestOrderWithinAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		refuse := &atomicTopics{}
		w.fail = func(m *record.Message) error {
			if refuse.has(m.Topic) {
				return fmt.Errorf("%w: for the test", mq.ErrNoTopic)
			}
			return nil
		}
		w.start()
		start := time.Now().UnixMilli()
		dues := map[string]int64{} // body: due; bodies are numbered in the order of sending
		sent := 0
		send := func(due int64) {
			b := body("m", sent)
			sent++
			dues[b] = due
			w.sendAt("T", sent%2, due, b)
		}
		for i := range 400 {
			send(start + 5000 + int64(i*7919%40)) // ten of each, in disorder
		}
		w.pass(time.Second)
		w.kill()
		w.start()
		for i := range 400 {
			send(start + 5000 + int64(i*104729%40))
		}
		w.pass(3700 * time.Millisecond) // the first are at hand now
		for i := range 80 {
			send(start + 5000 + int64(39-i%40))
		}
		refuse.toggle("T")
		w.pass(305 * time.Millisecond) // some are due and not taken
		refuse.toggle("T")
		for i := range 80 {
			send(start + 6000 + int64(i%4))
		}
		w.pass(4 * time.Second)
		w.stopClean()
		w.start()
		synctest.Wait()
		w.once(dues)
		last := map[mq.QueueID]got{}
		for _, g := range w.delivered() {
			if l, ok := last[g.Queue]; ok && (dues[g.Body] < dues[l.Body] || dues[g.Body] == dues[l.Body] && g.Body < l.Body) {
				t.Errorf("%q, due %d, came behind %q, due %d", g.Body, dues[g.Body]-start, l.Body, dues[l.Body]-start)
			}
			last[g.Queue] = g
		}
	})
}

// Levels and timed messages share the order of due times.
func TestOrderAcrossLevelsAndTimes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		dues := map[string]int64{}
		for i := range 60 {
			b := body("x", i)
			switch i % 3 {
			case 0:
				dues[b] = w.send("T", 0, 2, b)
			case 1:
				dues[b] = time.Now().UnixMilli() + 5001
				w.sendAt("T", 0, dues[b], b)
			default:
				dues[b] = time.Now().UnixMilli() + 4999
				w.sendAt("T", 0, dues[b], b)
				w.pass(3 * time.Millisecond)
			}
		}
		w.pass(10 * time.Second)
		synctest.Wait()
		w.once(dues)
		last := int64(0)
		for _, g := range w.delivered() {
			if dues[g.Body] < last {
				t.Errorf("%q came %d ms behind its turn", g.Body, last-dues[g.Body])
			}
			last = max(last, dues[g.Body])
		}
	})
}
