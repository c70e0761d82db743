package clients

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/invariant"
)

// house is a register whose callbacks are written down.
type house struct {
	*Register
	told       []string // group:number of members
	duplicates []string
	silent     []string
	muted      map[string]bool
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{muted: map[string]bool{}}
	cfg := DefaultConfig()
	cfg.Notify = func(group string, members []Client) {
		h.told = append(h.told, fmt.Sprintf("%s:%d", group, len(members)))
	}
	cfg.Wanted = func(group string) bool { return !h.muted[group] }
	cfg.Duplicate = func(group string, a, b Client) {
		h.duplicates = append(h.duplicates, fmt.Sprintf("%s:%s:%v,%v", group, a.ID, a.Conn, b.Conn))
	}
	cfg.Silent = func(c Client) { h.silent = append(h.silent, fmt.Sprint(c.Conn)) }
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.Register = r
	return h
}

// news returns what the members were told since the last call.
func (h *house) news() []string {
	n := h.told
	h.told = nil
	slices.Sort(n)
	return n
}

func consumer(group string, topics ...string) Consumer {
	c := Consumer{Group: group, Type: Passively, Model: Clustering, From: FromLast}
	for _, topic := range topics {
		c.Subscriptions = append(c.Subscriptions, Subscription{Topic: topic, Type: "TAG", Expression: "*", Version: 1})
	}
	return c
}

func (h *house) beat(conn any, id string, now time.Time, consumers ...Consumer) bool {
	return h.Heartbeat(&Heartbeat{Client: Client{Conn: conn, ID: id}, Consumers: consumers}, now)
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

var start = time.UnixMilli(1_700_000_000_000)

func after(d time.Duration) time.Time { return start.Add(d) }

func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.beat(1, "a", start, consumer("g", "t"))
	expect(t, "first member", h.news(), []string{"g:1"})
	h.beat(2, "b", start, consumer("g", "t"))
	expect(t, "second member", h.news(), []string{"g:2"})
	h.beat(1, "a", after(time.Second), consumer("g", "t"))
	expect(t, "nothing new", h.news(), nil)
	expect(t, "ids", h.IDs("g"), []string{"a", "b"})
	if c, ok := h.Consumer("g", "b"); !ok || c.Conn != 2 {
		t.Errorf("b is %+v", c)
	}
	h.Unregister(2, "", "g")
	expect(t, "goodbye", h.news(), []string{"g:1"})
	h.Closed(1)
	expect(t, "nobody left to tell", h.news(), nil)
	if h.View("g") != nil || h.IDs("g") != nil || len(h.Groups()) != 0 {
		t.Error("the group outlives its members")
	}
	if conns, consumers, producers := h.Count(); conns+consumers+producers != 0 {
		t.Errorf("left: %d %d %d", conns, consumers, producers)
	}
	h.Closed(1)
	h.Unregister(7, "x", "y")
}

func TestSubscriptionRules(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	sub := func(topic, expression string, version int64) Subscription {
		return Subscription{Topic: topic, Type: "TAG", Expression: expression, Version: version}
	}
	steps := []struct {
		what string
		subs []Subscription
		want map[string]string
		told bool
	}{
		{"the first", []Subscription{sub("t", "A", 10)}, map[string]string{"t": "A"}, true},
		{"a newer expression is taken, nobody is told", []Subscription{sub("t", "B", 11)}, map[string]string{"t": "B"}, false},
		{"an older one is not", []Subscription{sub("t", "C", 9)}, map[string]string{"t": "B"}, false},
		{"nor one of the same version", []Subscription{sub("t", "D", 11)}, map[string]string{"t": "B"}, false},
		{"a topic more", []Subscription{sub("t", "B", 11), sub("u", "*", 11)}, map[string]string{"t": "B", "u": "*"}, true},
		{"a topic less", []Subscription{sub("u", "*", 11)}, map[string]string{"u": "*"}, true},
		{"another topic", []Subscription{sub("v", "*", 1)}, map[string]string{"v": "*"}, true},
		{"none", nil, map[string]string{}, true},
	}
	for i, s := range steps {
		c := consumer("g")
		c.Subscriptions = s.subs
		h.beat(1, "a", after(time.Duration(i)*time.Second), c)
		got := map[string]string{}
		for topic, sub := range h.View("g").Subscriptions {
			got[topic] = sub.Expression
		}
		expect(t, s.what, got, s.want)
		if told := len(h.news()) > 0; told != s.told {
			t.Errorf("%s: told %v", s.what, told)
		}
	}
}

func TestLastMemberToSpeakIsRight(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.beat(1, "a", start, consumer("g", "t"))
	c := consumer("g", "t")
	c.Type, c.From = Actively, FromFirst
	h.beat(1, "a", start, c)
	if v := h.View("g"); v.Type != Actively || v.From != FromFirst || v.Subscription("t") == nil {
		t.Errorf("%+v", v)
	}
}

func TestNobodyIsToldWhoMustNotBe(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := consumer("broadcast", "t")
	c.Model = Broadcasting
	h.beat(1, "a", start, c)
	h.beat(2, "b", start, c)
	h.muted["muted"] = true
	h.beat(1, "a", start, consumer("muted", "t"))
	h.Closed(1)
	h.Closed(2)
	expect(t, "told", h.news(), nil)
}

func TestSubscribers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.beat(1, "a", start, consumer("g", "t", "u"), consumer("h", "t"))
	expect(t, "of t", h.Subscribers("t"), []string{"g", "h"})
	expect(t, "of u", h.Subscribers("u"), []string{"g"})
	expect(t, "of v", h.Subscribers("v"), nil)
	expect(t, "groups", h.Groups(), []string{"g", "h"})
}

func TestProducers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	beat := func(conn any, id string, groups ...string) {
		h.Heartbeat(&Heartbeat{Client: Client{Conn: conn, ID: id}, Producers: groups}, start)
	}
	beat(1, "a", "p", "q")
	beat(2, "b", "p")
	if got := h.Producers("p"); len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("p: %+v", got)
	}
	if all := h.AllProducers(); len(all) != 2 || len(all["q"]) != 1 {
		t.Errorf("all: %+v", all)
	}
	if c := h.Requesters("b"); len(c) != 1 || c[0].Conn != 2 {
		t.Errorf("b: %+v", c)
	}
	// b comes back while its old connection is not known to be dead.
	beat(3, "b", "q", "p")
	if c := h.Requesters("b"); len(c) != 2 || c[0].Conn != 3 || c[1].Conn != 2 {
		t.Errorf("b twice: %+v", c)
	}
	h.Unregister(3, "q", "")
	h.Unregister(2, "p", "")
	if c := h.Requesters("b"); len(c) != 1 || c[0].Conn != 3 {
		t.Errorf("b again: %+v", c)
	}
	h.Closed(3)
	if len(h.Requesters("b")) != 0 || len(h.Producers("p")) != 1 || len(h.mu.ids) != 1 {
		t.Errorf("b is still here: %v", h.mu.ids)
	}
	h.Closed(1)
	if len(h.AllProducers()) != 0 {
		t.Errorf("left: %+v", h.AllProducers())
	}
}

// C20: a member is here until it says goodbye, its connection ends, or it was
// silent for the whole time; reconnecting does not make it flicker.
func TestC20ExpiryByHeartbeatAgeOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		h.beat(1, "quiet", time.Now(), consumer("g", "t"), consumer("only", "t"))
		h.Heartbeat(&Heartbeat{Client: Client{Conn: 1, ID: "quiet"}, Producers: []string{"p"}}, time.Now())
		h.beat(2, "alive", time.Now(), consumer("g", "t"))
		h.news()
		for range 4 {
			time.Sleep(30 * time.Second)
			h.beat(2, "alive", time.Now(), consumer("g", "t"))
			expect(t, "ids before the time is over", h.IDs("g"), []string{"alive", "quiet"})
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		expect(t, "ids after it", h.IDs("g"), []string{"alive"})
		expect(t, "told", h.news(), []string{"g:1"})
		expect(t, "closed", h.silent, []string{"1"})
		if h.View("only") != nil || len(h.Producers("p")) != 0 {
			t.Error("something of the silent one is left")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSilentInOneGroupOnlyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.beat(1, "a", start, consumer("old", "t"), consumer("new", "t"))
	h.beat(1, "a", after(100*time.Second), consumer("new", "t"))
	h.Expire(after(130 * time.Second))
	expect(t, "groups", h.Groups(), []string{"new"})
	expect(t, "closed", h.silent, nil)
	h.Expire(after(230 * time.Second))
	expect(t, "groups", h.Groups(), nil)
	expect(t, "closed", h.silent, []string{"1"})
}

// C16: two processes that share a client id are found, once both went on
// sending heartbeats; one process on a new connection is not taken for two.
// Clients that share out queues by the list of ids see each id once.
func TestC16SameIDOnTwoConnections(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.beat(1, "172.17.0.2@1", start, consumer("g", "t"))
	h.beat(2, "172.17.0.2@1", after(time.Second), consumer("g", "t"))
	expect(t, "too early to say", h.duplicates, nil)
	expect(t, "ids", h.IDs("g"), []string{"172.17.0.2@1"})
	if got := len(h.Members("g")); got != 2 {
		t.Errorf("%d members", got)
	}
	for i := range 3 {
		h.beat(1, "172.17.0.2@1", after(time.Duration(30+i)*time.Second), consumer("g", "t"))
		h.beat(2, "172.17.0.2@1", after(time.Duration(31+i)*time.Second), consumer("g", "t"))
	}
	expect(t, "told once", h.duplicates, []string{"g:172.17.0.2@1:1,2"})
	expect(t, "listed", h.Duplicated("g"), []string{"172.17.0.2@1"})
	h.Closed(1)
	expect(t, "listed when one is left", h.Duplicated("g"), nil)
	expect(t, "ids when one is left", h.IDs("g"), []string{"172.17.0.2@1"})

	h = newHouse(t)
	h.beat(1, "a", start, consumer("g", "t"))
	h.beat(2, "a", after(time.Second), consumer("g", "t"))
	h.Closed(1) // the old connection's end is noticed late
	h.beat(2, "a", after(30*time.Second), consumer("g", "t"))
	expect(t, "a reconnected client", h.duplicates, nil)
}

func TestHeartbeatsWithoutSubscriptions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	full := &Heartbeat{Client: Client{Conn: 1, ID: "a"}, Consumers: []Consumer{consumer("g", "t")}, Fingerprint: 7}
	short := &Heartbeat{Client: Client{Conn: 1, ID: "a"}, Consumers: []Consumer{consumer("g")}, Fingerprint: 7, Unchanged: true}
	if h.Heartbeat(full, start) {
		t.Error("a full heartbeat is asked for again")
	}
	if h.Heartbeat(short, start) || h.View("g").Subscription("t") == nil {
		t.Errorf("the short form loses the subscriptions: %+v", h.View("g"))
	}
	other := *short
	other.Fingerprint = 8
	if !h.Heartbeat(&other, start) {
		t.Error("another fingerprint is not noticed")
	}
	if h.beat(1, "a", start, consumer("g", "t")) != true {
		t.Error("a client that knows nothing of fingerprints is told that it may leave things out")
	}
	// After a restart the register knows nothing: it must ask.
	h = newHouse(t)
	if !h.Heartbeat(short, start) {
		t.Error("nothing is known and nothing is asked for")
	}
	if v := h.View("g"); v == nil || len(v.Subscriptions) != 0 {
		t.Errorf("%+v", v)
	}
	if h.Heartbeat(full, start) || h.View("g").Subscription("t") == nil {
		t.Error("the full form is not taken")
	}
}

func TestOrderLocks(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	q := func(ids ...int) (queues []Queue) {
		for _, id := range ids {
			queues = append(queues, Queue{Topic: "t", Broker: "b", ID: int32ID(id)})
		}
		return queues
	}
	expect(t, "a locks", h.Lock("g", "a", q(0, 1), start), q(0, 1))
	expect(t, "b gets the rest", h.Lock("g", "b", q(0, 1, 2), start), q(2))
	expect(t, "another group is another matter", h.Lock("h", "b", q(0), start), q(0))
	h.Unlock("g", "b", q(0, 1, 2))
	expect(t, "only the owner unlocks", h.Lock("g", "c", q(0, 1, 2), start), q(2))
	expect(t, "a locks again", h.Lock("g", "a", q(0), after(50*time.Second)), q(0))
	expect(t, "one lease ran out, one was made longer", h.Lock("g", "b", q(0, 1), after(60*time.Second)), q(1))
	if !h.Locked("g", after(60*time.Second)) || h.Locked("none", start) {
		t.Error("Locked is wrong")
	}
	h.Expire(after(10 * time.Minute))
	if h.Locked("g", start) || len(h.locks.held) != 0 {
		t.Errorf("leases are left: %v", h.locks.held)
	}
}

// C14: the locks of a client that is gone are free at once, unless another
// connection of the same client is left.
func TestC14LocksEndWithTheClient(t *testing.T) {
	t.Parallel()
	queues := []Queue{{Topic: "t", Broker: "b", ID: 3}}
	for how, leave := range map[string]func(*house){
		"closed":       func(h *house) { h.Closed(1) },
		"unregistered": func(h *house) { h.Unregister(1, "", "g") },
		"expired":      func(h *house) { h.Expire(after(121 * time.Second)) },
	} {
		h := newHouse(t)
		h.beat(1, "a", start, consumer("g", "t"))
		h.beat(2, "b", after(10*time.Second), consumer("g", "t"))
		h.Lock("g", "a", queues, after(119*time.Second))
		expect(t, how+": before", h.Lock("g", "b", queues, after(120*time.Second)), nil)
		leave(h)
		expect(t, how+": after", h.Lock("g", "b", queues, after(121*time.Second)), queues)
	}
	h := newHouse(t)
	h.beat(1, "a", start, consumer("g", "t"))
	h.beat(9, "a", start, consumer("g", "t"))
	h.Lock("g", "a", queues, start)
	h.Closed(1)
	expect(t, "the client is still here", h.Lock("g", "b", queues, start), nil)
}

func TestViewAllocatesNothing(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	h := newHouse(t)
	h.beat(1, "a", start, consumer("group", "topic"))
	group, topic := string([]byte("group")), string([]byte("topic"))
	if n := testing.AllocsPerRun(1000, func() {
		if h.View(group).Subscription(topic) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("View allocates %v times", n)
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	r, err := New(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	hb := &Heartbeat{Client: Client{Conn: 1, ID: "a"}, Producers: []string{"p"}, Consumers: []Consumer{consumer("g", "t", "u", "v")}}
	b.ReportAllocs()
	for b.Loop() {
		r.Heartbeat(hb, start)
	}
}

// Locks are taken for queues of any name, so a client could take them without end.
func TestOrderLocksAreBounded(t *testing.T) {
	t.Parallel()
	r := newHouse(t)
	now := time.Unix(1_000_000, 0)
	queues := make([]Queue, MaxLeases)
	for i := range queues {
		queues[i] = Queue{Topic: "t", Broker: "b", ID: int32ID(i)}
	}
	if got := r.Lock("g", "c", queues, now); len(got) != MaxLeases {
		t.Fatalf("%d locks were given", len(got))
	}
	more := []Queue{{Topic: "u", Broker: "b"}}
	if got := r.Lock("h", "c", more, now); len(got) != 0 {
		t.Errorf("one too many was given: %v", got)
	}
	if got := r.Lock("g", "c", queues[:1], now); len(got) != 1 {
		t.Errorf("a lock that is held is not prolonged")
	}
	r.Unlock("g", "c", append(queues[:1:1], queues[0], Queue{Topic: "v"}))
	if got := r.Lock("h", "c", more, now); len(got) != 1 {
		t.Errorf("no lock is given although there is room")
	}
	r.expireLocks(now.Add(24 * time.Hour))
	if r.locks.all != 0 || len(r.locks.held) != 0 {
		t.Errorf("left: %d locks of %d groups", r.locks.all, len(r.locks.held))
	}
}
