package clients

import (
	"maps"
	"slices"
	"strings"
)

// View returns a consumer group as it is now, nil when nobody of it is here. It
// takes no lock.
func (r *Register) View(group string) *View {
	v, ok := r.views.Load(group)
	if !ok {
		return nil
	}
	return v.(*View)
}

// IDs lists the client ids of a consumer group, each once, sorted.
func (r *Register) IDs(group string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.consumers[group]
	if g == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.ids))
}

// Members lists the clients of a consumer group in the order they came.
func (r *Register) Members(group string) []Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.consumers[group]
	if g == nil {
		return nil
	}
	return g.clients()
}

func (g *group) clients() []Client {
	members := slices.SortedFunc(maps.Values(g.members), func(a, b *member) int {
		return int(int64(a.serial) - int64(b.serial))
	})
	out := make([]Client, len(members))
	for i, m := range members {
		out[i] = m.Client
	}
	return out
}

// Consumer finds a member of a consumer group by its client id; of several the
// last that came.
func (r *Register) Consumer(group, id string) (Client, bool) {
	members := r.Members(group)
	for _, c := range slices.Backward(members) {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// Duplicated lists the client ids that more than one live connection of a
// consumer group has.
func (r *Register) Duplicated(group string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.mu.consumers[group]
	if g == nil {
		return nil
	}
	found := map[string]bool{}
	for _, m := range g.members {
		if m.duplicated && g.ids[m.ID] > 1 {
			found[m.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Groups lists the consumer groups that somebody is here of.
func (r *Register) Groups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.mu.consumers))
}

// Subscribers lists the consumer groups that subscribe to topic now.
func (r *Register) Subscribers(topic string) []string {
	var groups []string
	r.views.Range(func(name, v any) bool {
		if v.(*View).Subscription(topic) != nil {
			groups = append(groups, name.(string))
		}
		return true
	})
	slices.Sort(groups)
	return groups
}

// Producers lists the clients of a producer group.
func (r *Register) Producers(group string) []Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return clientsOf(r.mu.producers[group])
}

// ProducerID is the client id of a connection in a producer group, empty when it
// is not in it.
func (r *Register) ProducerID(group string, conn any) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.mu.producers[group][conn]; m != nil {
		return m.ID
	}
	return ""
}

// AllProducers lists all producer groups with their clients.
func (r *Register) AllProducers() map[string][]Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string][]Client, len(r.mu.producers))
	for name, members := range r.mu.producers {
		all[name] = clientsOf(members)
	}
	return all
}

// Requesters finds the connections of the producer with this client id, the last
// that came first: of a client that came back the older ones may be dead.
func (r *Register) Requesters(id string) []Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	conns := r.mu.ids[id]
	out := make([]Client, 0, len(conns))
	for _, conn := range slices.Backward(conns) {
		for name := range r.mu.conns[conn].produces {
			out = append(out, r.mu.producers[name][conn].Client)
			break
		}
	}
	return out
}

func clientsOf(members map[any]*member) []Client {
	out := make([]Client, 0, len(members))
	for _, m := range members {
		out = append(out, m.Client)
	}
	slices.SortFunc(out, func(a, b Client) int {
		if c := strings.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		return a.Addr.Compare(b.Addr)
	})
	return out
}

// Count says how many connections, consumer groups and producer groups are
// here.
func (r *Register) Count() (conns, consumers, producers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.conns), len(r.mu.consumers), len(r.mu.producers)
}
