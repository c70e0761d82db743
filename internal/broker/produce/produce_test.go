package produce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
)

var host = netip.MustParseAddrPort("10.0.0.1:10911")

// bench is a Flow on a store of its own.
type bench struct {
	t testing.TB
	*Flow
	store *storage.Store
	dead  func(group string, reconsume, max int32) (bool, error)
}

// Dead makes the bench the group's judge; without dead, nothing dies.
func (b *bench) Dead(group string, reconsume, max int32) (bool, error) {
	if b.dead == nil {
		return false, nil
	}
	return b.dead(group, reconsume, max)
}

// Retarget sends delayed messages to the schedule topic, as package delay does.
func (b *bench) Retarget(m *record.Message) error {
	level, _ := record.Property(m.Properties, mq.PropDelay)
	n, err := strconv.Atoi(string(level))
	if err != nil {
		return err
	}
	m.Properties = record.SetProperty(m.Properties, mq.PropRealTopic, m.Topic)
	m.Properties = record.SetProperty(m.Properties, mq.PropRealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID = mq.TopicSchedule, mq.QueueID(n-1)
	return nil
}

func newBench(t testing.TB, change ...func(*Config, *storage.Config)) *bench {
	t.Helper()
	dir, disk := t.TempDir(), vfs.OS()
	cfg, sc := DefaultConfig(), storage.DefaultConfig(dir)
	cfg.StoreHost = host
	sc.LogFileSize, sc.QueueFileSize, sc.IndexSlots, sc.IndexEntries, sc.Prefault, sc.Reserve = 16<<20, 20_000, 100, 400, 0, 0
	for _, c := range change {
		c(&cfg, &sc)
	}
	register, err := topics.Open(disk, dir+"/config", topics.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(disk, sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- store.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, store: store}
	if b.Flow, err = New(cfg, store, register, b, b, nil, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// send waits for the answer.
func (b *bench) send(req *Request) (Result, error) {
	if req.DefaultTopic == "" {
		req.DefaultTopic, req.DefaultQueues = mq.TopicAutoCreate, 4
	}
	if req.BornHost == (netip.AddrPort{}) {
		req.BornHost, req.BornTime = netip.MustParseAddrPort("192.168.0.7:4321"), 12345
	}
	type answer struct {
		Result
		error
	}
	done := make(chan answer, 1)
	b.Accept(req, func(r Result, err error) { done <- answer{r, err} })
	a := <-done
	return a.Result, a.error
}

func (b *bench) sent(req *Request) Result {
	b.t.Helper()
	res, err := b.send(req)
	if err != nil {
		b.t.Fatalf("send to %s: %v", req.Topic, err)
	}
	return res
}

// stored reads a queue.
func (b *bench) stored(topic string, queue mq.QueueID) []record.Message {
	var all []record.Message
	key := mq.QueueKey{Topic: topic, ID: queue}
	for off := b.store.MinOffset(key); off < b.store.MaxOffset(key); off++ {
		e, ok := b.store.Entry(key, off)
		if !ok {
			b.t.Fatalf("no entry %d of %v", off, key)
		}
		v, release, err := b.store.Record(e.Pos)
		if err != nil {
			b.t.Fatal(err)
		}
		m := record.View(append([]byte(nil), v...)).Message()
		release()
		all = append(all, m)
	}
	return all
}

func property(t testing.TB, m *record.Message, name string) string {
	t.Helper()
	v, _ := record.Property(m.Properties, name)
	return string(v)
}

func TestMessageIsStoredWithItsFacts(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		b := newBench(t, func(_ *Config, sc *storage.Config) { sc.SyncFlush = sync })
		res := b.sent(&Request{Topic: "T", Queue: 2, Flag: 7, Properties: open(block("KEYS", "k", "TAGS", "a", "CLUSTER", "elsewhere")), Body: []byte("hello"), Reconsume: 1})
		got := b.stored("T", 2)
		if len(got) != 1 {
			t.Fatalf("%d messages stored", len(got))
		}
		m := got[0]
		if string(m.Body) != "hello" || m.Flag != 7 || m.BornTime != 12345 || m.BornHost.String() != "192.168.0.7:4321" || m.StoreHost != host || m.ReconsumeTimes != 1 {
			t.Errorf("stored %+v", m)
		}
		for name, want := range map[string]string{"KEYS": "k", "TAGS": "a", "CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"} {
			if v := property(t, &m, name); v != want {
				t.Errorf("%s is %q, want %q", name, v, want)
			}
		}
		if id := mq.MessageID(host, m.LogOffset); res.MessageID != id || res.Queue != 2 || res.Offset != 0 {
			t.Errorf("answered %+v, want id %s in queue 2 at 0", res, id)
		}
		if key := property(t, &m, "UNIQ_KEY"); len(key) != 32 || res.TransactionID != key {
			t.Errorf("unique key %q, answered %q", key, res.TransactionID)
		}
		if res := b.sent(&Request{Topic: "T", Queue: -1, Properties: block("UNIQ_KEY", "mine"), Body: []byte("x")}); res.TransactionID != "mine" || res.Queue < 0 || res.Queue > 3 {
			t.Errorf("answered %+v", res)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config, _ *storage.Config) { c.MaxBody = 100 })
	if err := b.topics.Put(&mq.TopicConfig{Name: "ReadOnly", Perm: mq.PermRead, ReadQueues: 4, WriteQueues: 4, Filter: "SINGLE_TAG"}, ""); err != nil {
		t.Fatal(err)
	}
	body := []byte("x")
	for _, c := range []struct {
		name string
		req  Request
		want error
		says string // what the text must name
	}{
		{"a topic that is read only", Request{Topic: "ReadOnly", Body: body}, mq.ErrNoPermission, "ReadOnly"},
		{"the broker's own topic", Request{Topic: mq.TopicSchedule, Body: body}, mq.ErrNoPermission, mq.TopicSchedule},
		{"a bad name", Request{Topic: "a b", Body: body}, mq.ErrInvalid, "a b"},
		{"a long name", Request{Topic: strings.Repeat("x", 128), Body: body}, mq.ErrInvalid, "127"},
		{"no template", Request{Topic: "New", DefaultTopic: "Nothing", DefaultQueues: 4, Body: body}, mq.ErrNoTopic, "New"},
		{"a queue that is not there", Request{Topic: "T", Queue: 4, Body: body}, mq.ErrInvalid, "4"},
		{"no body", Request{Topic: "T"}, mq.ErrIllegalMessage, "body"},
		{"a body over the limit", Request{Topic: "T", Body: make([]byte, 101)}, mq.ErrIllegalMessage, "maxMessageSize"},
		{"properties over the limit", Request{Topic: "T", Body: body, Properties: block("x", strings.Repeat("y", 32000))}, mq.ErrIllegalMessage, "31743"},
		{"a delay that is no number", Request{Topic: "T", Body: body, Properties: block("DELAY", "soon")}, mq.ErrIllegalMessage, "soon"},
		{"a recall", Request{Topic: "T", Body: body, Properties: block("TIMER_DEL_UNIQKEY", "x")}, mq.ErrIllegalMessage, "TIMER_DEL_UNIQKEY"},
		{"half of a transaction", Request{Topic: "T", Body: body, Properties: block("TRAN_MSG", "true")}, mq.ErrNoPermission, "transactional"},
		{"a batch within", Request{Topic: "T", Body: body, SysFlag: mq.SysInnerBatch | mq.SysNeedUnwrap}, mq.ErrIllegalMessage, "0xc0"},
		{"a prepared flag", Request{Topic: "T", Body: body, SysFlag: mq.SysTxPrepared}, mq.ErrIllegalMessage, "TRAN_MSG"},
	} {
		_, err := b.send(&c.req)
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v; want %v that names %q", c.name, err, c.want, c.says)
		}
	}
	for queue := range mq.QueueID(4) {
		if got := b.stored("T", queue); len(got) != 0 {
			t.Errorf("queue %d holds %d refused messages", queue, len(got))
		}
	}
}

func TestAcceptanceHasABeginning(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config, _ *storage.Config) { c.AcceptFrom = 1 << 60 })
	if _, err := b.send(&Request{Topic: "T", Body: []byte("x")}); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("before the time: %v", err)
	}
	b = newBench(t, func(c *Config, _ *storage.Config) { c.Perm = mq.PermRead })
	if _, err := b.send(&Request{Topic: "T", Body: []byte("x")}); !errors.Is(err, mq.ErrNoPermission) {
		t.Errorf("to a broker that does not take messages: %v", err)
	}
}

// S26: a refused record takes no queue offset.
func TestS26RefusedMessagesTakeNoOffset(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config, _ *storage.Config) { c.MaxBody = 1000 })
	for i := range 20 {
		if res := b.sent(&Request{Topic: "T", Queue: 1, Body: []byte("good")}); res.Offset != mq.QueueOffset(i) {
			t.Fatalf("message %d is at %d", i, res.Offset)
		}
		for _, bad := range []*Request{
			{Topic: "T", Queue: 1, Body: make([]byte, 1001)},
			{Topic: "T", Queue: 1, Body: []byte("x"), Properties: block("x", strings.Repeat("y", 40000))},
			{Topic: "T", Queue: 1, Body: []byte("x"), Batch: true},
			{Topic: "T", Queue: 1, Body: batch("a", "", string(make([]byte, 1000)), ""), Batch: true},
		} {
			if _, err := b.send(bad); !errors.Is(err, mq.ErrIllegalMessage) {
				t.Fatalf("bad message: %v", err)
			}
		}
	}
}

func TestDelayLevelGoesItsDetour(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	res := b.sent(&Request{Topic: "T", Queue: 1, Body: []byte("x"), Properties: block("DELAY", "3", "TIMER_DELIVER_MS", "1", "TIMER_DELAY_SEC", "2", "KEYS", "k")})
	if res.Queue != 1 {
		t.Errorf("answered queue %d, want the one sent to", res.Queue)
	}
	got := b.stored(mq.TopicSchedule, 2)
	if len(got) != 1 || property(t, &got[0], "REAL_TOPIC") != "T" || property(t, &got[0], "REAL_QID") != "1" || property(t, &got[0], "KEYS") != "k" {
		t.Fatalf("waiting: %+v", got)
	}
	for _, name := range []string{"TIMER_DELIVER_MS", "TIMER_DELAY_SEC"} {
		if v := property(t, &got[0], name); v != "" {
			t.Errorf("%s=%s stayed beside the level", name, v)
		}
	}
	b.sent(&Request{Topic: "T", Queue: 1, Body: []byte("now"), Properties: block("DELAY", "-1")})
	if got := b.stored("T", 1); len(got) != 1 {
		t.Errorf("a level below 1 is no delay: %d messages in the queue", len(got))
	}
}

func TestPriorityChoosesTheQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for priority, queue := range map[string]mq.QueueID{"0": 0, "2": 2, "9": 3} {
		if res := b.sent(&Request{Topic: "T", Queue: 1, Body: []byte("x"), Properties: block("_SYS_MSG_PRIORITY_", priority)}); res.Queue != queue {
			t.Errorf("priority %s went to queue %d, want %d", priority, res.Queue, queue)
		}
	}
	// As in RocketMQ the delay wins, and words and numbers that are none choose nothing.
	for _, props := range [][]byte{block("_SYS_MSG_PRIORITY_", "2", "DELAY", "1"), block("_SYS_MSG_PRIORITY_", "-1"), block("_SYS_MSG_PRIORITY_", "high"), block("_SYS_MSG_PRIORITY_", "2147483648")} {
		if res := b.sent(&Request{Topic: "T", Queue: 1, Body: []byte("x"), Properties: props}); res.Queue != 1 {
			t.Errorf("%q went to queue %d, want 1", props, res.Queue)
		}
	}
}

func TestRetryOrDeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var asked []string
	b.dead = func(group string, reconsume, max int32) (bool, error) {
		asked = append(asked, fmt.Sprint(group, " ", reconsume, " ", max))
		if group == "unknown" {
			return false, mq.ErrNoGroup
		}
		return reconsume > max, nil
	}
	retry := mq.RetryTopic("g")
	// R08: the level of a client's own send to the retry topic counts.
	b.sent(&Request{Topic: retry, Body: []byte("again"), Reconsume: 1, MaxReconsume: 16, Properties: block("DELAY", "4", "TRAN_MSG", "true")})
	if got := b.stored(mq.TopicSchedule, 3); len(got) != 1 || property(t, &got[0], "REAL_TOPIC") != retry || got[0].ReconsumeTimes != 1 {
		t.Errorf("waiting for the retry: %+v", got)
	}
	// R01: a dead letter does not wait.
	b.sent(&Request{Topic: retry, Body: []byte("dead"), Reconsume: 3, MaxReconsume: 2, SysFlag: mq.SysTxPrepared,
		Properties: block("DELAY", "18", "TIMER_DELIVER_MS", "99", "RETRY_TOPIC", "T")})
	got := b.stored(mq.DLQTopic("g"), 0)
	if len(got) != 1 || property(t, &got[0], "DELAY") != "" || property(t, &got[0], "TIMER_DELIVER_MS") != "" || property(t, &got[0], "RETRY_TOPIC") != "T" || got[0].SysFlag.Tx() != 0 {
		t.Errorf("dead letters: %+v", got)
	}
	// R04: it can be read.
	if dlq := b.topics.Get(mq.DLQTopic("g")); dlq == nil || !dlq.Perm.Readable() {
		t.Errorf("the dead-letter topic is %+v", dlq)
	}
	// The Go client says it in the properties.
	b.sent(&Request{Topic: retry, Body: []byte("go"), Properties: block("RECONSUME_TIME", "5", "MAX_RECONSUME_TIMES", "4", "DELAY", "3")})
	if got := b.stored(mq.DLQTopic("g"), 0); len(got) != 2 || got[1].ReconsumeTimes != 5 {
		t.Errorf("dead letters: %+v", got)
	}
	if _, err := b.send(&Request{Topic: mq.RetryTopic("unknown"), Body: []byte("x")}); !errors.Is(err, mq.ErrNoGroup) {
		t.Errorf("a group that is not there: %v", err)
	}
	if b.topics.Get(mq.RetryTopic("unknown")) != nil {
		t.Error("a group that is not there has a retry topic")
	}
	if want := "[g 0 0 g 1 16 g 3 2 g 5 4 unknown 0 0]"; fmt.Sprint(asked) != want {
		t.Errorf("asked %v, want %v", asked, want)
	}
	// R11: what the broker and the clients added counts against no limit.
	b.sent(&Request{Topic: retry, Body: []byte("x"), Reconsume: 1, MaxReconsume: 16, Properties: block("x", strings.Repeat("y", 32000))})
}

func TestAcceptAllocatesLittle(t *testing.T) {
	b := newBench(t, func(_ *Config, sc *storage.Config) { sc.Index = false; sc.LogFileSize = 64 << 20 })
	req := &Request{Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultQueues: 4, BornHost: host, Queue: 1, Body: make([]byte, 1024),
		Properties: block("KEYS", "k", "UNIQ_KEY", "7F00000100002A139A55000000000001", "WAIT", "true", "TAGS", "a")}
	done := func(_ Result, err error) {
		if err != nil {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(2000, func() { b.Accept(req, done) }); n > 3 && !raceEnabled {
		t.Errorf("%v allocations a message, the budget is 3: the message id, the unique key, and one of the log", n)
	}
}

func BenchmarkAccept(b *testing.B) {
	s := newBench(b, func(_ *Config, sc *storage.Config) { sc.LogFileSize = 1 << 30 })
	req := &Request{Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultQueues: 4, BornHost: host, Queue: 1, Body: make([]byte, 1024),
		Properties: block("UNIQ_KEY", "7F00000100002A139A55000000000001", "WAIT", "true", "TAGS", "a")}
	b.SetBytes(1024)
	b.ReportAllocs()
	for b.Loop() {
		s.Accept(req, func(_ Result, err error) {
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
