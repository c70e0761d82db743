package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Register knows who is connected. Its methods are safe for concurrent use.
type Register struct {
	cfg   Config
	views sync.Map // consumer group to *View; stored to under mu only

	mu struct {
		sync.Mutex
		consumers map[string]*group
		producers map[string]map[any]*member // group, connection
		conns     map[any]*presence
		ids       map[string][]any // client id of producers to their connections, in the order they came
		joined    uint64           // members so far, for their order
	}
	locks struct {
		sync.Mutex
		held map[string]map[Queue]lease // consumer group
		all  int                        // leases, of all groups
	}
}

// group is a consumer group with its members by connection.
type group struct {
	view    *View
	members map[any]*member
	ids     map[string]int // how many members have this client id
}

// member is a connection in one group.
type member struct {
	Client
	serial     uint64 // order of arrival
	duplicated bool   // told as the later one of a pair that shares an id
}

// presence is what a connection is part of.
type presence struct {
	consumes    map[string]bool
	produces    map[string]bool
	producer    string // its client id among the producers, while it produces
	fingerprint int32
}

// New makes an empty register.
func New(cfg Config) (*Register, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Register{cfg: cfg}
	r.mu.consumers = map[string]*group{}
	r.mu.producers = map[string]map[any]*member{}
	r.mu.conns = map[any]*presence{}
	r.mu.ids = map[string][]any{}
	r.locks.held = map[string]map[Queue]lease{}
	return r, nil
}

// Admit takes from hb the groups that are new to its connection and more than
// Config.MaxGroups; the error says so, for the client and the operator.
func (r *Register) Admit(hb *Heartbeat) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.admitLocked(hb)
}

func (r *Register) admitLocked(hb *Heartbeat) error {
	p := r.mu.conns[hb.Client.Conn]
	if p == nil {
		p = &presence{}
	}
	has := len(p.produces) + len(p.consumes)
	room, refused := r.cfg.MaxGroups-has, 0
	refuse := func(known bool) bool {
		switch {
		case known:
			return false
		case room > 0:
			room--
			return false
		}
		refused++
		return true
	}
	named := len(hb.Producers) + len(hb.Consumers)
	hb.Producers = slices.DeleteFunc(hb.Producers, func(name string) bool { return refuse(p.produces[name]) })
	hb.Consumers = slices.DeleteFunc(hb.Consumers, func(c Consumer) bool { return refuse(p.consumes[c.Group]) })
	if refused == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of the %d groups named are left out: the connection is in %d already, the limit is %d (maxGroupsPerConnection)", mq.ErrInvalid, refused, named, has, r.cfg.MaxGroups)
}

// Heartbeat notes that a client is here now, and as what, within what
// [Register.Admit] leaves of it. It reports whether the client must send its
// subscriptions again with the next one: it left them out and they are not
// known, or it knows nothing of leaving them out.
func (r *Register) Heartbeat(hb *Heartbeat, now time.Time) (resend bool) {
	var after calls
	defer after.run()
	r.mu.Lock()
	defer r.mu.Unlock()

	_ = r.admitLocked(hb) // it was told so
	p := r.presenceLocked(hb.Client.Conn)
	switch {
	case hb.Fingerprint == 0:
		resend = true
	case hb.Unchanged:
		resend = p.fingerprint != hb.Fingerprint
	default:
		p.fingerprint = hb.Fingerprint
	}
	client := hb.Client
	client.LastSeen = now
	for _, name := range hb.Producers {
		r.produceLocked(p, name, client, &after)
	}
	for i := range hb.Consumers {
		r.consumeLocked(p, &hb.Consumers[i], client, hb.Unchanged, &after)
	}
	if len(p.consumes)+len(p.produces) == 0 {
		delete(r.mu.conns, client.Conn)
	}
	return resend
}

func (r *Register) presenceLocked(conn any) *presence {
	p := r.mu.conns[conn]
	if p == nil {
		p = &presence{consumes: map[string]bool{}, produces: map[string]bool{}}
		r.mu.conns[conn] = p
	}
	return p
}

func (r *Register) produceLocked(p *presence, name string, c Client, after *calls) {
	members := r.mu.producers[name]
	if members == nil {
		name = strings.Clone(name)
		members = map[any]*member{}
		r.mu.producers[name] = members
	}
	if m := members[c.Conn]; m != nil {
		m.LastSeen = c.LastSeen
		return
	}
	if len(p.produces) == 0 {
		p.producer = strings.Clone(c.ID)
		r.mu.ids[p.producer] = append(r.mu.ids[p.producer], c.Conn)
	}
	name = strings.Clone(name)
	members[c.Conn] = &member{Client: c}
	p.produces[name] = true
	if r.cfg.Joined != nil {
		after.add(func() { r.cfg.Joined(name) })
	}
}

// noProducerLocked takes a connection that produces no more out of the index.
func (r *Register) noProducerLocked(conn any, p *presence) {
	left := slices.DeleteFunc(r.mu.ids[p.producer], func(c any) bool { return c == conn })
	if r.mu.ids[p.producer] = left; len(left) == 0 {
		delete(r.mu.ids, p.producer)
	}
}

func (r *Register) consumeLocked(p *presence, c *Consumer, client Client, unchanged bool, after *calls) {
	g := r.mu.consumers[c.Group]
	if g == nil {
		g = &group{view: &View{}, members: map[any]*member{}, ids: map[string]int{}}
		r.mu.consumers[strings.Clone(c.Group)] = g
	}
	r.mu.joined++
	joined := g.join(client, r.mu.joined, c.Group, r.cfg.Duplicate, after)
	if joined {
		p.consumes[strings.Clone(c.Group)] = true
	}
	view, topics := g.view.follow(c, unchanged, client.LastSeen)
	if view != g.view {
		g.view = view
		r.views.Store(strings.Clone(c.Group), view)
	}
	if joined || topics {
		r.notifyLocked(c.Group, g, after)
	}
}

// join adds or refreshes a member and reports whether it is new.
func (g *group) join(c Client, serial uint64, name string, duplicate func(string, Client, Client), after *calls) bool {
	m := g.members[c.Conn]
	if m == nil {
		m = &member{Client: c, serial: serial}
		g.members[c.Conn] = m
		g.ids[c.ID]++
		return true
	}
	m.LastSeen = c.LastSeen
	if g.ids[m.ID] < 2 {
		return false
	}
	// Somebody else has this id, too. When it came later than this member, which
	// is still alive, it is not this client on a new connection.
	for _, other := range g.members {
		if other.ID == m.ID && other.serial > m.serial && !other.duplicated {
			other.duplicated = true
			if duplicate != nil {
				a, b := m.Client, other.Client
				after.add(func() { duplicate(name, a, b) })
			}
		}
	}
	return false
}

// follow returns the view after a heartbeat of one member and whether the set
// of topics is another. The last member to speak is right; a subscription gives
// way to one with a higher version.
func (v *View) follow(c *Consumer, unchanged bool, now time.Time) (next *View, topics bool) {
	next = &View{Type: c.Type, Model: c.Model, From: c.From, Subscriptions: v.Subscriptions}
	same := v.Type == c.Type && v.Model == c.Model && v.From == c.From && v.Subscriptions != nil
	if unchanged {
		if same {
			return v, false
		}
		if next.Subscriptions == nil {
			next.Subscriptions = map[string]*Subscription{}
		}
		return next, false
	}
	subs := make(map[string]*Subscription, len(c.Subscriptions))
	for i := range c.Subscriptions {
		s := &c.Subscriptions[i]
		old := v.Subscriptions[s.Topic]
		since := now
		switch {
		case old == nil:
			topics, same = true, false
		case s.Version > old.Version:
			same, since = false, old.Since
		default:
			subs[s.Topic] = old
			continue
		}
		subs[s.Topic] = s.clone()
		subs[s.Topic].Since = since
	}
	if len(subs) != len(v.Subscriptions) {
		topics, same = true, false
	}
	if same {
		return v, false
	}
	next.Subscriptions = subs
	return next, topics
}

// Unregister removes a client from a group of either kind; an empty name is
// none.
func (r *Register) Unregister(conn any, producerGroup, consumerGroup string) {
	var after calls
	defer after.run()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaveLocked(conn, producerGroup, consumerGroup, &after)
}

// Closed removes a connection from everything.
func (r *Register) Closed(conn any) {
	var after calls
	defer after.run()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.mu.conns[conn]
	if p == nil {
		return
	}
	for name := range p.produces {
		r.leaveLocked(conn, name, "", &after)
	}
	for name := range p.consumes {
		r.leaveLocked(conn, "", name, &after)
	}
}

func (r *Register) leaveLocked(conn any, producerGroup, consumerGroup string, after *calls) {
	p := r.mu.conns[conn]
	if p == nil {
		return
	}
	if p.produces[producerGroup] {
		delete(p.produces, producerGroup)
		members := r.mu.producers[producerGroup]
		delete(members, conn)
		if len(members) == 0 {
			delete(r.mu.producers, producerGroup)
		}
		if len(p.produces) == 0 {
			r.noProducerLocked(conn, p)
		}
	}
	if p.consumes[consumerGroup] {
		delete(p.consumes, consumerGroup)
		g := r.mu.consumers[consumerGroup]
		m := g.members[conn]
		delete(g.members, conn)
		if g.ids[m.ID]--; g.ids[m.ID] == 0 {
			delete(g.ids, m.ID)
			r.release(consumerGroup, m.ID)
		}
		if len(g.members) == 0 {
			delete(r.mu.consumers, consumerGroup)
			r.views.Delete(consumerGroup)
		} else {
			r.notifyLocked(consumerGroup, g, after)
		}
	}
	if len(p.consumes)+len(p.produces) == 0 {
		delete(r.mu.conns, conn)
	}
}

func (r *Register) notifyLocked(name string, g *group, after *calls) {
	if r.cfg.Notify == nil || g.view.Model == Broadcasting {
		return
	}
	name, members := strings.Clone(name), g.clients()
	after.add(func() {
		if r.cfg.Wanted == nil || r.cfg.Wanted(name) {
			r.cfg.Notify(name, members)
		}
	})
}

// Expire removes everybody who was silent for too long, and order locks that
// ran out.
func (r *Register) Expire(now time.Time) {
	var after calls
	defer after.run()
	r.expireLocks(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := now.Add(-r.cfg.Expiry)
	for conn, p := range r.mu.conns {
		var gone *Client
		for name := range p.produces {
			if m := r.mu.producers[name][conn]; m.LastSeen.Before(before) {
				gone = &m.Client
				r.leaveLocked(conn, name, "", &after)
			}
		}
		for name := range p.consumes {
			if m := r.mu.consumers[name].members[conn]; m.LastSeen.Before(before) {
				gone = &m.Client
				r.leaveLocked(conn, "", name, &after)
			}
		}
		if gone != nil && len(p.produces)+len(p.consumes) == 0 && r.cfg.Silent != nil {
			c := *gone
			after.add(func() { r.cfg.Silent(c) })
		}
	}
}

// Run looks for the silent until ctx is done.
func (r *Register) Run(ctx context.Context) error {
	tick := time.NewTicker(r.cfg.Scan)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.Expire(now)
		}
	}
}

// calls are callbacks to make once the lock is given back. The deferred run is
// the first defer of its function, so that it comes after the unlock.
type calls []func()

func (c *calls) add(fn func()) { *c = append(*c, fn) }

func (c *calls) run() {
	for _, fn := range *c {
		fn()
	}
}
