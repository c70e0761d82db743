package fetch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

func waiting(queue mq.QueueID, off mq.QueueOffset, conn uint64, wait time.Duration) *parked {
	return &parked{
		req: &Request{Topic: "T", Queue: queue, Offset: off, Conn: conn}, key: mq.QueueKey{Topic: "T", ID: queue},
		deadline: time.Now().Add(wait),
	}
}

// woken collects what leaves the lot, with the time it took.
type woken struct {
	mu    sync.Mutex
	pulls map[*parked]time.Time
}

func serve(t *testing.T, l *lot) *woken {
	w := &woken{pulls: map[*parked]time.Time{}}
	go func() {
		for p := l.next(); p != nil; p = l.next() {
			w.mu.Lock()
			if _, twice := w.pulls[p]; twice {
				t.Errorf("a pull was woken twice")
			}
			w.pulls[p] = time.Now()
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *woken) at(p *parked) time.Time {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pulls[p]
}

func TestParkedPullTimesOutToTheMillisecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLot(100, 100)
		w := serve(t, l)
		defer l.close()
		began := time.Now()
		var pulls []*parked
		for _, wait := range []time.Duration{15 * time.Second, 2 * time.Second, 3 * time.Second, time.Millisecond, 2 * time.Second} {
			p := waiting(0, 0, 1, wait)
			if err := l.park(p); err != nil {
				t.Fatal(err)
			}
			pulls = append(pulls, p)
		}
		<-time.After(20 * time.Second)
		for _, p := range pulls {
			if got := w.at(p); !got.Equal(p.deadline) {
				t.Errorf("a pull that waits %v came back after %v", p.deadline.Sub(began), got.Sub(began))
			}
		}
		if n := l.count.Load(); n != 0 {
			t.Errorf("%d pulls are left in the lot", n)
		}
	})
}

func TestArrivalWakesWhoMayWantIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLot(100, 100)
		w := serve(t, l)
		defer l.close()
		tagA, err := filter.Parse("TAG", "A")
		if err != nil {
			t.Fatal(err)
		}
		all, other, later, otherQueue := waiting(0, 5, 1, time.Minute), waiting(0, 5, 1, time.Minute), waiting(0, 6, 1, time.Minute), waiting(1, 5, 2, time.Minute)
		other.match = tagA
		for _, p := range []*parked{all, other, later, otherQueue} {
			if err := l.park(p); err != nil {
				t.Fatal(err)
			}
		}
		l.arrived(mq.QueueKey{Topic: "T"}, 5, mq.TagsCode("B"))
		for p, want := range map[*parked]bool{all: true, other: false, later: false, otherQueue: false} {
			if got := !w.at(p).IsZero(); got != want {
				t.Errorf("pull at %d of queue %d: woken %v, want %v", p.req.Offset, p.req.Queue, got, want)
			}
		}
		l.arrived(mq.QueueKey{Topic: "T"}, 6, mq.TagsCode("A"))
		if w.at(other).IsZero() || w.at(later).IsZero() {
			t.Error("a message with tag A at 6 woke not both that may want it")
		}
	})
}

func TestParkedPullsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLot(3, 2)
		defer l.close()
		for i := range 2 {
			if err := l.park(waiting(0, 0, uint64(i), time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.park(waiting(0, 0, 9, time.Minute)); !errors.Is(err, mq.ErrBusy) {
			t.Errorf("third pull on a queue with two places: %v", err)
		}
		if err := l.park(waiting(1, 0, 9, time.Minute)); err != nil {
			t.Errorf("a place is free: %v", err)
		}
		if err := l.park(waiting(2, 0, 9, time.Minute)); !errors.Is(err, mq.ErrBusy) {
			t.Errorf("fourth pull in a lot with three places: %v", err)
		}
		l.forget(uint64(0))
		if err := l.park(waiting(0, 0, 9, time.Minute)); err != nil {
			t.Errorf("the closed connection's place is free again: %v", err)
		}
		l.close()
		if err := l.park(waiting(3, 0, 9, time.Minute)); !errors.Is(err, mq.ErrUnavailable) {
			t.Errorf("parking in a closed lot: %v", err)
		}
	})
}

// TestLotAgainstAModel parks, wakes, forgets and times out at random; each pull
// must leave exactly once, by the first of the events that concern it.
func TestLotAgainstAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				l := newLot(1000, 1000)
				w := serve(t, l)
				in := map[*parked]bool{}
				check := func(p *parked, gone bool) {
					t.Helper()
					if got := !w.at(p).IsZero(); got != gone {
						t.Fatalf("pull at %d of queue %d: woken %v, want %v", p.req.Offset, p.req.Queue, got, gone)
					}
				}
				for range 400 {
					switch r.IntN(10) {
					case 0, 1, 2, 3:
						p := waiting(mq.QueueID(r.IntN(3)), mq.QueueOffset(r.IntN(4)), uint64(r.IntN(5)), time.Duration(1+r.IntN(2000))*time.Millisecond)
						if err := l.park(p); err != nil {
							t.Fatal(err)
						}
						in[p] = true
					case 4, 5:
						key, off := mq.QueueKey{Topic: "T", ID: mq.QueueID(r.IntN(3))}, mq.QueueOffset(r.IntN(4))
						l.arrived(key, off, 0)
						for p := range in {
							gone := p.key == key && p.req.Offset <= off
							check(p, gone)
							if gone {
								delete(in, p)
							}
						}
					case 6:
						conn := uint64(r.IntN(5))
						l.forget(conn)
						for p := range in {
							check(p, false)
							if p.req.Conn == conn {
								delete(in, p)
							}
						}
					case 7:
						for p := range in {
							l.wake(p)
							l.wake(p)
							check(p, true)
							delete(in, p)
							break
						}
					default:
						<-time.After(time.Duration(r.IntN(500)) * time.Millisecond)
						for p := range in {
							gone := !p.deadline.After(time.Now())
							check(p, gone)
							if gone {
								delete(in, p)
							}
						}
					}
					if got := int(l.count.Load()); got != len(in) {
						t.Fatalf("%d pulls in the lot, want %d", got, len(in))
					}
				}
				l.close()
				for p := range in {
					check(p, true)
				}
				if len(l.mu.queues)+len(l.mu.conns)+len(l.mu.due) != 0 {
					t.Fatal("the closed lot is not empty")
				}
			})
		})
	}
}
