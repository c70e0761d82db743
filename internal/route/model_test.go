package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
)

// naive is the table as a list of who said what last: everything it answers is
// worked out from there, without an index. It knows masters and slaves that do
// not speak for their group, whole registrations and excerpts, but no acting
// masters.
type naive struct {
	members map[string]*naiveMember      // by "name/id"
	queues  map[string]map[string]Queues // topic, broker
}

type naiveMember struct {
	name, addr, link string
	id               int64
	seen             time.Time
	version          mq.DataVersion
}

func (n *naive) here(name string) bool {
	for _, m := range n.members {
		if m.name == name {
			return true
		}
	}
	return false
}

func (n *naive) leave(match func(*naiveMember) bool) {
	for key, m := range n.members {
		if match(m) {
			delete(n.members, key)
		}
	}
	for topic, byBroker := range n.queues {
		for name := range byBroker {
			if !n.here(name) {
				delete(byBroker, name)
			}
		}
		if len(byBroker) == 0 {
			delete(n.queues, topic)
		}
	}
}

// register returns whether the registration is taken.
func (n *naive) register(r *Registration, now time.Time) bool {
	key := fmt.Sprintf("%s/%d", r.Name, r.ID)
	had := n.members[key]
	if len(r.Topics) == 1 && had == nil {
		return false
	}
	known := had != nil && had.addr == r.Addr && had.version == r.Version
	n.leave(func(m *naiveMember) bool { return m.addr == r.Addr && m.name != r.Name })
	for other, m := range n.members {
		if other != key && m.addr == r.Addr {
			delete(n.members, other) // one address, one id
		}
	}
	n.members[key] = &naiveMember{r.Name, r.Addr, r.Link.(string), r.ID, now, r.Version}
	if r.ID != MasterID {
		return true
	}
	isWhole := r.Topics[r.Name] != nil && r.Topics[mq.TopicSelfTest] != nil
	for topic, byBroker := range n.queues {
		if isWhole && r.Topics[topic] == nil {
			delete(byBroker, r.Name)
			if len(byBroker) == 0 {
				delete(n.queues, topic)
			}
		}
	}
	for topic, cfg := range r.Topics {
		if n.queues[topic] == nil {
			n.queues[topic] = map[string]Queues{}
		}
		if _, has := n.queues[topic][r.Name]; has && known {
			continue
		}
		n.queues[topic][r.Name] = Queues{Broker: r.Name, Perm: cfg.Perm, Read: cfg.ReadQueues, Write: cfg.WriteQueues}
	}
	return true
}

func (n *naive) where(topic string) string {
	names := slices.Sorted(maps.Keys(n.queues[topic]))
	if len(names) == 0 {
		return "nowhere"
	}
	var text strings.Builder
	for _, name := range names {
		q := n.queues[topic][name]
		fmt.Fprintf(&text, "%s:%d/%d ", name, q.Perm, q.Write)
	}
	text.WriteString("@")
	for _, name := range names {
		for id := range int64(2) {
			if m := n.members[fmt.Sprintf("%s/%d", name, id)]; m != nil {
				fmt.Fprintf(&text, " %s[%d]=%s", name, id, m.addr)
			}
		}
	}
	return text.String()
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table, err := New(DefaultConfig(), start)
		if err != nil {
			t.Fatal(err)
		}
		model := &naive{members: map[string]*naiveMember{}, queues: map[string]map[string]Queues{}}
		now := start
		names, ids := rapid.SampledFrom([]string{"a", "b"}), rapid.Int64Range(0, 1)
		host := rapid.IntRange(1, 3)
		topics := []string{"t", "u", "v"}
		// Any broker may be at any address; each registration comes on the connection
		// of its address.
		draw := func(t *rapid.T) (name string, id int64, addr string) {
			name, id = names.Draw(t, "name"), ids.Draw(t, "id")
			return name, id, fmt.Sprintf("host:%d", host.Draw(t, "host"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				name, id, addr := draw(t)
				r := broker(name, id, addr, rapid.Int64Range(1, 3).Draw(t, "version"))
				r.Old = true
				if rapid.Bool().Draw(t, "whole") {
					r = whole(r)
				}
				for _, topic := range rapid.SliceOfNDistinct(rapid.SampledFrom(topics), 1, 3, rapid.ID[string]).Draw(t, "topics") {
					n := rapid.Int32Range(1, 4).Draw(t, "queues")
					r.Topics[topic] = &mq.TopicConfig{Name: topic, ReadQueues: n, WriteQueues: n, Perm: 6}
				}
				_, err := table.Register(r, now)
				if taken := model.register(r, now); taken != (err == nil) {
					t.Fatalf("registration of %+v: %v, the model takes it: %v", r.Member, err, taken)
				}
			},
			"goodbye": func(t *rapid.T) {
				name, id, addr := draw(t)
				table.Unregister(Member{Cluster: "C", Name: name, ID: id, Addr: addr})
				model.leave(func(m *naiveMember) bool { return m.addr == addr && m.name == name })
			},
			"connection ends": func(t *rapid.T) {
				_, _, addr := draw(t)
				table.LinkClosed("link of " + addr)
				model.leave(func(m *naiveMember) bool { return m.link == "link of "+addr })
			},
			"heartbeat": func(t *rapid.T) {
				_, _, addr := draw(t)
				known := false
				for _, m := range model.members {
					if m.addr == addr {
						m.seen, known = now, true
					}
				}
				if got := table.Heartbeat("C", addr, 0, now); got != known {
					t.Fatalf("heartbeat of %s: %v, want %v", addr, got, known)
				}
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
				table.Expire(now)
				model.leave(func(m *naiveMember) bool { return now.Sub(m.seen) > 120*time.Second })
			},
			"write permission": func(t *rapid.T) {
				name, writable := names.Draw(t, "name"), rapid.Bool().Draw(t, "writable")
				table.SetWritable(name, writable)
				for _, byBroker := range model.queues {
					if q, ok := byBroker[name]; ok {
						q.Perm = 4
						if writable {
							q.Perm = 6
						}
						byBroker[name] = q
					}
				}
			},
			"delete topic": func(t *rapid.T) {
				topic := rapid.SampledFrom(topics).Draw(t, "topic")
				table.DeleteTopic(topic, "")
				delete(model.queues, topic)
			},
			"": func(t *rapid.T) {
				for _, topic := range append(topics, mq.TopicSelfTest, "a", "b") {
					if got, want := where(table, topic), model.where(topic); got != want {
						t.Fatalf("topic %s is %q, want %q", topic, got, want)
					}
				}
				if got, want := len(table.Members()), len(model.members); got != want {
					t.Fatalf("%d members, want %d", got, want)
				}
				entries := 0
				for _, byBroker := range model.queues {
					entries += len(byBroker)
				}
				if table.mu.queues != entries {
					t.Fatalf("%d entries counted, there are %d", table.mu.queues, entries)
				}
				if got, want := len(table.Topics(nil)), len(model.queues); got != want {
					t.Fatalf("%d topics, want %d", got, want)
				}
			},
		})
	})
}
