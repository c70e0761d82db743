package delay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// seldom makes background work of a store so rare that hours in a bubble are cheap.
func seldom(c *storage.Config) {
	c.FlushInterval, c.QueueFlushInterval, c.QueueSyncInterval = time.Minute, time.Minute, time.Minute
	c.Expiry.Interval, c.Expiry.GuardInterval, c.Expiry.FilePause = time.Minute, time.Minute, 0
}

// fill makes the log n files longer.
func (w *world) fill(n int) {
	w.t.Helper()
	for end := w.store.MaxLog() + mq.LogOffset(n)*64<<10; w.store.MaxLog() < end; {
		m := &record.Message{Topic: "Filler", BornHost: host, StoreHost: host, Body: make([]byte, 4000)}
		if _, err := w.store.Append(m); err != nil {
			w.t.Fatal(err)
		}
	}
}

// D13: a delay that is longer than messages are kept: the file with the pending
// message stays, and goes once it was delivered.
func TestD13PendingMessagesOutliveTheRetention(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.levels = "1h 3h"
		w.tune = func(c *Config) { c.FlushInterval = time.Minute }
		w.tuneStore = func(c *storage.Config) {
			seldom(c)
			c.Expiry.Reserved, c.Expiry.Hours = time.Hour, []int{0, 1, 2, 3, 4, 5, 6}
		}
		start := func() {
			w.start()
			flow := w.flow
			w.store.Pin("pending delayed messages", func() mq.LogOffset { return flow.Pin() })
		}
		start()
		w.fill(2)
		want := map[string]int64{"a": w.send("T", 0, 2, "a")}
		at := w.store.MaxLog()
		w.fill(3)
		w.pass(90 * time.Minute)
		w.fill(1)
		if first := w.store.MinLog(); first == 0 || first > at {
			t.Errorf("after 90 minutes the log begins at %d; what is before the pending message at %d is to go, and it is to stay", first, at)
		}
		w.stopClean()
		start()
		w.pass(90*time.Minute - time.Millisecond)
		synctest.Wait()
		if n := len(w.delivered()); n != int(w.store.MaxOffset(mq.QueueKey{Topic: "Filler"})-w.store.MinOffset(mq.QueueKey{Topic: "Filler"})) {
			t.Error("delivered early")
		}
		w.pass(time.Millisecond)
		synctest.Wait()
		found := false
		for _, g := range w.delivered() {
			found = found || g.Body == "a" && g.At == want["a"]
		}
		if !found {
			t.Error("not delivered in its millisecond")
		}
		w.pass(2 * time.Hour)
		if first := w.store.MinLog(); first <= at {
			t.Errorf("two hours after the delivery the log still begins at %d", first)
		}
	})
}

// D14: messages as large as they may be, and with as many properties as they may
// have, are delivered, and those behind them, too.
func TestD14MessagesAtTheLimitsAreDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const limit = 5000
		w.tuneStore = func(c *storage.Config) { c.MaxMessage, c.CRCTail, c.LogFileSize = limit, true, 256<<10 }
		w.start()
		want := map[string]int64{}
		big := func(body string, size, props int) error {
			m := &record.Message{Topic: strings.Repeat("t", mq.MaxTopicLen), QueueID: 3, BornHost: host, StoreHost: host, Body: []byte(body + strings.Repeat("x", size-len(body)))}
			m.Properties = record.AppendProperty(m.Properties, mq.PropDelay, "2")
			m.Properties = record.AppendProperty(m.Properties, "p", strings.Repeat("y", props))
			if err := w.flow.cfg.Levels.Retarget(m); err != nil {
				return err
			}
			a, err := w.store.Append(m)
			if err == nil {
				want[string(m.Body)] = a.StoreTime + 5000
			}
			return err
		}
		n := 0
		for _, size := range []int{limit - 1, limit} {
			for _, props := range []int{0, 31_000, 31_743} {
				n++
				if err := big(fmt.Sprint(n), size, props); err != nil {
					t.Errorf("body of %d, properties of %d bytes: %v", size, props, err)
				}
			}
		}
		// Beyond what users may send: taken and delivered, or refused at once.
		for props := 32_000; props <= record.MaxProperties; props += 7 {
			n++
			if err := big(fmt.Sprint(n), 10, props); err != nil {
				break
			}
		}
		want["small"] = w.send("T", 0, 2, "small")
		w.pass(6 * time.Second)
		synctest.Wait()
		w.once(want)
		w.kill()
		w.start()
		w.pass(time.Minute)
		synctest.Wait()
		w.once(want)
		if st := w.flow.Stats(); st.Aside != 0 || st.Pending != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// D22: everything that is not the log can be made again from the log: sent is delivered.
func TestD22WhatIsDerivedIsRebuilt(t *testing.T) {
	for _, lost := range [][]string{
		{"consumequeue"}, {"consumequeue/SCHEDULE_TOPIC_XXXX"}, {"consumequeue", "checkpoint", "config", "sundial/delay.json", "sundial/delay.json.bak", "sundial/state"},
	} {
		t.Run(strings.Join(lost, ","), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				want := map[string]int64{}
				for round := range 6 {
					for i := range 200 {
						b := body(fmt.Sprint("r", round), i)
						want[b] = w.send("T", i%4, 1+i%3, b)
						if i%20 == 0 {
							w.pass(7 * time.Millisecond)
						}
					}
					w.pass(time.Duration(round) * 700 * time.Millisecond)
					w.kill()
					for _, name := range lost {
						if err := w.disk.RemoveAll(dir + "/" + name); err != nil {
							t.Fatal(err)
						}
					}
					w.start()
				}
				w.pass(11 * time.Second)
				synctest.Wait()
				w.once(want)
				if w.pending() != 0 {
					t.Errorf("%d pending", w.pending())
				}
			})
		})
	}
}

// D29: a delay counts from the broker's clock when the message arrives, whatever
// the clocks of the producers show.
func TestD29DelayCountsFromTheArrival(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		arrived := time.Now().UnixMilli()
		for i, skew := range []int64{-3000, 0, 3000, -1 << 40, 1 << 40} {
			m := &record.Message{Topic: "T", BornHost: host, StoreHost: host, BornTime: arrived + skew, Body: []byte(fmt.Sprint(i)),
				Properties: record.AppendProperty(nil, mq.PropDelay, "1")}
			if err := w.flow.cfg.Levels.Retarget(m); err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		all := w.delivered()
		for _, g := range all {
			if g.At != arrived+1000 {
				t.Errorf("%s came %d ms after its arrival", g.Body, g.At-arrived)
			}
		}
		if len(all) != 5 {
			t.Errorf("%d delivered", len(all))
		}
	})
}

// X08, X14: what a start reads and what the files take follows what is pending,
// not what once was.
func TestX08FilesAndStartFollowWhatIsPending(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.send("T", 0, 1, "first")
		w.pass(2 * time.Second)
		w.stopClean()
		floor := len(w.fileOf("sundial/delay.json"))
		w.start()
		var want int
		for i := range 3000 {
			w.send("T", 0, 1+i%4, body("m", i))
			w.pass(time.Millisecond)
			want++
		}
		w.pass(40 * time.Second)
		synctest.Wait()
		w.kill()
		prior, err := ReadPrior(w.disk, dir+"/config", dir+"/sundial", nil)
		if err != nil {
			t.Fatal(err)
		}
		w.start()
		if from, end := prior.From(), w.store.MaxLog(); from < end-64<<10 {
			t.Errorf("with nothing pending a start reads the log from %d of %d", from, end)
		}
		if w.pending() != 0 || len(w.delivered()) != want+1 {
			t.Errorf("%d pending, %d delivered", w.pending(), len(w.delivered()))
		}
		w.stopClean()
		if n := len(w.fileOf("sundial/delay.json")); n > floor+400 {
			t.Errorf("delay.json has %d bytes, after one message it had %d:\n%s", n, floor, w.fileOf("sundial/delay.json"))
		}
		w.start()
	})
}

// X11: pending messages whose log file somebody removed are counted as lost and
// stop nothing; the others are delivered.
func TestX11MissingPendingMessagesStopNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tuneStore = seldom
		w.start()
		for i := range 10 {
			w.send("T", 0, 2, body("gone", i))
		}
		w.fill(2)
		want := map[string]int64{}
		for i := range 10 {
			want[body("kept", i)] = w.send("T", 0, 2, body("kept", i))
		}
		w.stopClean()
		if err := w.disk.Remove(dir + "/commitlog/00000000000000000000"); err != nil {
			t.Fatal(err)
		}
		w.start()
		want["new"] = w.send("T", 0, 2, "new")
		w.pass(10 * time.Second)
		synctest.Wait()
		n := 0
		for _, g := range w.delivered() {
			if g.Topic != "T" {
				continue
			}
			if n++; g.At != want[g.Body] {
				t.Errorf("%s came at %d, due %d", g.Body, g.At, want[g.Body])
			}
		}
		if st := w.flow.Stats(); n != 11 || st.Pending != 0 || st.Aside != 10 {
			t.Errorf("%d delivered, want 11; %+v", n, st)
		}
		w.kill()
		w.start()
		if st := w.flow.Stats(); st.Pending != 0 || st.Aside != 10 {
			t.Errorf("after a further start: %+v", st)
		}
	})
}

// X15: a restart changes nothing of a pending message.
func TestX15RestartChangesNoField(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		send := func() {
			m := &record.Message{Topic: "T", QueueID: 2, Flag: -7, SysFlag: mq.SysCompressed, ReconsumeTimes: 3, BornTime: 12345, BornHost: host, StoreHost: host, Body: []byte("\x78\x9c\x00raw")}
			for _, p := range [][2]string{{"KEYS", "k1 k2"}, {"TAGS", "a"}, {"own", "wert=ü"}, {"UNIQ_KEY", "U"}, {mq.PropDelay, "2"}} {
				m.Properties = record.AppendProperty(m.Properties, p[0], p[1])
			}
			if err := w.flow.cfg.Levels.Retarget(m); err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Append(m); err != nil {
				t.Fatal(err)
			}
		}
		fields := func(v record.View) string {
			props := map[string]string{}
			for name, value := range record.EachProperty(v.Properties()) {
				props[string(name)] = string(value)
			}
			delete(props, mq.PropReceipt)
			text, err := json.Marshal(props)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(string(v.Topic()), v.QueueID(), v.Flag(), v.SysFlag(), v.ReconsumeTimes(), v.BornTime(), v.BornHost(), v.StoreHost(), v.PreparedOffset(), string(v.Body()), string(text))
		}
		send()
		w.pass(6 * time.Second)
		synctest.Wait()
		for _, end := range []func(){w.stopClean, w.kill} {
			send()
			w.pass(2 * time.Second)
			end()
			w.start()
			w.pass(4 * time.Second)
			synctest.Wait()
		}
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
		if !strings.Contains(want, "-7") || !strings.Contains(want, "wert=ü") {
			t.Error(want)
		}
	})
}
