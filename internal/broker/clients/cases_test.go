package clients

import (
	"fmt"
	"testing"
	"time"
)

// C13: after two and a half minutes without a network all members are gone; with
// their first heartbeats they are back, each is told of as many changes as there
// were, and then there is quiet.
func TestC13BackAfterALostNetwork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const members = 4
	beat := func(round int, at time.Time) {
		for i := range members {
			h.beat(fmt.Sprint("conn ", round, i), fmt.Sprint("c", i), at, consumer("g", "t"))
		}
	}
	beat(1, start)
	h.news()
	h.Expire(after(150 * time.Second))
	if h.IDs("g") != nil {
		t.Errorf("still here: %v", h.IDs("g"))
	}
	h.news()
	beat(2, after(151*time.Second)) // on new connections
	expect(t, "told", h.news(), []string{"g:1", "g:2", "g:3", "g:4"})
	for i := range 20 {
		now := after(151*time.Second + time.Duration(i)*30*time.Second)
		beat(2, now)
		h.Expire(now)
		for k := range members { // what is left of the old connections ends late
			h.Closed(fmt.Sprint("conn 1", k))
		}
	}
	expect(t, "told in ten quiet minutes", h.news(), nil)
	expect(t, "members", h.IDs("g"), []string{"c0", "c1", "c2", "c3"})
}

// O01: the answer to a lock is right the first time, and the same when asked again.
func TestO01LockAnswersAreRightTheFirstTime(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	queues := []Queue{{Topic: "t", Broker: "b", ID: 0}, {Topic: "t", Broker: "b", ID: 1}, {Topic: "t", Broker: "b", ID: 2}}
	for i := range 5 {
		expect(t, fmt.Sprint("time ", i), h.Lock("g", "a", queues, after(time.Duration(i)*time.Millisecond)), queues)
		expect(t, fmt.Sprint("the other, time ", i), h.Lock("g", "b", queues, after(time.Duration(i)*time.Millisecond)), []Queue{})
	}
	h.Unlock("g", "a", queues)
	expect(t, "the other at once", h.Lock("g", "b", queues, after(10*time.Millisecond)), queues)
}

// O02: a consumer that suspends for longer than a lease keeps its queue as long
// as it renews, and gets it back after a pause if nobody else asked.
func TestO02ASuspendedConsumerKeepsItsQueue(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	q := []Queue{{Topic: "t", Broker: "b", ID: 0}}
	now := start
	h.Lock("g", "a", q, now)
	for range 30 { // ten minutes, renewed every 20 s as clients do
		now = now.Add(20 * time.Second)
		h.Expire(now)
		expect(t, "another", h.Lock("g", "b", q, now), []Queue{})
		expect(t, "the owner", h.Lock("g", "a", q, now), q)
	}
	now = now.Add(5 * time.Minute) // and not a word
	h.Expire(now)
	expect(t, "the owner after its lease", h.Lock("g", "a", q, now), q)
	expect(t, "another", h.Lock("g", "b", q, now), []Queue{})
}
