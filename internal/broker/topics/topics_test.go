package topics

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const dir = "/store/config"

func open(t *testing.T, fs vfs.FS, cfg Config) *Register {
	t.Helper()
	r, err := Open(fs, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func with(change func(*Config)) Config {
	cfg := DefaultConfig()
	change(&cfg)
	return cfg
}

func topic(name string, queues int32, perm mq.Perm) *mq.TopicConfig {
	return &mq.TopicConfig{Name: name, ReadQueues: queues, WriteQueues: queues, Perm: perm, Filter: "SINGLE_TAG"}
}

// write puts a file where the register will look for it.
func write(t *testing.T, fs vfs.FS, content []byte) {
	t.Helper()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(dir + "/topics.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOwnTopicsAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), with(func(c *Config) { c.Cluster, c.Broker, c.TraceTopic = "C", "b", true }))
	for name, want := range map[string]struct {
		queues int32
		perm   mq.Perm
	}{
		"SELF_TEST_TOPIC": {1, 6}, "TBW102": {8, 7}, "BenchmarkTest": {1024, 6}, "C": {16, 7}, "b": {1, 7}, "OFFSET_MOVED_EVENT": {1, 6},
		"SCHEDULE_TOPIC_XXXX": {18, 6}, "RMQ_SYS_TRACE_TOPIC": {1, 6}, "C_REPLY_TOPIC": {1, 6}, "rmq_sys_REVIVE_LOG_C": {8, 6},
		"rmq_sys_SYNC_BROKER_MEMBER_b": {1, 1}, "RMQ_SYS_TRANS_HALF_TOPIC": {1, 6}, "RMQ_SYS_TRANS_OP_HALF_TOPIC": {1, 6},
		"rmq_sys_wheel_timer": {1, 6}, "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC": {1, 6}, "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC": {1, 6},
	} {
		got := r.Get(name)
		if got == nil || got.WriteQueues != want.queues || got.ReadQueues != want.queues || got.Perm != want.perm || !r.System(name) {
			t.Errorf("%s: %+v, want %+v, system %v", name, got, want, r.System(name))
		}
	}
	if all, _ := r.All(); len(all) != 16 || len(r.SystemNames()) != 16 {
		t.Errorf("%d topics, %d of the broker", len(all), len(r.SystemNames()))
	}
}

// What a real broker wrote is read, kept, written, and read again as the same.
func TestRocketMQsFile(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"clean", "pop", "retry-dlq"} {
		raw, err := os.ReadFile("testdata/" + store + ".json")
		if err != nil {
			t.Fatal(err)
		}
		fs := memfs.New(1)
		write(t, fs, raw)
		_, java, _, err := table.Open[document](fs, dir+"/topics.json")
		if err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, with(func(c *Config) { c.TraceTopic = true }))
		if r.Loaded().Source != table.File {
			t.Errorf("%s: loaded %+v", store, r.Loaded())
		}
		for name, want := range java.topics {
			if got := r.Get(name); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: topic %s is %+v, the file says %+v", store, name, got, want)
			}
		}
		if err := r.Put(topic("one-more", 3, 6), ""); err != nil {
			t.Fatal(err)
		}
		again := open(t, fs, with(func(c *Config) { c.TraceTopic = true }))
		a, va := r.All()
		b, vb := again.All()
		if !reflect.DeepEqual(a, b) || va != vb || va.Counter <= java.version.Counter {
			t.Errorf("%s: opened again it differs: %v, %v", store, va, vb)
		}
	}
}

func TestRocketMQsFileSaysWhatTheStoreManifestSays(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/clean.json")
	if err != nil {
		t.Fatal(err)
	}
	fs := memfs.New(1)
	write(t, fs, raw)
	r := open(t, fs, DefaultConfig())
	got := r.Get("ordered")
	if got == nil || !got.Order || got.WriteQueues != 4 || got.Attributes["message.type"] != "FIFO" {
		t.Errorf("ordered: %+v", got)
	}
}

func TestForeignMembersAndSharedAttributesOfTheFile(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	write(t, fs, []byte(`{"dataVersion":{"counter":7,"stateVersion":1,"timestamp":9},"later":{"x":[1]},"topicConfigTable":{
		"a":{"attributes":{"message.type":"DELAY"},"topicName":"a","perm":4},
		"b":{"attributes":{"$ref":"$.topicConfigTable.a.attributes"},"readQueueNums":2,"topicName":"b"}}}`))
	r := open(t, fs, DefaultConfig())
	if a := r.Get("a"); a.Perm != 4 || a.ReadQueues != 16 || a.Filter != "SINGLE_TAG" {
		t.Errorf("a: %+v", a)
	}
	if b := r.Get("b"); b.Attributes["message.type"] != "DELAY" || b.ReadQueues != 2 || b.Perm != 6 {
		t.Errorf("b: %+v", b)
	}
	if v := r.Version(); v.StateVersion != 1 || v.Counter != 8 {
		t.Errorf("version %+v", v)
	}
	b, err := fs.ReadFile(dir + "/topics.json")
	if err != nil || !strings.Contains(string(b), `"later"`) {
		t.Errorf("a member that is not ours is gone: %s %v", b, err)
	}
}

func TestDamagedFileIsNotTakenForAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", `{"topicConfigTable":[]}`, `{"topicConfigTable":{"a":{"perm":"x"}}}`} {
		fs := memfs.New(1)
		write(t, fs, []byte(content))
		if _, err := Open(fs, dir, DefaultConfig()); err == nil {
			t.Errorf("%q is read as a table of topics", content)
		} else if _, ok := errors.AsType[*mq.CorruptionError](err); !ok {
			t.Errorf("%q: %v", content, err)
		}
	}
}

func TestAutoCreate(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	for _, c := range []struct{ asked, want int32 }{{4, 4}, {16, 8}, {8, 8}, {0, 1}, {-3, 1}} {
		name := fmt.Sprintf("asked-%d", c.asked)
		got, err := r.AutoCreate(name, mq.TopicAutoCreate, c.asked, 0)
		if err != nil || got.WriteQueues != c.want || got.ReadQueues != c.want || got.Perm != 6 || got.Filter != "SINGLE_TAG" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if r.Get(name) != got {
			t.Errorf("%s is not there", name)
		}
	}
	for _, c := range []struct {
		name, template, says string
		err                  error
	}{
		{"x", "nowhere", "nowhere", mq.ErrNoTopic},
		{"x", "SELF_TEST_TOPIC", "no template", mq.ErrNoTopic},
		{"a b", mq.TopicAutoCreate, "illegal", mq.ErrInvalid},
		{"", mq.TopicAutoCreate, "blank", mq.ErrInvalid},
		{strings.Repeat("x", 128), mq.TopicAutoCreate, "128", mq.ErrInvalid},
	} {
		if _, err := r.AutoCreate(c.name, c.template, 4, 0); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q like %q: %v", c.name, c.template, err)
		}
	}
	// A topic of the cluster's name is a template as long as topics come by themselves.
	if _, err := r.AutoCreate("like-cluster", "DefaultCluster", 4, 0); err != nil {
		t.Error(err)
	}
}

// N05: with auto-creation off no system topic makes topics, whatever the
// sender names as template; and no start leaves TBW102 behind (N04).
func TestN05SystemTopicsAreNoTemplatesWhenAutoCreateIsOff(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	open(t, fs, DefaultConfig())
	off := with(func(c *Config) { c.AutoCreate = false })
	r := open(t, fs, off)
	if r.Get(mq.TopicAutoCreate) != nil {
		t.Error("TBW102 outlived the start without auto-creation")
	}
	for _, template := range append(r.SystemNames(), mq.TopicAutoCreate) {
		if _, err := r.AutoCreate("made", template, 4, 0); !errors.Is(err, mq.ErrNoTopic) {
			t.Errorf("template %s: %v", template, err)
		}
	}
	if r.Get("made") != nil {
		t.Error("a topic was made")
	}
	// What a user marked as template is one.
	if err := r.Put(topic("pattern", 3, 7), ""); err != nil {
		t.Fatal(err)
	}
	if got, err := r.AutoCreate("made", "pattern", 4, 0); err != nil || got.WriteQueues != 3 || got.Perm != 6 {
		t.Errorf("made: %+v, %v", got, err)
	}
}

// T05: what belongs to the broker cannot be deleted or changed by name.
func TestT05SystemTopicsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	for _, name := range r.SystemNames() {
		if err := r.Delete(name); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("delete %s: %v", name, err)
		}
		if err := r.Put(topic(name, 1, 6), ""); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("put %s: %v", name, err)
		}
		if r.Get(name) == nil {
			t.Errorf("%s is gone", name)
		}
	}
	if err := r.Delete(""); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("delete of no name: %v", err)
	}
	if err := r.Delete("never-was"); err != nil {
		t.Errorf("delete of what is not there: %v", err)
	}
}

func TestRetryAndDeadLetterTopics(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	var changes []Change
	r.OnChange(func(c Change) { changes = append(changes, c) })
	a, err := r.EnsureRetry("g", 1, false, true)
	if err != nil || a.Name != "%RETRY%g" || a.WriteQueues != 1 || a.Perm != 6 || a.SysFlag != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	if b, err := r.EnsureRetry("g", 5, false, false); err != nil || b != a {
		t.Errorf("again: %+v, %v", b, err)
	}
	if b, err := r.EnsureRetry("g", 1, true, false); err != nil || !b.Order || b.SysFlag != 2 || a.Order {
		t.Errorf("ordered: %+v, %v", b, err)
	}
	if d, err := r.EnsureDLQ("g"); err != nil || d.Name != "%DLQ%g" || d.WriteQueues != 1 || d.Perm != 6 {
		t.Errorf("%+v, %v", d, err)
	}
	if len(changes) != 3 {
		t.Errorf("%d changes told", len(changes))
	}
}

func TestPutAndAttributes(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	must := func(attributes string) {
		t.Helper()
		if err := r.Put(topic("t", 4, 6), attributes); err != nil {
			t.Fatal(err)
		}
	}
	must("+message.type=FIFO,+cleanup.policy=DELETE")
	before := r.Version()
	must("")
	must("+message.type=FIFO")
	if r.Version() != before {
		t.Error("no change steps the version")
	}
	must("+message.type=NORMAL,+reserve.time=5")
	must("-reserve.time")
	must("+delay.jitter.ms=30000,+delay.rate=1000")
	if n := Number(r.Get("t"), DelayJitterAttribute); n != 30_000 {
		t.Errorf("the jitter is %d", n)
	}
	must("-delay.jitter.ms,-delay.rate")
	if n := Number(r.Get("t"), DelayRateAttribute) + Number(nil, DelayRateAttribute); n != 0 {
		t.Errorf("rates that nobody set are %d", n)
	}
	if got := r.Get("t").Attributes; !reflect.DeepEqual(got, map[string]string{"message.type": "NORMAL", "cleanup.policy": "DELETE"}) {
		t.Errorf("attributes %v", got)
	}
	for _, bad := range []string{"message.type=FIFO", "+message.type", "-message.type=FIFO", "+nothing=1", "+message.type=ODD",
		"+cleanup.policy=COMPACTION", "-cleanup.policy", "+reserve.time=x", "+delay.jitter.ms=86400001", "+delay.jitter.ms=-1", "+delay.rate=x", "+delay.rate=1000000001", "+message.type=FIFO,-message.type", "+", "+=1"} {
		if err := r.Put(topic("t", 4, 6), bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, kind := range []string{"+queue.type=BatchCQ", "+queue.type=RocksDBCQ", "+cleanup.policy=COMPACTION"} {
		if err := r.Put(topic("new", 4, 6), kind); err == nil || !strings.Contains(err.Error(), "is not served") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := r.Put(topic("new", 4, 6), "-message.type"); err == nil {
		t.Error("an attribute is taken from a topic that is being made")
	}
	if err := r.Put(topic("new", -1, 6), ""); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("-1 queues: %v", err)
	}
}

func TestPutAllIsOneEdit(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	v := r.Version().Counter
	if err := r.PutAll([]*mq.TopicConfig{topic("a", 1, 6), topic("b", 2, 6)}); err != nil {
		t.Fatal(err)
	}
	if r.Version().Counter != v+1 || r.Get("a") == nil || r.Get("b") == nil {
		t.Errorf("version %d after %d", r.Version().Counter, v)
	}
	if err := r.PutAll([]*mq.TopicConfig{topic("c", 1, 6), topic("TBW102", 2, 6)}); err == nil || r.Get("c") != nil {
		t.Errorf("half of a list was taken: %v", err)
	}
}

// Every instant at which the power may go: the file is whole, and has what
// Put and Delete returned for.
func TestPowerCutKeepsWhatWasPromised(t *testing.T) {
	t.Parallel()
	for cut := int64(1); ; cut++ {
		fs := memfs.New(uint64(cut))
		r := open(t, fs, DefaultConfig())
		fs.StopAfter(cut)
		there := map[string]bool{}
		for i := range 4 {
			name := fmt.Sprintf("t%d", i)
			if r.Put(topic(name, 1, 6), "") == nil {
				there[name] = true
			}
		}
		gone := r.Delete("t0") == nil
		stopped := fs.Stopped()
		again := open(t, fs.Crash(), DefaultConfig())
		for name := range there {
			if name == "t0" {
				continue // its deletion may or may not have come through
			}
			if again.Get(name) == nil {
				t.Fatalf("cut %d: %s is gone", cut, name)
			}
		}
		if gone && again.Get("t0") != nil {
			t.Fatalf("cut %d: t0 is back", cut)
		}
		if again.Get("SCHEDULE_TOPIC_XXXX") == nil {
			t.Fatalf("cut %d: a topic of the broker is missing", cut)
		}
		if !stopped {
			if cut < 10 {
				t.Fatalf("only %d operations", cut)
			}
			return
		}
	}
}

func TestManyMakeOneTopic(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	var wg sync.WaitGroup
	got := make([]*mq.TopicConfig, 16)
	for i := range got {
		wg.Go(func() { got[i], _ = r.AutoCreate("t", mq.TopicAutoCreate, int32(i+1), 0) })
	}
	wg.Wait()
	for _, c := range got {
		if c != r.Get("t") {
			t.Fatal("two configurations of one topic were handed out")
		}
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	r := open(t, memfs.New(1), DefaultConfig())
	name := string([]byte("BenchmarkTest"))
	if n := testing.AllocsPerRun(1000, func() { r.Get(name) }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

func FuzzDocument(f *testing.F) {
	for _, store := range []string{"clean", "pop"} {
		raw, err := os.ReadFile("testdata/" + store + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"topicConfigTable":{"a":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d, again document
		if d.UnmarshalJSON(raw) != nil {
			return
		}
		b, err := d.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalJSON(b); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, b)
		}
		if len(again.topics) != len(d.topics) || again.version != d.version {
			t.Fatalf("written %+v, read %+v", d, again)
		}
	})
}
