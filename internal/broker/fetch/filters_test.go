package fetch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

func sql(expr string, from mq.QueueOffset, wait time.Duration) Request {
	return Request{Subscription: expr, ExpressionType: filter.SQL92, Offset: from, Suspend: wait}
}

// F01, F02: a pull by an SQL92 expression gets what the expression is true of;
// one that cannot be read is refused with its place.
func TestF02PullBySQL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i, tag := range []string{"Aa", "BB", "", "other"} {
			b.put(0, fmt.Sprint(i), tag)
		}
		for expr, want := range map[string]string{
			"TAGS = 'Aa'": "[0]", "TAGS <> 'Aa'": "[1 3]", "TAGS IS NULL": "[2]", "TAGS CONTAINS 'o' OR TAGS IN ('BB')": "[1 3]", "TAGS IS NULL OR TRUE": "[0 1 2 3]",
		} {
			if a := <-b.pull(sql(expr, 0, 0)); a.err != nil || fmt.Sprint(a.bodies) != want || a.Next != 4 {
				t.Errorf("%s: %v, next %d, %v; want %s", expr, a.bodies, a.Next, a.err, want)
			}
		}
		for range 2 { // the second time the complaint is remembered
			if a := <-b.pull(sql("TAGS >>> 1", 0, 0)); !errors.Is(a.err, mq.ErrSubscriptionParse) || !strings.Contains(a.err.Error(), "column 7") {
				t.Errorf("bad SQL: %v", a.err)
			}
		}
		if a := <-b.pull(Request{Subscription: "class", Flag: mq.PullSubscription | mq.PullClassFilter}); !errors.Is(a.err, mq.ErrSubscriptionParse) || !strings.Contains(a.err.Error(), "filter class") {
			t.Errorf("class filter: %v", a.err)
		}
	})
}

func TestF01SQLSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.PropertyFilter = false })
		b.put(0, "1", "Aa")
		if a := <-b.pull(sql("TAGS = 'Aa'", 0, 0)); !errors.Is(a.err, mq.ErrSystem) || !strings.Contains(a.err.Error(), "enablePropertyFilter") {
			t.Errorf("%v", a.err)
		}
		if a := <-b.pull(Request{Subscription: "Aa"}); fmt.Sprint(a.bodies) != "[1]" {
			t.Errorf("tags: %+v", a)
		}
	})
}

// A pull whose filter passes nothing comes back after MaxScan messages and goes
// on from there: no filter holds a worker, and none is stuck.
func TestAFilterThatMatchesNothingGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.MaxScan = 10 })
		for i := range 25 {
			b.put(0, fmt.Sprint(i), "Aa")
		}
		b.put(0, "wanted", "BB")
		from := mq.QueueOffset(0)
		for _, want := range []mq.QueueOffset{10, 20} {
			a := <-b.pull(Request{Subscription: "TAGS = 'BB'", ExpressionType: filter.SQL92, Offset: from, Max: 1, Suspend: time.Minute})
			if a.err != nil || a.Status != Filtered || a.Next != want {
				t.Fatalf("from %d: %+v, want to go on at %d", from, a, want)
			}
			from = a.Next
		}
		if a := <-b.pull(Request{Subscription: "TAGS = 'BB'", ExpressionType: filter.SQL92, Offset: from, Max: 1}); fmt.Sprint(a.bodies) != "[wanted]" {
			t.Errorf("%+v", a)
		}
	})
}

// What arrives and does not pass leaves the pull parked: it is answered by what
// does, or when its time is over, with the place to go on from.
func TestParkedPullSleepsThroughWhatItDoesNotWant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		wanted := b.pull(sql("TAGS = 'BB'", 0, time.Minute))
		never := b.pull(sql("TAGS = 'none'", 0, time.Minute))
		hash := b.pull(Request{Subscription: "BB", Suspend: time.Minute}) // Aa has the hash of BB
		for i := range 5 {
			b.put(0, fmt.Sprint(i), "Aa")
			synctest.Wait()
			if n := b.Parked(); n != 3 {
				t.Fatalf("%d pulls are parked after a message for none of the three", n)
			}
		}
		time.Sleep(time.Second)
		b.put(0, "wanted", "BB")
		for _, ch := range []<-chan answer{wanted, hash} {
			if a := <-ch; fmt.Sprint(a.bodies) != "[wanted]" || a.at.Sub(began) != time.Second {
				t.Errorf("after %v: %+v", a.at.Sub(began), a)
			}
		}
		if a := <-never; a.err != nil || a.Status != NoNew || a.Next != 6 || a.at.Sub(began) != time.Minute {
			t.Errorf("after %v: %+v", a.at.Sub(began), a)
		}
		if b.Parked() != 0 {
			t.Error("something is left in the lot")
		}
	})
}

// The end of waiting answers pulls that were parked more than once.
func TestStopAnswersPullsThatSleptOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ch := b.pull(sql("TAGS = 'BB'", 0, time.Minute))
		b.put(0, "1", "Aa")
		synctest.Wait()
		b.StopWaiting()
		if a := <-ch; a.err != nil || a.Next != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// What is kept compiled has a bound in number and in bytes.
func TestCompiledFiltersAreBounded(t *testing.T) {
	t.Parallel()
	var c filters
	long := strings.Repeat("x", filter.MaxSQL-100)
	for i := range 300 {
		if _, err := c.get(filter.SQL92, fmt.Sprintf("a = '%s%d'", long, i)); err != nil {
			t.Fatal(err)
		}
		if c.bytes > maxFilterBytes {
			t.Fatalf("%d bytes are kept", c.bytes)
		}
	}
	for i := range 2 * maxFilters {
		if _, err := c.get(filter.TAG, fmt.Sprint("t", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.m) > maxFilters {
		t.Fatalf("%d filters are kept", len(c.m))
	}
	one, _ := c.get(filter.SQL92, "a = 1")
	if other, _ := c.get(filter.SQL92, "a = 1"); one != other {
		t.Error("compiled twice")
	}
	if other, _ := c.get(filter.TAG, "a = 1"); one == other {
		t.Error("the type does not count")
	}
}
