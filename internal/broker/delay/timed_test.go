package delay

import (
	"testing"
	"testing/synctest"
	"time"
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
		time.Sleep(2 * time.Second)
		w.kill()
		w.start()
		for i := range 100 {
			at(2000+int64(i*37%100), body("b", i))
		}
		time.Sleep(3 * time.Second)
		w.stopClean()
		w.start()
		time.Sleep(21 * time.Hour)
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
