package clients

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
)

func int32ID(i int) mq.QueueID { return mq.QueueID(i) }

// TestModel holds the register against a list of (connection, group, last
// heartbeat): whatever came, left or fell silent, membership is what the list
// says, and the indexes agree with each other.
func TestModel(t *testing.T) {
	t.Parallel()
	type seat struct {
		conn  int
		group string
	}
	rapid.Check(t, func(t *rapid.T) {
		r, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		now := start
		consumes, produces := map[seat]time.Time{}, map[seat]time.Time{}
		id := func(conn int) string { return fmt.Sprint("client-", conn/2) } // two connections share one
		conns := rapid.IntRange(0, 5)
		groups := rapid.SampledFrom([]string{"g", "h", "i"})
		t.Repeat(map[string]func(*rapid.T){
			"heartbeat": func(t *rapid.T) {
				conn := conns.Draw(t, "conn")
				hb := &Heartbeat{Client: Client{Conn: conn, ID: id(conn)}}
				for _, g := range rapid.SliceOfNDistinct(groups, 0, 2, rapid.ID[string]).Draw(t, "consumes") {
					hb.Consumers = append(hb.Consumers, consumer(g, "t"))
					consumes[seat{conn, g}] = now
				}
				for _, g := range rapid.SliceOfNDistinct(groups, 0, 2, rapid.ID[string]).Draw(t, "produces") {
					hb.Producers = append(hb.Producers, g)
					produces[seat{conn, g}] = now
				}
				r.Heartbeat(hb, now)
			},
			"goodbye": func(t *rapid.T) {
				conn, g, h := conns.Draw(t, "conn"), groups.Draw(t, "producer"), groups.Draw(t, "consumer")
				r.Unregister(conn, g, h)
				delete(produces, seat{conn, g})
				delete(consumes, seat{conn, h})
			},
			"close": func(t *rapid.T) {
				conn := conns.Draw(t, "conn")
				r.Closed(conn)
				gone := func(s seat, _ time.Time) bool { return s.conn == conn }
				maps.DeleteFunc(consumes, gone)
				maps.DeleteFunc(produces, gone)
			},
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
				r.Expire(now)
				silent := func(_ seat, seen time.Time) bool { return seen.Before(now.Add(-120 * time.Second)) }
				maps.DeleteFunc(consumes, silent)
				maps.DeleteFunc(produces, silent)
			},
			"": func(t *rapid.T) {
				for _, g := range []string{"g", "h", "i"} {
					ids, members, producers := map[string]bool{}, 0, 0
					for s := range consumes {
						if s.group == g {
							ids[id(s.conn)] = true
							members++
						}
					}
					for s := range produces {
						if s.group == g {
							producers++
						}
					}
					if got, want := r.IDs(g), slices.Sorted(maps.Keys(ids)); !slices.Equal(got, want) {
						t.Fatalf("%s has ids %v, want %v", g, got, want)
					}
					if got := len(r.Members(g)); got != members {
						t.Fatalf("%s has %d members, want %d", g, got, members)
					}
					if got := len(r.Producers(g)); got != producers {
						t.Fatalf("%s has %d producers, want %d", g, got, producers)
					}
					if (r.View(g) != nil) != (members > 0) {
						t.Fatalf("%s: view %v with %d members", g, r.View(g), members)
					}
				}
				here, requesters := map[int]bool{}, map[int]bool{}
				for s := range produces {
					requesters[s.conn] = true
				}
				found := 0
				for name, conns := range r.mu.ids {
					for _, c := range conns {
						found++
						if !requesters[c.(int)] || id(c.(int)) != name {
							t.Fatalf("%v is found as %s", c, name)
						}
					}
				}
				if found != len(requesters) {
					t.Fatalf("%d connections are found by id, want %d", found, len(requesters))
				}
				for s := range consumes {
					here[s.conn] = true
				}
				for s := range produces {
					here[s.conn] = true
				}
				if n, _, _ := r.Count(); n != len(here) {
					t.Fatalf("%d connections, want %d", n, len(here))
				}
			},
		})
	})
}
