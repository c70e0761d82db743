package route

import (
	"fmt"
	"slices"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Registration is what a broker says of itself.
type Registration struct {
	Member
	HAAddr  string
	Timeout time.Duration // how long it may be silent; 0: the table's rule
	// ActingMaster is whether a slave may stand in for a master; Old brokers do not
	// know that question.
	ActingMaster bool
	Old          bool

	Version mq.DataVersion
	Topics  map[string]*mq.TopicConfig
	// Mappings are the queue mappings of the static topics among them, as JSON. With
	// any the set is never taken for whole: their queues are not the broker's alone.
	Mappings      map[string][]byte
	Zone          string
	FilterServers []string
}

// Outcome is what a broker learns from its registration, and the name server of
// it.
type Outcome struct {
	MasterAddr   string // for a slave: where its master is
	MasterHAAddr string
	Replaced     string // the address this broker had until now, if it was another
	Moved        string // the cluster its group was in until now, if it was another
	Was          Member // the broker that was at this address until now, if it was called otherwise
	First        bool   // it was not here before
	Ignored      bool   // a later incarnation of this broker has registered from elsewhere
}

// markers are topics that every broker has and that nobody can change: a
// registration with all of them is not an excerpt.
var markers = []string{mq.TopicSelfTest, mq.TopicBenchmark, mq.TopicOffsetMoved, mq.TopicSchedule}

func (r *Registration) whole() bool {
	if len(r.Mappings) > 0 || r.Topics[r.Name] == nil {
		return false
	}
	for _, m := range markers {
		if r.Topics[m] == nil {
			return false
		}
	}
	return true
}

// Register notes a broker with its topics. A registration that may not be taken
// is an [mq.ErrSystem].
func (t *Table) Register(r *Registration, now time.Time) (Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out Outcome
	if r.Cluster == "" || r.Name == "" || r.Addr == "" {
		return out, fmt.Errorf("%w: register broker failed: cluster %q, name %q and address %q must not be empty", mq.ErrSystem, r.Cluster, r.Name, r.Addr)
	}

	b := t.mu.brokers[r.Name]
	if b != nil && b.Cluster == r.Cluster {
		old := b.Addrs[r.ID]
		if l := t.mu.lives[place{r.Cluster, old}]; old != r.Addr && l != nil && l.version.StateVersion > r.Version.StateVersion {
			delete(t.mu.lives, place{r.Cluster, r.Addr})
			out.Ignored = true
			return out, nil
		}
	}
	if len(r.Topics) == 1 && (b == nil || b.Cluster != r.Cluster || b.Addrs[r.ID] == "") {
		return out, fmt.Errorf("%w: register broker failed: %s[%d] is not known here and says one topic only: it must register all of them first", mq.ErrSystem, r.Name, r.ID)
	}
	if err := t.boundLocked(r); err != nil {
		return out, err
	}
	out.Was = t.evictLocked(r)
	b = t.mu.brokers[r.Name] // may have been the one to go
	if b != nil && b.Cluster != r.Cluster {
		// A group is in one cluster: the one that was said last.
		out.Moved = b.Cluster
		for _, addr := range b.Addrs {
			delete(t.mu.lives, place{b.Cluster, addr})
		}
		t.dropGroupLocked(b)
		b = nil
	}
	if b == nil {
		b = &Broker{Name: r.Name, Cluster: r.Cluster, Addrs: map[int64]string{}}
		t.mu.brokers[r.Name] = b
		out.First = true
	}
	b.ActingMaster = r.ActingMaster && !r.Old
	b.Zone = r.Zone
	before := none
	if len(b.Addrs) > 0 {
		before = b.lowestID()
	}
	out.First, out.Replaced = t.settleLocked(b, r, out.First)
	t.topicsLocked(b, r, out.First)

	timeout := r.Timeout
	if timeout <= 0 {
		timeout = t.cfg.Expiry
	}
	t.mu.lives[place{r.Cluster, r.Addr}] = &live{
		Member: r.Member, seen: now, timeout: timeout, version: r.Version, haAddr: r.HAAddr, filters: r.FilterServers,
	}
	if master := b.Addrs[MasterID]; r.ID != MasterID && master != "" {
		if l := t.mu.lives[place{r.Cluster, master}]; l != nil {
			out.MasterAddr, out.MasterHAAddr = master, l.haAddr
		}
	}
	if before != none && r.ID < before {
		t.minChangedLocked(b, "", r.HAAddr)
	}
	t.mu.ready = true
	return out, nil
}

// boundLocked refuses a registration for which there is no room.
func (t *Table) boundLocked(r *Registration) error {
	known := t.mu.lives[place{r.Cluster, r.Addr}] != nil
	if b := t.mu.brokers[r.Name]; b != nil && b.Addrs[r.ID] != "" {
		known = true // from another address
	}
	if !known && len(t.mu.lives) >= t.cfg.MaxMembers {
		return fmt.Errorf("%w: register broker failed: the name server knows %d brokers, which is its limit", mq.ErrSystem, len(t.mu.lives))
	}
	more := 0
	for name := range r.Topics {
		if _, has := t.mu.topics[name][r.Name]; !has {
			more++
		}
	}
	if more == 0 {
		return nil
	}
	return t.roomLocked(more)
}

// evictLocked removes whoever else is at the newcomer's address: a process has
// one name and is in one cluster, the ones it said last.
func (t *Table) evictLocked(r *Registration) (was Member) {
	for _, l := range t.mu.lives {
		if l.Addr == r.Addr && (l.Name != r.Name || l.Cluster != r.Cluster) {
			if l.Name != r.Name {
				was = l.Member
			}
			if l.Name != r.Name || t.mu.brokers[r.Name] == nil || t.mu.brokers[r.Name].Cluster != l.Cluster {
				t.removeLocked(l.Member)
			}
		}
	}
	return was
}

// settleLocked gives the member its address: one address has one id, one id one
// address. It returns whether the member is new, and the address it had before.
func (t *Table) settleLocked(b *Broker, r *Registration, first bool) (isNew bool, replaced string) {
	for id, addr := range b.Addrs {
		if addr == r.Addr && id != r.ID {
			delete(b.Addrs, id)
		}
	}
	if old := b.Addrs[r.ID]; old == "" {
		first = true
	} else if old != r.Addr {
		delete(t.mu.lives, place{b.Cluster, old})
		replaced = old
	}
	b.Addrs[r.ID] = r.Addr
	if t.mu.clusters[r.Cluster] == nil {
		t.mu.clusters[r.Cluster] = map[string]bool{}
	}
	t.mu.clusters[r.Cluster][r.Name] = true
	return first, replaced
}

// topicsLocked takes over the topics of a member that speaks for its group: the
// master, or the slave with the lowest id of those that know of acting masters.
func (t *Table) topicsLocked(b *Broker, r *Registration, first bool) {
	prime := !r.Old && r.ID != MasterID && r.ID == b.lowestID()
	if r.ID != MasterID && !prime {
		return
	}
	if r.whole() {
		for topic, byBroker := range t.mu.topics {
			if _, has := byBroker[r.Name]; has && r.Topics[topic] == nil {
				t.dropQueuesLocked(topic, r.Name)
			}
		}
	}
	l := t.mu.lives[place{r.Cluster, r.Addr}]
	changed := first || l == nil || l.ID != r.ID || l.version != r.Version
	for name, cfg := range r.Topics {
		if _, has := t.mu.topics[name][r.Name]; has && !changed {
			continue
		}
		q := Queues{Broker: r.Name, Perm: cfg.Perm, Read: cfg.ReadQueues, Write: cfg.WriteQueues, SysFlag: cfg.SysFlag, Mapping: r.Mappings[name]}
		if prime && b.ActingMaster {
			q.Perm &^= mq.PermWrite
		}
		t.putQueuesLocked(name, q)
	}
}

func (b *Broker) lowestID() int64 {
	first, lowest := true, int64(0)
	for id := range b.Addrs {
		if first || id < lowest {
			first, lowest = false, id
		}
	}
	return lowest
}

// Heartbeat notes that a broker is still here; false means that it is not known
// and must register.
func (t *Table) Heartbeat(cluster, addr string, timeout time.Duration, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.mu.lives[place{cluster, addr}]
	if l == nil {
		return false
	}
	l.seen = now
	if timeout > 0 {
		l.timeout = timeout
	}
	return true
}

// Unregister removes a broker that says goodbye, and reports whether it was
// here: not if by now one of another name is at its address.
func (t *Table) Unregister(m Member) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.mu.lives[place{m.Cluster, m.Addr}]; l != nil && l.Name != m.Name {
		return false
	}
	return t.removeLocked(m)
}

// LinkClosed removes the brokers that registered last on a connection that is
// gone, and returns them.
func (t *Table) LinkClosed(link any) []Member {
	return t.removeIf(func(l *live) bool { return l.Link == link })
}

// Expire removes the brokers that were silent for too long, and returns them.
func (t *Table) Expire(now time.Time) []Member {
	return t.removeIf(func(l *live) bool { return now.Sub(l.seen) > l.timeout })
}

func (t *Table) removeIf(gone func(*live) bool) []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	var removed []Member
	for _, l := range t.mu.lives {
		if gone(l) {
			removed = append(removed, l.Member)
		}
	}
	for _, m := range removed {
		t.removeLocked(m)
	}
	return removed
}

func (t *Table) removeLocked(m Member) bool {
	_, found := t.mu.lives[place{m.Cluster, m.Addr}]
	delete(t.mu.lives, place{m.Cluster, m.Addr})
	b := t.mu.brokers[m.Name]
	if b == nil || b.Cluster != m.Cluster {
		return found
	}
	lowest := len(b.Addrs) > 0 && b.Addrs[b.lowestID()] == m.Addr
	for id, addr := range b.Addrs {
		if addr == m.Addr {
			delete(b.Addrs, id)
			found = true
		}
	}
	if lowest && len(b.Addrs) > 0 {
		t.minChangedLocked(b, m.Addr, "")
	}
	switch {
	case len(b.Addrs) == 0:
		t.dropGroupLocked(b)
	case b.ActingMaster && b.Addrs[MasterID] == "":
		// A slave speaks for the group now, and takes no messages.
		for _, byBroker := range t.mu.topics {
			if q, ok := byBroker[b.Name]; ok {
				q.Perm &^= mq.PermWrite
				byBroker[b.Name] = q
			}
		}
	}
	return found
}

// none is no broker's id.
const none int64 = -1

// MinChange says that another member of a broker group has its lowest id now,
// and who is to hear of it (NOTIFY_MIN_BROKER_ID_CHANGE).
type MinChange struct {
	Broker  string
	MinID   int64
	MinAddr string
	HAAddr  string   // where the newcomer serves slaves; empty when somebody left
	Offline string   // who left; empty when somebody came
	Notify  []string // addresses of the members
}

// maxChanges bounds the changes that nobody took.
const maxChanges = 1000

func (t *Table) minChangedLocked(b *Broker, offline, haAddr string) {
	if len(t.mu.changes) >= maxChanges {
		return
	}
	id := b.lowestID()
	c := MinChange{Broker: b.Name, MinID: id, MinAddr: b.Addrs[id], HAAddr: haAddr, Offline: offline}
	for other, addr := range b.Addrs {
		if offline != "" || len(b.Addrs) == 1 || other != id {
			c.Notify = append(c.Notify, addr)
		}
	}
	slices.Sort(c.Notify)
	t.mu.changes = append(t.mu.changes, c)
}

// TakeMinChanges returns the changes since it was called last.
func (t *Table) TakeMinChanges() []MinChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.mu.changes
	t.mu.changes = nil
	return c
}

// dropGroupLocked removes a broker group with its queues.
func (t *Table) dropGroupLocked(b *Broker) {
	delete(t.mu.brokers, b.Name)
	for topic, byBroker := range t.mu.topics {
		if _, has := byBroker[b.Name]; has {
			t.dropQueuesLocked(topic, b.Name)
		}
	}
	names := t.mu.clusters[b.Cluster]
	delete(names, b.Name)
	if len(names) == 0 {
		delete(t.mu.clusters, b.Cluster)
	}
}
