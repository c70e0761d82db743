package route

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// A process that comes back under another name is known by that one only: its
// old name would lead clients to queues that are not there.
func TestNewNameAtAnAddress(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 9, "t", "u")), start)
	register(t, table, whole(broker("a", 1, "1:2", 9, "t")), start)
	out := register(t, table, whole(broker("b", 0, "1:1", 1, "t")), start)
	if out.Was.Name != "a" || out.Was.ID != 0 || !out.First {
		t.Errorf("%+v", out)
	}
	expect(t, "t", where(table, "t"), "a:6/4 b:6/4 @ a[1]=1:2 b[0]=1:1")
	// The goodbye of the old name comes late.
	if table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:1"}) {
		t.Error("a goodbye in the name of a broker that is another by now")
	}
	// Another cluster as well.
	other := whole(broker("c", 0, "1:1", 1, "t"))
	other.Cluster = "D"
	if out := register(t, table, other, start); out.Was.Name != "b" {
		t.Errorf("%+v", out)
	}
	expect(t, "t", where(table, "t"), "a:6/4 c:6/4 @ a[1]=1:2 c[0]=1:1")
	table.LinkClosed("link of 1:1")
	table.LinkClosed("link of 1:2")
	if len(table.Members())+len(table.Brokers())+len(table.Topics(nil))+len(table.Clusters())+table.mu.queues != 0 {
		t.Errorf("left: %v %v %v %v %d", table.Members(), table.Brokers(), table.Topics(nil), table.Clusters(), table.mu.queues)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.MaxMembers, cfg.MaxQueues = 2, 10
	table, err := New(cfg, start)
	if err != nil {
		t.Fatal(err)
	}
	register(t, table, broker("a", 0, "1:1", 1, "t1", "t2", "t3", "t4"), start)
	register(t, table, broker("b", 0, "2:1", 1, "t1", "t2", "t3", "t4"), start)
	if _, err := table.Register(broker("c", 0, "3:1", 1, "t1", "t2"), start); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("a broker too many: %v", err)
	}
	if _, err := table.Register(broker("b", 0, "2:1", 2, "t1", "t5", "t6", "t7"), start); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("topics too many: %v", err)
	}
	if n, err := table.AddTopic("t5", []Queues{{Broker: "a"}, {Broker: "nobody"}}); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := table.AddTopic("t6", []Queues{{Broker: "a"}, {Broker: "b"}}); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("topics too many by hand: %v", err)
	}
	table.DeleteTopic("t1", "")
	register(t, table, broker("b", 0, "2:2", 2, "t5", "t6"), start)
	expect(t, "t5", where(table, "t5"), "a:0/0 b:6/4 @ a[0]=1:1 b[0]=2:2")
	for _, bad := range []Config{{Expiry: time.Second, MaxMembers: 1}, {Expiry: time.Second, MaxQueues: 1}, {MaxMembers: 1, MaxQueues: 1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// The queue mapping of a static topic is handed on until the broker says
// another version without it.
func TestStaticTopics(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	r := whole(broker("a", 0, "1:1", 1, "t", "u"))
	r.Mappings = map[string][]byte{"t": []byte(`{"bname":"a"}`)}
	register(t, table, r, start)
	mapping := func(topic string) string {
		got, _ := table.Route(topic)
		return string(got.Queues[0].Mapping)
	}
	expect(t, "t", mapping("t"), `{"bname":"a"}`)
	expect(t, "u", mapping("u"), "")
	excerpt := broker("a", 0, "1:1", 2, "u")
	excerpt.Mappings = map[string][]byte{}
	register(t, table, excerpt, start)
	expect(t, "t after an excerpt", mapping("t"), `{"bname":"a"}`)
	register(t, table, whole(broker("a", 0, "1:1", 3, "t")), start)
	expect(t, "t without it", mapping("t"), "")
}

func TestActingMastersAsClientsSeeThem(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for id := range int64(3) {
		r := whole(broker("a", id, fmt.Sprintf("1:%d", id), 1, "t", mq.TopicSyncMemberPrefix+"a"))
		r.ActingMaster = true
		register(t, table, r, start)
	}
	seen := func(topic string) string {
		r, _ := table.Route(topic)
		r = r.WithActingMasters(topic)
		return fmt.Sprint(r.Queues[0].Perm, r.Brokers[0].Addrs)
	}
	expect(t, "with its master", seen("t"), "6 map[0:1:0 1:1:1 2:1:2]")
	table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:0"})
	expect(t, "without", seen("t"), "4 map[0:1:1 2:1:2]")
	expect(t, "for themselves", seen(mq.TopicSyncMemberPrefix+"a"), "4 map[1:1:1 2:1:2]")
	expect(t, "and in truth", where(table, "t"), "a:4/4 @ a[1]=1:1 a[2]=1:2")
}

func TestChangesOfTheLowestID(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	changes := func() string {
		text := ""
		for _, c := range table.TakeMinChanges() {
			text += fmt.Sprintf("%d=%s left %q ha %q tell %v;", c.MinID, c.MinAddr, c.Offline, c.HAAddr, c.Notify)
		}
		return text
	}
	add := func(id int64) {
		register(t, table, whole(broker("a", id, fmt.Sprintf("1:%d", id), 1, "t")), start)
	}
	add(1)
	expect(t, "the first", changes(), "")
	add(2)
	expect(t, "a higher one", changes(), "")
	add(0)
	expect(t, "the master comes", changes(), `0=1:0 left "" ha "1:0/ha" tell [1:1 1:2];`)
	table.LinkClosed("link of 1:2")
	expect(t, "a higher one leaves", changes(), "")
	table.Expire(after(time.Hour))
	if got := changes(); len(table.Members()) != 0 || len(got) > len(`1=1:1 left "1:0" ha "" tell [1:1];`) {
		t.Errorf("everybody leaves: %s", got)
	}
	add(0)
	add(1)
	add(2)
	changes()
	table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:0"})
	expect(t, "the master leaves", changes(), `1=1:1 left "1:0" ha "" tell [1:1 1:2];`)
	for range maxChanges {
		add(0)
		table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:0"})
	}
	if n := len(table.TakeMinChanges()); n != maxChanges {
		t.Errorf("%d changes are kept, want %d at most", n, maxChanges)
	}
	if got := table.Members(); !slices.ContainsFunc(got, func(m Member) bool { return m.ID == 1 }) {
		t.Errorf("%v", got)
	}
}
