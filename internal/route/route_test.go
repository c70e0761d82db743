package route

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

var start = time.UnixMilli(1_700_000_000_000)

func after(d time.Duration) time.Time { return start.Add(d) }

func newTable(t *testing.T) *Table {
	t.Helper()
	table, err := New(DefaultConfig(), start)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// broker is a registration in the making.
func broker(name string, id int64, addr string, version int64, topics ...string) *Registration {
	r := &Registration{
		Member: Member{Cluster: "C", Name: name, ID: id, Addr: addr, Link: "link of " + addr},
		HAAddr: addr + "/ha", Version: mq.DataVersion{Counter: version}, Topics: map[string]*mq.TopicConfig{},
	}
	for _, topic := range topics {
		r.Topics[topic] = &mq.TopicConfig{Name: topic, ReadQueues: 4, WriteQueues: 4, Perm: 6}
	}
	return r
}

// whole adds the topics that every broker has.
func whole(r *Registration) *Registration {
	for _, topic := range append([]string{r.Name, "DefaultCluster"}, markers...) {
		r.Topics[topic] = &mq.TopicConfig{Name: topic, ReadQueues: 1, WriteQueues: 1, Perm: 6}
	}
	return r
}

func register(t *testing.T, table *Table, r *Registration, at time.Time) Outcome {
	t.Helper()
	out, err := table.Register(r, at)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// where tells a topic's route as text: "a:6 b:4 @ a=addr b=addr".
func where(table *Table, topic string) string {
	r, found := table.Route(topic)
	if !found {
		return "nowhere"
	}
	text := ""
	for _, q := range r.Queues {
		text += fmt.Sprintf("%s:%d/%d ", q.Broker, q.Perm, q.Write)
	}
	text += "@"
	for _, b := range r.Brokers {
		for _, id := range sortedIDs(b.Addrs) {
			text += fmt.Sprintf(" %s[%d]=%s", b.Name, id, b.Addrs[id])
		}
	}
	return text
}

func sortedIDs(m map[int64]string) []int64 {
	var ids []int64
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestG02TopicOnTwoBrokers(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	register(t, table, whole(broker("b", 0, "2:1", 1, "t", "u")), start)
	expect(t, "t", where(table, "t"), "a:6/4 b:6/4 @ a[0]=1:1 b[0]=2:1")
	expect(t, "u", where(table, "u"), "b:6/4 @ b[0]=2:1")
	expect(t, "v", where(table, "v"), "nowhere")
	if got := fmt.Sprint(table.Clusters()); got != "map[C:[a b]]" {
		t.Errorf("clusters %s", got)
	}
	if topics, found := table.TopicsOf("C"); !found || !slices.Contains(topics, "u") || len(topics) != len(table.Topics(nil)) {
		t.Errorf("topics of the cluster: %v", topics)
	}
	if _, found := table.TopicsOf("D"); found {
		t.Error("an unknown cluster has topics")
	}
}

// N04: a registration that holds all topics of a broker replaces the set it
// had, so that the template of a broker that restarted without auto-creation is
// gone. One that holds a few adds to it.
func TestN04WholeRegistrationReplacesTheTopicSet(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "TBW102", "t")), start)
	register(t, table, whole(broker("b", 0, "2:1", 1, "TBW102")), start)
	register(t, table, broker("a", 0, "1:1", 2, "u", "v"), start) // an excerpt, as RocketMQ 5 sends it
	expect(t, "t after an excerpt", where(table, "t"), "a:6/4 @ a[0]=1:1")
	expect(t, "u after an excerpt", where(table, "u"), "a:6/4 @ a[0]=1:1")
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	expect(t, "the template", where(table, "TBW102"), "b:6/4 @ b[0]=2:1")
	expect(t, "u", where(table, "u"), "nowhere")
	expect(t, "t", where(table, "t"), "a:6/4 @ a[0]=1:1")
}

// N07: while no broker has registered since the start, an absent topic says
// nothing.
func TestN07NotReadyUntilABrokerRegistered(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	if table.Ready(after(44 * time.Second)) {
		t.Error("ready without a broker")
	}
	if !table.Ready(after(45 * time.Second)) {
		t.Error("not ready for ever")
	}
	register(t, table, whole(broker("a", 0, "1:1", 1)), after(time.Second))
	if !table.Ready(after(time.Second)) {
		t.Error("not ready although a broker is here")
	}
	table.LinkClosed("link of 1:1")
	if !table.Ready(after(2 * time.Second)) {
		t.Error("not ready any more")
	}
}

// N08: a broker that comes back with another address is known by that one only,
// at once; the end of the old connection and a late goodbye do no harm.
func TestN08AddressChangeDropsTheOldOneAtOnce(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "10.0.0.1:1", 1, "t")), start)
	out := register(t, table, whole(broker("a", 0, "10.0.0.9:1", 1, "t")), after(time.Second))
	if out.Replaced != "10.0.0.1:1" {
		t.Errorf("%+v", out)
	}
	want := "a:6/4 @ a[0]=10.0.0.9:1"
	expect(t, "t", where(table, "t"), want)
	if gone := table.LinkClosed("link of 10.0.0.1:1"); len(gone) != 0 {
		t.Errorf("the old connection still stands for %v", gone)
	}
	table.Unregister(Member{Cluster: "C", Name: "a", ID: 0, Addr: "10.0.0.1:1"})
	table.Expire(after(120 * time.Second))
	expect(t, "t later", where(table, "t"), want)
	if n := len(table.Members()); n != 1 {
		t.Errorf("%d members", n)
	}
}

func TestExpiryGoodbyeAndConnectionEnd(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	quick := whole(broker("quick", 0, "3:1", 1, "t"))
	quick.Timeout = 10 * time.Second
	register(t, table, quick, start)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	register(t, table, whole(broker("b", 0, "2:1", 1, "t")), start)

	if gone := table.Expire(after(10 * time.Second)); len(gone) != 0 {
		t.Errorf("too early: %v", gone)
	}
	if gone := table.Expire(after(11 * time.Second)); len(gone) != 1 || gone[0].Link != "link of 3:1" {
		t.Errorf("expired: %v", gone)
	}
	if !table.Heartbeat("C", "1:1", 0, after(100*time.Second)) || table.Heartbeat("C", "3:1", 0, after(100*time.Second)) {
		t.Error("heartbeats are answered wrongly")
	}
	table.Expire(after(121 * time.Second))
	expect(t, "after a heartbeat", where(table, "t"), "a:6/4 @ a[0]=1:1")
	if !table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:1"}) || table.Unregister(Member{Cluster: "C", Name: "a", Addr: "1:1"}) {
		t.Error("goodbye is answered wrongly")
	}
	expect(t, "after the goodbye", where(table, "t"), "nowhere")
	if len(table.Topics(nil))+len(table.Brokers())+len(table.Clusters())+len(table.Members()) != 0 {
		t.Error("an empty table is not empty")
	}
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	if gone := table.LinkClosed("link of 1:1"); len(gone) != 1 {
		t.Errorf("closed: %v", gone)
	}
	expect(t, "after the connection's end", where(table, "t"), "nowhere")
}

func TestNewConnectionStandsForTheBroker(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	again := whole(broker("a", 0, "1:1", 1, "t"))
	again.Link = "another"
	register(t, table, again, start)
	if gone := table.LinkClosed("link of 1:1"); len(gone) != 0 {
		t.Errorf("the old connection took %v with it", gone)
	}
	expect(t, "t", where(table, "t"), "a:6/4 @ a[0]=1:1")
}

func TestWritePermission(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	register(t, table, whole(broker("b", 0, "2:1", 1, "t")), start)
	if n := table.SetWritable("a", false); n != 1+2+len(markers) {
		t.Errorf("%d topics", n)
	}
	expect(t, "taken", where(table, "t"), "a:4/4 b:6/4 @ a[0]=1:1 b[0]=2:1")
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	expect(t, "the same version does not give it back", where(table, "t"), "a:4/4 b:6/4 @ a[0]=1:1 b[0]=2:1")
	table.SetWritable("a", true)
	expect(t, "given", where(table, "t"), "a:6/4 b:6/4 @ a[0]=1:1 b[0]=2:1")
	table.SetWritable("a", false)
	register(t, table, whole(broker("a", 0, "1:1", 2, "t")), start)
	expect(t, "a new version does", where(table, "t"), "a:6/4 b:6/4 @ a[0]=1:1 b[0]=2:1")
	if n := table.SetWritable("nobody", false); n != 0 {
		t.Errorf("%d topics of nobody", n)
	}
}

func TestTopicsByHand(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	table.AddTopic("new", []Queues{{Broker: "a", Perm: 6, Write: 2}, {Broker: "nobody", Perm: 6, Write: 2}})
	expect(t, "added", where(table, "new"), "a:6/2 @ a[0]=1:1")
	table.DeleteTopic("new", "D")
	expect(t, "deleted elsewhere", where(table, "new"), "a:6/2 @ a[0]=1:1")
	table.DeleteTopic("new", "C")
	expect(t, "deleted", where(table, "new"), "nowhere")
	table.DeleteTopic("t", "")
	expect(t, "deleted everywhere", where(table, "t"), "nowhere")
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	expect(t, "the broker still has it", where(table, "t"), "a:6/4 @ a[0]=1:1")
}

func TestSlaves(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	out := register(t, table, whole(broker("a", 1, "1:2", 1, "t")), start)
	if out.MasterAddr != "" {
		t.Errorf("a master that is not here: %+v", out)
	}
	register(t, table, whole(broker("a", 0, "1:1", 1, "u")), start)
	out = register(t, table, whole(broker("a", 1, "1:2", 2, "w")), start)
	if out.MasterAddr != "1:1" || out.MasterHAAddr != "1:1/ha" {
		t.Errorf("%+v", out)
	}
	expect(t, "the master's topic", where(table, "u"), "a:6/4 @ a[0]=1:1 a[1]=1:2")
	expect(t, "the slave's say does not count", where(table, "w"), "nowhere")
	// The slave becomes master under its old address.
	register(t, table, whole(broker("a", 0, "1:2", 1, "u")), start)
	expect(t, "one address, one id", where(table, "u"), "a:6/4 @ a[0]=1:2")
}

func TestActingMaster(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	master, slave := whole(broker("a", 0, "1:1", 1, "t")), whole(broker("a", 1, "1:2", 1, "t"))
	master.ActingMaster, slave.ActingMaster = true, true
	register(t, table, master, start)
	register(t, table, slave, start)
	expect(t, "both", where(table, "t"), "a:6/4 @ a[0]=1:1 a[1]=1:2")
	table.LinkClosed("link of 1:1")
	expect(t, "the slave alone takes no messages", where(table, "t"), "a:4/4 @ a[1]=1:2")
	slave.Version.Counter = 2
	register(t, table, slave, start)
	expect(t, "nor when it registers", where(table, "t"), "a:4/4 @ a[1]=1:2")
	register(t, table, master, start)
	expect(t, "the master is back", where(table, "t"), "a:6/4 @ a[0]=1:1 a[1]=1:2")

	old := whole(broker("b", 1, "2:2", 1, "old"))
	old.Old = true
	register(t, table, old, start)
	expect(t, "an old slave does not speak for its group", where(table, "old"), "nowhere")
}

func TestRegistrationsThatAreNotTaken(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	if _, err := table.Register(broker("a", 0, "1:1", 1, "t"), start); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("one topic from a stranger: %v", err)
	}
	for _, r := range []*Registration{broker("", 0, "1:1", 1), broker("a", 0, "", 1)} {
		if _, err := table.Register(r, start); !errors.Is(err, mq.ErrSystem) {
			t.Errorf("%+v: %v", r.Member, err)
		}
	}
	if len(table.Brokers()) != 0 {
		t.Errorf("left: %v", table.Brokers())
	}
	later := whole(broker("a", 0, "1:1", 1, "t"))
	later.Version.StateVersion = 5
	register(t, table, later, start)
	earlier := whole(broker("a", 0, "9:9", 100, "t"))
	earlier.Version.StateVersion = 4
	if out := register(t, table, earlier, start); !out.Ignored {
		t.Errorf("%+v", out)
	}
	expect(t, "the later incarnation stays", where(table, "t"), "a:6/4 @ a[0]=1:1")
	if out := register(t, table, broker("a", 0, "1:1", 2, "u"), start); out.First {
		t.Errorf("one topic from a broker that is known: %+v", out)
	}
}

func TestGroupMovesToAnotherCluster(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	moved := whole(broker("a", 0, "1:1", 2, "t"))
	moved.Cluster = "D"
	if out := register(t, table, moved, start); out.Moved != "C" {
		t.Errorf("%+v", out)
	}
	if got := fmt.Sprint(table.Clusters(), len(table.Members())); got != "map[D:[a]] 1" {
		t.Errorf("clusters %s", got)
	}
}

func TestZones(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for name, zone := range map[string]string{"a": "East", "b": "west"} {
		r := whole(broker(name, 0, name+":1", 1, "t"))
		r.Zone = zone
		register(t, table, r, start)
	}
	register(t, table, whole(broker("slave-only", 1, "s:1", 1, "t")), start)
	r, _ := table.Route("t")
	in := r.InZone("east")
	if len(in.Brokers) != 2 || in.Brokers[0].Name != "a" || in.Brokers[1].Name != "slave-only" || len(in.Queues) != 2 {
		t.Errorf("%+v", in)
	}
}

func TestDataVersion(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	if _, known := table.DataVersion("C", "1:1"); known {
		t.Error("a version of nobody")
	}
	register(t, table, whole(broker("a", 0, "1:1", 7, "t")), start)
	if v, known := table.DataVersion("C", "1:1"); !known || v.Counter != 7 {
		t.Errorf("%+v", v)
	}
}

func TestAnswersAreCopies(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	register(t, table, whole(broker("a", 0, "1:1", 1, "t")), start)
	r, _ := table.Route("t")
	r.Brokers[0].Addrs[0] = "spoilt"
	table.Brokers()[0].Addrs[0] = "spoilt"
	expect(t, "t", where(table, "t"), "a:6/4 @ a[0]=1:1")
}

func TestKV(t *testing.T) {
	t.Parallel()
	kv := NewKV(map[string]map[string]string{"ns": {"k": "v"}, "empty": {}}, 24)
	put := func(namespace, key, value string) error { return kv.Put(namespace, key, value) }
	if err := errors.Join(put("ns", "k2", "v2"), put("other", "k", "w")); err != nil {
		t.Error(err)
	}
	if v, found := kv.Get("ns", "k"); !found || v != "v" {
		t.Errorf("%q %v", v, found)
	}
	if !kv.Delete("other", "k") || kv.Delete("other", "k") || kv.Namespace("other") != nil || kv.Namespace("empty") != nil {
		t.Error("delete")
	}
	if got := fmt.Sprint(kv.All()); got != "map[ns:map[k:v k2:v2]]" {
		t.Errorf("%s", got)
	}
	// 10 bytes are there: ns k v, ns k2 v2.
	if err := put("ns", "long", "123456789"); !errors.Is(err, mq.ErrSystem) || !strings.Contains(err.Error(), "limit of 24") {
		t.Errorf("over the limit: %v", err)
	}
	if err := errors.Join(put("ns", "long", "12345678"), put("ns", "k", "w"), put("ns", "long", "1"), put("ns", "k", "1234567")); err != nil {
		t.Errorf("up to the limit, and replaced: %v", err)
	}
}

func BenchmarkRoute(b *testing.B) {
	table, err := New(DefaultConfig(), start)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := table.Register(whole(broker(name, 0, name+":1", 1, "t")), start); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		table.Route("t")
	}
}

func TestR07RetryTopicIsFoundBeforeTheFirstHeartbeatMakesIt(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	if _, found := table.RetryRoute("%RETRY%g"); found {
		t.Error("a retry route without brokers")
	}
	register(t, table, whole(broker("a", 0, "1:1", 1, mq.TopicAutoCreate)), start)
	register(t, table, whole(broker("b", 0, "2:1", 1, "t")), start)
	r, found := table.RetryRoute("%RETRY%g")
	if !found || len(r.Queues) != 1 || !reflect.DeepEqual(r.Queues[0], Queues{Broker: "a", Perm: 6, Read: 1, Write: 1}) || len(r.Brokers) != 1 {
		t.Errorf("retry route %+v, found %v; want one queue on a, the one that makes topics", r, found)
	}
	for _, topic := range []string{"t", "g", "%DLQ%g", "%RETRY%", "%RETRY%g g"} {
		if _, found := table.RetryRoute(topic); found {
			t.Errorf("a retry route for %q", topic)
		}
	}
	if q, _ := table.Route(mq.TopicAutoCreate); q.Queues[0].Perm == 0 || q.Queues[0].Read != 4 {
		t.Errorf("asking changed the table: %+v", q.Queues)
	}
}
