package clients

import (
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Queue names a queue exactly as a client spells it.
type Queue struct {
	Topic  string
	Broker string
	ID     mq.QueueID
}

// lease is the order lock of one queue.
type lease struct {
	client string
	until  time.Time
}

// MaxLeases bounds the order locks of all groups, which clients take for queues of
// any name. Beyond it none is given until others end.
const MaxLeases = 1 << 20

// Lock gives client the order locks of queues, unless others hold them or there are
// [MaxLeases], and returns those it now has. Locking again makes the lease longer.
func (r *Register) Lock(group, client string, queues []Queue, now time.Time) []Queue {
	r.locks.Lock()
	defer r.locks.Unlock()
	held := r.locks.held[group]
	if held == nil {
		held = map[Queue]lease{}
		r.locks.held[strings.Clone(group)] = held
	}
	client = strings.Clone(client)
	got := make([]Queue, 0, len(queues))
	for _, q := range queues {
		l, ok := held[q]
		if ok && l.client != client && now.Before(l.until) || !ok && r.locks.all >= MaxLeases {
			continue
		}
		if !ok {
			r.locks.all++
		}
		held[q] = lease{client, now.Add(r.cfg.Lease)}
		got = append(got, q)
	}
	if len(held) == 0 {
		delete(r.locks.held, group)
	}
	return got
}

// Unlock gives back the order locks of queues that client has.
func (r *Register) Unlock(group, client string, queues []Queue) {
	r.locks.Lock()
	defer r.locks.Unlock()
	held := r.locks.held[group]
	for _, q := range queues {
		if l, ok := held[q]; ok && l.client == client {
			delete(held, q)
			r.locks.all--
		}
	}
	if len(held) == 0 {
		delete(r.locks.held, group)
	}
}

// Locked reports whether anybody in group holds an order lock.
func (r *Register) Locked(group string, now time.Time) bool {
	r.locks.Lock()
	defer r.locks.Unlock()
	for _, l := range r.locks.held[group] {
		if now.Before(l.until) {
			return true
		}
	}
	return false
}

// release gives back everything that client holds in group.
func (r *Register) release(group, client string) {
	r.dropLeases(group, func(l lease) bool { return l.client == client })
}

// expireLocks forgets leases that ran out.
func (r *Register) expireLocks(now time.Time) {
	r.locks.Lock()
	groups := make([]string, 0, len(r.locks.held))
	for g := range r.locks.held {
		groups = append(groups, g)
	}
	r.locks.Unlock()
	for _, g := range groups {
		r.dropLeases(g, func(l lease) bool { return !now.Before(l.until) })
	}
}

func (r *Register) dropLeases(group string, drop func(lease) bool) {
	r.locks.Lock()
	defer r.locks.Unlock()
	held := r.locks.held[group]
	for q, l := range held {
		if drop(l) {
			delete(held, q)
			r.locks.all--
		}
	}
	if len(held) == 0 {
		delete(r.locks.held, group)
	}
}
