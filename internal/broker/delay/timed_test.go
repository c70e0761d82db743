package delay

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage"
)

// What is sent for a time comes in its millisecond, also across a kill.
func TestTimedMessagesAreExact(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		now := time.Now().UnixMilli()
		want := map[string]int64{}
		at := func(ms int64, body string) {
			want[body] = now + ms
			w.sendAt("T", 0, now+ms, body)
		}
		for i, ms := range []int64{1, 7, 499, 500, 501, 999, 1000, 1001, 5000, 60_000, 3_600_000, 20 * 3_600_000} {
			at(ms, body("a", i))
		}
		w.pass(2 * time.Second)
		w.kill()
		w.start()
		for i := range 100 {
			at(2000+int64(i*37%100), body("b", i))
		}
		w.pass(3 * time.Second)
		w.stopClean()
		w.start()
		w.pass(21 * time.Hour)
		synctest.Wait()
		w.once(want)
		for _, g := range w.delivered() {
			if late := g.At - want[g.Body]; late != 0 {
				t.Errorf("%q came %d ms late", g.Body, late)
			}
		}
		if w.pending() != 0 {
			t.Errorf("%d are pending", w.pending())
		}
	})
}

// D19, X16: what is recalled never comes, also after a kill; each answer is true.
func TestD19Recall(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tuneStore = func(c *storage.Config) { c.Index = true }
		w.start()
		start := time.Now().UnixMilli()
		far := w.sendAt("T", 0, start+3_600_000, "far")
		soon := w.sendAt("T", 0, start+3000, "soon")
		w.sendAt("T", 1, start+1000, "past")
		stays := w.sendAt("T", 2, start+7_200_000, "stays")
		w.pass(2 * time.Second)

		refused := func(says string, err error) {
			t.Helper()
			if !errors.Is(err, mq.ErrIllegalOperation) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want an illegal operation that says %q", err, says)
			}
		}
		recall := func(n Name) error { _, err := w.flow.Recall(n); return err }
		refused("too late", recall(Name{Topic: "T", Unique: "past", Seq: 2}))
		refused("not found", recall(Name{Topic: "U", Unique: "far", Seq: far}))
		refused("not found", recall(Name{Topic: "T", Unique: "other", Seq: far}))
		refused("not found", recall(Name{Topic: "T", Unique: "nothing", Seq: UnknownSeq}))
		refused("not found", recall(Name{Topic: "T", Unique: "far", Seq: 1000}))
		if err := recall(Name{Topic: "T", Unique: "far", Seq: UnknownSeq}); err != nil {
			t.Error(err)
		}
		refused("already", recall(Name{Topic: "T", Unique: "far", Seq: far}))
		w.pass(900 * time.Millisecond) // it is at hand already
		if err := recall(Name{Topic: "T", Unique: "soon", Seq: soon}); err != nil {
			t.Error(err)
		}
		w.kill()
		w.start()
		refused("already", recall(Name{Topic: "T", Unique: "far", Seq: far}))
		list, _, err := w.flow.List(Listing{To: math.MaxInt64, Max: 10})
		if err != nil || len(list) != 1 || list[0].Seq != stays || list[0].Unique != "stays" || list[0].Queue != 2 || list[0].Due != start+7_200_000 {
			t.Errorf("listed %+v, %v", list, err)
		}
		w.pass(90 * time.Minute)
		w.kill()
		w.start()
		w.pass(90 * time.Minute)
		synctest.Wait()
		w.once(map[string]int64{"past": start + 1000, "stays": start + 7_200_000})
	})
}

// A message that is moved comes at its new time and not at the old one; one that
// is fired comes at once.
func TestRescheduleAndFire(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		moved := w.sendAt("T", 0, start+5000, "moved")
		fired := w.sendAt("T", 3, start+60_000, "fired")
		synctest.Wait()
		at, err := w.flow.Reschedule(Name{Topic: "T", Unique: "moved", Seq: moved}, start+20_000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.flow.Reschedule(Name{Topic: "T", Unique: "moved", Seq: moved}, start+30_000); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("moved twice by its old name: %v", err)
		}
		w.kill()
		w.start()
		if _, err := w.flow.Reschedule(Name{Topic: "T", Unique: "moved", Seq: at.Queue}, start+10_000); err != nil {
			t.Error(err)
		}
		w.pass(time.Second)
		if _, err := w.flow.FireNow(Name{Topic: "T", Unique: "fired", Seq: fired}); err != nil {
			t.Error(err)
		}
		w.kill()
		w.start()
		if _, err := w.flow.FireNow(Name{Topic: "T", Unique: "fired", Seq: fired}); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("fired twice: %v", err)
		}
		w.pass(2 * time.Minute)
		synctest.Wait()
		w.once(map[string]int64{"moved": start + 10_000, "fired": start + 1000})
		for _, g := range w.delivered() {
			want := map[string]int64{"moved": start + 10_000, "fired": start + 1000}[g.Body]
			if g.At != want {
				t.Errorf("%q came at %d, want %d", g.Body, g.At-start, want-start)
			}
			for _, name := range []string{mq.PropDue, mq.PropRecalled} {
				if value, ok := g.View.Property(name); ok {
					t.Errorf("%q was delivered with %s=%s", g.Body, name, value)
				}
			}
		}
		if w.pending() != 0 {
			t.Errorf("%d are pending", w.pending())
		}
	})
}

// A clock that is set a year ahead by mistake delivers nothing early: the step is
// held, and when the clock is set right nothing has happened. One that is confirmed counts.
func TestClockSetFarAhead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		w.sendAt("T", 0, start+5000, "soon")
		w.sendAt("T", 0, start+3_600_000, "later")
		w.pass(time.Second)
		w.shift.Store(int64(365 * 24 * time.Hour))
		w.pass(30 * time.Second)
		if st := w.flow.Clock(); !st.Holding || st.Forward != 1 {
			t.Errorf("the clock is %+v", st)
		}
		w.shift.Store(0)
		w.pass(time.Minute)
		synctest.Wait()
		w.once(map[string]int64{"soon": start + 5000})
		if st := w.flow.Clock(); st.Holding {
			t.Errorf("set right, the clock is %+v", st)
		}
		w.shift.Store(int64(2 * time.Hour))
		w.pass(10 * time.Second)
		if !w.flow.ConfirmClock() {
			t.Error("nothing to confirm")
		}
		w.pass(2 * time.Second)
		synctest.Wait()
		w.once(map[string]int64{"soon": start + 5000, "later": 0})
	})
}
