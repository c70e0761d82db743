package route

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// MasterID is the broker id of a master.
const MasterID = 0

// Config says how long silence is borne.
type Config struct {
	// Expiry is how long a broker stays that does not say itself for how long.
	// More than 0.
	Expiry time.Duration
	// WarmUp is how long after the start an absent topic is no news while no broker
	// has registered. 0 or more.
	WarmUp time.Duration
	// MaxMembers bounds the broker processes. More than 0.
	MaxMembers int
	// MaxQueues bounds what is known of topics: one for each topic of each broker
	// group. More than 0.
	MaxQueues int
}

// DefaultConfig is RocketMQ's, but that the warm-up is on and that there are
// bounds.
func DefaultConfig() Config {
	return Config{Expiry: 120 * time.Second, WarmUp: 45 * time.Second, MaxMembers: 10_000, MaxQueues: 2_000_000}
}

// Validate names everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if c.Expiry <= 0 {
		errs = append(errs, fmt.Errorf("broker expiry is %v, it must be more than 0", c.Expiry))
	}
	if c.WarmUp < 0 {
		errs = append(errs, fmt.Errorf("warm-up is %v, it must not be below 0", c.WarmUp))
	}
	if c.MaxMembers <= 0 {
		errs = append(errs, fmt.Errorf("the limit of brokers is %d, it must be more than 0", c.MaxMembers))
	}
	if c.MaxQueues <= 0 {
		errs = append(errs, fmt.Errorf("the limit of topics is %d, it must be more than 0", c.MaxQueues))
	}
	return errors.Join(errs...)
}

// Queues is what a broker group has of a topic (QueueData).
type Queues struct {
	Broker  string
	Perm    mq.Perm
	Read    int32
	Write   int32
	SysFlag int32
	Mapping []byte // JSON of a static topic's queue mapping (TopicQueueMappingInfo), handed on as it came
}

// Broker is a broker group (BrokerData).
type Broker struct {
	Name         string
	Cluster      string
	Addrs        map[int64]string // by broker id
	ActingMaster bool             // a slave may stand in for its master
	Zone         string
}

// Route is where a topic is (TopicRouteData).
type Route struct {
	Queues        []Queues
	Brokers       []Broker
	FilterServers map[string][]string // by broker address
}

// InZone is the part of a route that clients of a zone use: broker groups of
// that zone, and those that have no master.
func (r Route) InZone(zone string) Route {
	out := Route{FilterServers: r.FilterServers}
	kept := map[string]bool{}
	for _, b := range r.Brokers {
		if _, master := b.Addrs[MasterID]; !master || strings.EqualFold(b.Zone, zone) {
			out.Brokers = append(out.Brokers, b)
			kept[b.Name] = true
		}
	}
	for _, q := range r.Queues {
		if kept[q.Broker] {
			out.Queues = append(out.Queues, q)
		}
	}
	return out
}

// WithActingMasters is a route as clients see it that know masters only: of a
// group whose master is gone and whose slaves may stand in for it, the slave
// with the lowest id is shown as the master. It takes no messages: its queues
// lack the permission. Topics by which brokers tell each other of their group
// are shown as they are.
func (r Route) WithActingMasters(topic string) Route {
	if strings.HasPrefix(topic, mq.TopicSyncMemberPrefix) {
		return r
	}
	for _, b := range r.Brokers {
		if _, master := b.Addrs[MasterID]; master || len(b.Addrs) == 0 || !b.ActingMaster {
			continue
		}
		for _, q := range r.Queues {
			if q.Broker == b.Name && q.Perm&mq.PermWrite == 0 {
				id := b.lowestID()
				b.Addrs[MasterID] = b.Addrs[id]
				delete(b.Addrs, id)
				break
			}
		}
	}
	return r
}

// Member names one broker process.
type Member struct {
	Cluster string
	Name    string
	ID      int64
	Addr    string
	Link    any // the connection it registered on
}

// place is what tells members apart.
type place struct{ cluster, addr string }

// live is a member that is here.
type live struct {
	Member
	seen    time.Time
	timeout time.Duration
	version mq.DataVersion
	haAddr  string
	filters []string
}

// Table is the state of a name server. Its methods are safe for concurrent use.
type Table struct {
	cfg     Config
	started time.Time

	mu struct {
		sync.RWMutex
		topics   map[string]map[string]Queues // topic, broker name
		brokers  map[string]*Broker
		clusters map[string]map[string]bool // cluster, broker name
		lives    map[place]*live
		queues   int  // entries of topics, all together
		ready    bool // a broker has registered
		warmUp   time.Duration
		changes  []MinChange // not yet taken
	}
}

// New makes an empty table of a name server that starts now.
func New(cfg Config, now time.Time) (*Table, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t := &Table{cfg: cfg, started: now}
	t.mu.topics = map[string]map[string]Queues{}
	t.mu.brokers = map[string]*Broker{}
	t.mu.clusters = map[string]map[string]bool{}
	t.mu.lives = map[place]*live{}
	t.mu.warmUp = cfg.WarmUp
	return t, nil
}

// Ready reports whether a topic that is not in the table does not exist, as far
// as this name server can know.
func (t *Table) Ready(now time.Time) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.ready || now.Sub(t.started) >= t.mu.warmUp
}

// SetWarmUp changes for how long after the start an absent topic is no news.
func (t *Table) SetWarmUp(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.warmUp = d
}

// Route tells where a topic is; found is false when no broker that is here has
// it.
func (t *Table) Route(topic string) (r Route, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	byBroker := t.mu.topics[topic]
	if len(byBroker) == 0 {
		return Route{}, false
	}
	r = Route{Queues: make([]Queues, 0, len(byBroker)), FilterServers: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(byBroker)) {
		r.Queues = append(r.Queues, byBroker[name])
		b := t.mu.brokers[name]
		if b == nil {
			continue
		}
		r.Brokers = append(r.Brokers, b.copy())
		for _, addr := range b.Addrs {
			if l := t.mu.lives[place{b.Cluster, addr}]; l != nil && len(l.filters) > 0 {
				r.FilterServers[addr] = l.filters
			}
		}
	}
	return r, len(r.Brokers) > 0
}

func (b *Broker) copy() Broker {
	c := *b
	c.Addrs = maps.Clone(b.Addrs)
	return c
}

// RetryRoute is the route that a group's retry topic will have when its first
// consumer has said hello: every broker that makes topics by itself. A consumer
// asks for this route before its first heartbeat and then not again for half a
// minute; without it a message that fails meanwhile waits that long for its
// first retry. found is false when topic is no retry topic or no broker makes
// topics.
func (t *Table) RetryRoute(topic string) (r Route, found bool) {
	group, isRetry := strings.CutPrefix(topic, mq.RetryPrefix)
	if !isRetry || mq.ValidGroup(group) != nil {
		return Route{}, false
	}
	r, found = t.Route(mq.TopicAutoCreate)
	for i, q := range r.Queues {
		r.Queues[i] = Queues{Broker: q.Broker, Read: 1, Write: 1, Perm: mq.PermRead | mq.PermWrite}
	}
	return r, found
}

// Brokers lists all broker groups by name.
func (t *Table) Brokers() []Broker {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]Broker, 0, len(t.mu.brokers))
	for _, name := range slices.Sorted(maps.Keys(t.mu.brokers)) {
		all = append(all, t.mu.brokers[name].copy())
	}
	return all
}

// Broker returns one broker group.
func (t *Table) Broker(name string) (Broker, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	b := t.mu.brokers[name]
	if b == nil {
		return Broker{}, false
	}
	return b.copy(), true
}

// Clusters lists the names of the broker groups of each cluster.
func (t *Table) Clusters() map[string][]string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[string][]string, len(t.mu.clusters))
	for cluster, names := range t.mu.clusters {
		all[cluster] = slices.Sorted(maps.Keys(names))
	}
	return all
}

// Topics lists the topics of which some broker has queues that keep says yes
// to; nil keeps all.
func (t *Table) Topics(keep func(Queues) bool) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var names []string
	for topic, byBroker := range t.mu.topics {
		for _, q := range byBroker {
			if keep == nil || keep(q) {
				names = append(names, topic)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// TopicsOf lists the topics of a cluster; found is false when there is no such
// cluster.
func (t *Table) TopicsOf(cluster string) (topics []string, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := t.mu.clusters[cluster]
	if names == nil {
		return nil, false
	}
	for topic, byBroker := range t.mu.topics {
		for name := range byBroker {
			if names[name] {
				topics = append(topics, topic)
				break
			}
		}
	}
	slices.Sort(topics)
	return topics, true
}

// DataVersion is the version of what a broker registered last.
func (t *Table) DataVersion(cluster, addr string) (v mq.DataVersion, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	l := t.mu.lives[place{cluster, addr}]
	if l == nil {
		return v, false
	}
	return l.version, true
}

// Members lists who is here, by cluster and address.
func (t *Table) Members() []Member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]Member, 0, len(t.mu.lives))
	for _, l := range t.mu.lives {
		all = append(all, l.Member)
	}
	slices.SortFunc(all, func(a, b Member) int {
		if c := strings.Compare(a.Cluster, b.Cluster); c != 0 {
			return c
		}
		return strings.Compare(a.Addr, b.Addr)
	})
	return all
}

// SetWritable gives or takes the write permission of all queues of a broker
// group and returns of how many topics it has queues. It stands until the group
// registers another version of its topics.
func (t *Table) SetWritable(broker string, writable bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, byBroker := range t.mu.topics {
		q, ok := byBroker[broker]
		if !ok {
			continue
		}
		n++
		if writable {
			q.Perm = mq.PermRead | mq.PermWrite
		} else {
			q.Perm &^= mq.PermWrite
		}
		byBroker[broker] = q
	}
	return n
}

// DeleteTopic forgets a topic, in one cluster or, with an empty name, in all.
func (t *Table) DeleteTopic(topic, cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cluster == "" {
		t.mu.queues -= len(t.mu.topics[topic])
		delete(t.mu.topics, topic)
		return
	}
	for name := range t.mu.clusters[cluster] {
		t.dropQueuesLocked(topic, name)
	}
}

// AddTopic notes that brokers have a topic, of those that are here, and returns
// how many those are.
func (t *Table) AddTopic(topic string, queues []Queues) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.roomLocked(len(queues)); err != nil {
		return 0, err
	}
	n := 0
	for _, q := range queues {
		if t.mu.brokers[q.Broker] != nil {
			t.putQueuesLocked(topic, q)
			n++
		}
	}
	return n, nil
}

// roomLocked says that there is no room for so many more topics of brokers.
func (t *Table) roomLocked(more int) error {
	if t.mu.queues+more <= t.cfg.MaxQueues {
		return nil
	}
	return fmt.Errorf("%w: the name server knows %d topics of brokers, with %d more they are over the limit of %d", mq.ErrSystem, t.mu.queues, more, t.cfg.MaxQueues)
}

func (t *Table) putQueuesLocked(topic string, q Queues) {
	byBroker := t.mu.topics[topic]
	if byBroker == nil {
		byBroker = map[string]Queues{}
		t.mu.topics[topic] = byBroker
	}
	if _, has := byBroker[q.Broker]; !has {
		t.mu.queues++
	}
	byBroker[q.Broker] = q
}

func (t *Table) dropQueuesLocked(topic, broker string) {
	byBroker := t.mu.topics[topic]
	if _, has := byBroker[broker]; has {
		t.mu.queues--
	}
	delete(byBroker, broker)
	if len(byBroker) == 0 {
		delete(t.mu.topics, topic)
	}
}
