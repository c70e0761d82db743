package redeliver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

var host = netip.MustParseAddrPort("10.0.0.1:10911")

// bench is a Flow on a store of its own, with the default levels. Nothing
// delivers what waits there: the tests look at it.
type bench struct {
	t testing.TB
	*Flow
	ordered bool // the groups hold order locks
}

func newBench(t testing.TB, change ...func(*Config, *storage.Config, *groups.Config)) *bench {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	disk := memfs.New(1)
	levels, err := delay.ParseLevels(delay.DefaultLevels)
	check(err)
	cfg, sc, gc := DefaultConfig(), storage.DefaultConfig("store"), groups.DefaultConfig()
	cfg.StoreHost = host
	sc.LogFileSize, sc.QueueFileSize, sc.IndexSlots, sc.IndexEntries, sc.Prefault, sc.Reserve = 1<<20, 2000, 100, 400, 0, 0
	rules := delay.Rules{Levels: levels, Timers: delay.DefaultTimers(), Now: time.Now}
	sc.TagsCode = rules.TagsCode
	for _, c := range change {
		c(&cfg, &sc, &gc)
	}
	tr, err := topics.Open(disk, "store/config", topics.DefaultConfig())
	check(err)
	gr, err := groups.Open(disk, "store/config", gc)
	check(err)
	store, err := storage.Open(disk, sc)
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- store.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t}
	b.Flow, err = New(cfg, store, tr, gr, rules, func(string) bool { return b.ordered })
	check(err)
	return b
}

// put stores a message as a producer's, or a delivered one when tries is above 0.
func (b *bench) put(m record.Message) mq.LogOffset {
	b.t.Helper()
	m.BornHost, m.StoreHost, m.BornTime = netip.MustParseAddrPort("192.168.0.7:4321"), host, 12345
	at, err := b.store.AppendInternal(&m)
	if err != nil {
		b.t.Fatal(err)
	}
	return at.Log
}

// last is the newest message of a queue and how many there are.
func (b *bench) last(topic string, queue mq.QueueID) (*record.Message, int) {
	b.t.Helper()
	key := mq.QueueKey{Topic: topic, ID: queue}
	n := b.store.MaxOffset(key)
	if n == 0 {
		return nil, 0
	}
	e, ok := b.store.Entry(key, n-1)
	if !ok {
		b.t.Fatalf("no entry %d of %v", n-1, key)
	}
	v, release, err := b.store.Record(e.Pos)
	if err != nil {
		b.t.Fatal(err)
	}
	defer release()
	m := record.View(append([]byte(nil), v...)).Message()
	return &m, int(n)
}

func props(pairs ...string) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = record.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return b
}

func property(m *record.Message, name string) string {
	v, _ := record.Property(m.Properties, name)
	return string(v)
}

// R07: the n-th retry waits for level 3+n, whatever the message carried before.
func TestR07LadderOfRetries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	origin := ""
	at := b.put(record.Message{Topic: "T", Body: []byte("x"), Flag: 7, SysFlag: mq.SysCompressed | mq.SysTxCommit, Properties: props("KEYS", "k", "TAGS", "a")})
	origin = mq.MessageID(host, at)
	for try := range int32(16) {
		if err := b.SendBack(&Request{Group: "g", Offset: at, MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		level := 3 + int(try)
		m, n := b.last(mq.TopicSchedule, mq.QueueID(min(level, 18)-1))
		if m == nil || level < 18 && n != 1 {
			t.Fatalf("try %d: %d messages wait at level %d", try, n, level)
		}
		if m.ReconsumeTimes != try+1 || m.Flag != 7 || m.SysFlag&mq.SysCompressed == 0 || m.SysFlag.Tx() != 0 || string(m.Body) != "x" || m.BornTime != 12345 {
			t.Fatalf("try %d: %+v", try, m)
		}
		for name, want := range map[string]string{
			"REAL_TOPIC": "%RETRY%g", "REAL_QID": "0", "DELAY": strconv.Itoa(min(level, 18)), "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": origin,
			"KEYS": "k", "TAGS": "a", "WAIT": "false", mq.PropReceipt: "",
		} {
			if got := property(m, name); got != want {
				t.Errorf("try %d: %s is %q, want %q", try, name, got, want)
			}
		}
		if n := strings.Count(string(m.Properties), "REAL_TOPIC"); n != 1 {
			t.Errorf("try %d: REAL_TOPIC stands %d times in the block", try, n)
		}
		// As the delay delivers it, with its receipt.
		at = b.put(record.Message{Topic: "%RETRY%g", Body: m.Body, Flag: m.Flag, SysFlag: m.SysFlag, ReconsumeTimes: m.ReconsumeTimes,
			Properties: record.AppendProperty(m.Properties, mq.PropReceipt, fmt.Sprint("s,SCHEDULE_TOPIC_XXXX,2,", try))})
	}
	if err := b.SendBack(&Request{Group: "g", Offset: at, MaxReconsume: -1}); err != nil {
		t.Fatal(err)
	}
	m, n := b.last("%DLQ%g", 0)
	if n != 1 || m.ReconsumeTimes != 17 || property(m, "ORIGIN_MESSAGE_ID") != origin || property(m, "RETRY_TOPIC") != "T" ||
		property(m, "DLQ_ORIGIN_TOPIC") != "T" || property(m, "DLQ_ORIGIN_MESSAGE_ID") != origin {
		t.Errorf("after 16 retries: %d dead letters, %+v", n, m)
	}
}

// R01: a dead letter is there at once, whatever delay the message had.
func TestR01DeadLetterDoesNotWait(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.put(record.Message{Topic: "%RETRY%g", ReconsumeTimes: 2, Body: []byte("x"), Properties: props("DELAY", "18", "REAL_TOPIC", "%RETRY%g", "REAL_QID", "0",
		mq.PropReceipt, "s,t,0,1", mq.PropDelayMillis, "7200000", "TIMER_DELIVER_MS", "99", "RETRY_TOPIC", "T")})
	if err := b.SendBack(&Request{Group: "g", Offset: at, MaxReconsume: 2}); err != nil {
		t.Fatal(err)
	}
	m, n := b.last("%DLQ%g", 0)
	if n != 1 {
		t.Fatalf("%d dead letters", n)
	}
	for _, name := range []string{"DELAY", "REAL_TOPIC", "REAL_QID", mq.PropReceipt, mq.PropDelayMillis, "TIMER_DELIVER_MS"} {
		if v := property(m, name); v != "" {
			t.Errorf("%s=%s was inherited", name, v)
		}
	}
	if why := property(m, propReason); !strings.Contains(why, "3 times") || !strings.Contains(why, "2 retries") {
		t.Errorf("reason %q", why)
	}
}

// R04: retry and dead-letter topics can be read.
func TestR04TopicsAreReadable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 2 {
		at := b.put(record.Message{Topic: "T", Body: []byte("x")})
		if err := b.SendBack(&Request{Group: "g", Offset: at, DelayLevel: mq.DelayLevel(-i), MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"%RETRY%g", "%DLQ%g"} {
		if topic := b.topics.Get(name); topic == nil || topic.Perm != mq.PermRead|mq.PermWrite || topic.ReadQueues != 1 {
			t.Errorf("topic %s is %+v", name, topic)
		}
	}
}

// R13: a consumer can dead-letter a message at once, and the reason is told.
func TestR13RejectedAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := b.put(record.Message{Topic: "T", Body: []byte("x")})
	if err := b.SendBack(&Request{Group: "g", Offset: at, DelayLevel: -1, MaxReconsume: 16, OriginID: "ID"}); err != nil {
		t.Fatal(err)
	}
	m, n := b.last("%DLQ%g", 0)
	if n != 1 || !strings.Contains(property(m, propReason), "rejected") || property(m, "ORIGIN_MESSAGE_ID") != "ID" {
		t.Errorf("%d dead letters, %+v", n, m)
	}
}

// R11: a message at the limits can be given back, and so can the next one.
func TestR11LimitsDoNotStopRetries(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *Config, sc *storage.Config, _ *groups.Config) { sc.MaxMessage = 10_000 })
	big := b.put(record.Message{Topic: strings.Repeat("t", 127), Body: make([]byte, 10_000), Properties: props("x", strings.Repeat("y", record.MaxProperties-1024-3))})
	small := b.put(record.Message{Topic: "T", Body: []byte("small")})
	group := strings.Repeat("g", mq.MaxGroupLen)
	for _, at := range []mq.LogOffset{big, small} {
		if err := b.SendBack(&Request{Group: group, Offset: at, MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
	}
	if m, n := b.last(mq.TopicSchedule, 2); n != 2 || string(m.Body) != "small" {
		t.Errorf("%d messages wait, the last is %+v", n, m)
	}
	if err := b.SendBack(&Request{Group: group, Offset: big + 1, MaxReconsume: -1}); !errors.Is(err, mq.ErrSystem) {
		t.Errorf("a place where no message begins: %v", err)
	}
}

// R02: what an ordered consumer gives up is a dead letter; R08: other sends to
// the retry topic count as one try.
func TestR02OrderedConsumersGiveUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		ordered        bool
		reconsume, max int32
		want           bool
	}{{false, 1, 16, false}, {false, 16, 16, false}, {false, 17, 16, true}, {false, 17, -1, true}, {false, 1, 1, false}, {false, 2, 1, true}, {true, 1, 16, true}, {false, 0, 0, false}} {
		b.ordered = c.ordered
		if got, err := b.Dead("g", c.reconsume, c.max); err != nil || got != c.want {
			t.Errorf("%+v: dead %v, %v", c, got, err)
		}
	}
}

func TestGroupsThatAreNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ *Config, _ *storage.Config, gc *groups.Config) { gc.AutoCreate = false })
	at := b.put(record.Message{Topic: "T", Body: []byte("x")})
	if err := b.SendBack(&Request{Group: "g", Offset: at}); !errors.Is(err, mq.ErrNoGroup) {
		t.Errorf("a group that is not there: %v", err)
	}
	if _, err := b.Dead("g", 0, 0); !errors.Is(err, mq.ErrNoGroup) {
		t.Errorf("a group that is not there: %v", err)
	}
	quiet := mq.NewGroupConfig("quiet")
	quiet.RetryQueues = 0
	if err := b.groups.Put(quiet); err != nil {
		t.Fatal(err)
	}
	if err := b.SendBack(&Request{Group: "quiet", Offset: at}); err != nil || b.topics.Get("%RETRY%quiet") != nil {
		t.Errorf("a group without retries: %v", err)
	}
}

// C17: two clients with one id fail a message once each; that is one retry.
func TestC17SendBackIsIdempotent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var all []mq.LogOffset
		for range 10 {
			all = append(all, b.put(record.Message{Topic: "T", Body: []byte("x")}))
		}
		var wg sync.WaitGroup
		for range 2 {
			for _, at := range all {
				wg.Go(func() {
					if err := b.SendBack(&Request{Group: "g", Offset: at, MaxReconsume: -1}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if _, n := b.last(mq.TopicSchedule, 2); n != 10 {
			t.Errorf("%d retries of 10 messages", n)
		}
		// Another group's failure is another matter, and so is one after the retry.
		if err := b.SendBack(&Request{Group: "h", Offset: all[0], MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if err := b.SendBack(&Request{Group: "g", Offset: all[0], MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		if _, n := b.last(mq.TopicSchedule, 2); n != 12 {
			t.Errorf("%d messages wait, want 12", n)
		}
	})
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecent(3)
	calls := 0
	once := func(at mq.LogOffset) {
		if err := r.once(attempt{"g", at}, func() (time.Duration, error) { calls++; return time.Hour, nil }); err != nil {
			t.Error(err)
		}
	}
	for _, at := range []mq.LogOffset{1, 2, 3, 1, 4, 2, 1} {
		once(at)
	}
	if calls != 5 || len(r.mu.calls) > 4 {
		t.Errorf("%d calls, %d remembered; the oldest of four is forgotten and served again", calls, len(r.mu.calls))
	}
	bad := errors.New("bad")
	if err := r.once(attempt{"g", 9}, func() (time.Duration, error) { return 0, bad }); err != bad {
		t.Error(err)
	}
	once(9)
	if calls != 6 {
		t.Error("a failure was remembered")
	}
}

// A group's own plan decides the pause when the consumer leaves it to the group, to
// the millisecond; one that is as long as a level is that level. A level that the
// consumer names counts more.
func TestPlanOfTheGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	custom := func(next ...int64) *mq.RetryPolicy {
		return &mq.RetryPolicy{Type: mq.RetryCustomized, Customized: &mq.CustomizedPolicy{Next: next}}
	}
	exp := &mq.RetryPolicy{Type: mq.RetryExponential, Exponential: &mq.ExponentialPolicy{Initial: 1000, Max: 3_600_000, Multiplier: 4}}
	for i, c := range []struct {
		plan  *mq.RetryPolicy
		tries int32
		asked mq.DelayLevel
		want  int64 // ms; below 0 a level of 1s 5s 10s 30s 1m 2m ... 10m 20m 30m 1h 2h
	}{
		{nil, 0, 0, -3},
		{nil, 2, 0, -5},
		{custom(), 2, 0, -5},
		{custom(0, 0, 4_000, 70_000), 0, 0, 4_000},
		{custom(0, 0, 5_000, 70_001), 0, 0, -2},
		{custom(0, 0, 4_000, 70_001), 1, 0, 70_001},
		{custom(0, 0, 4_000, 70_000), 9, 0, 70_000},
		{custom(0, 0, 4_000, 70_000), 1, 7, -7},
		{custom(0, 0, 1), 0, 0, 1},
		{custom(0, 0, 0), 0, 0, 0},
		{custom(0, 0, 1<<62), 0, 0, delay.DefaultMaxDelay.Milliseconds()},
		{exp, 0, 0, -1}, {exp, 1, 0, 4_000}, {exp, 2, 0, 16_000}, {exp, 3, 0, 64_000}, {exp, 9, 0, -17},
	} {
		g := mq.NewGroupConfig(fmt.Sprint("plan", i))
		g.RetryPolicy = c.plan
		if err := b.groups.Put(g); err != nil {
			t.Fatal(err)
		}
		at := b.put(record.Message{Topic: "T", Body: []byte("x"), ReconsumeTimes: c.tries, Properties: props("ORIGIN_MESSAGE_ID", "ID", "TIMER_OUT_MS", "7", "TIMER_DEQUEUE_MS", "8")})
		before := time.Now().UnixMilli()
		if err := b.SendBack(&Request{Group: g.Name, Offset: at, DelayLevel: c.asked, MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		after := time.Now().UnixMilli()
		topic, queue := mq.TopicTimer, mq.QueueID(0)
		switch {
		case c.want < 0:
			topic, queue = mq.TopicSchedule, mq.QueueID(-c.want-1)
		case c.want == 0:
			topic = mq.RetryTopic(g.Name)
		}
		m, _ := b.last(topic, queue)
		if m == nil || c.want != 0 && property(m, mq.PropRealTopic) != "%RETRY%"+g.Name {
			t.Errorf("%+v after %d tries, asked for %d: it does not wait in %s/%d", c.plan, c.tries, c.asked, topic, queue)
			continue
		}
		if m.ReconsumeTimes != c.tries+1 || property(m, "ORIGIN_MESSAGE_ID") != "ID" || property(m, "RETRY_TOPIC") != "T" || property(m, "TIMER_DEQUEUE_MS") != "" {
			t.Errorf("%+v: it waits as %+v", c.plan, m)
		}
		if due, _ := strconv.ParseInt(property(m, mq.PropDue), 10, 64); c.want > 0 && (due < before+c.want || due > after+c.want) {
			t.Errorf("%+v after %d tries: it waits %d ms, want %d", c.plan, c.tries, due-before, c.want)
		}
	}
}

// Pauses of an exponential plan are spread when the group wants that, and never longer.
func TestJitterOfExponentialPauses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := mq.NewGroupConfig("g")
	g.RetryPolicy = &mq.RetryPolicy{Type: mq.RetryExponential, Exponential: &mq.ExponentialPolicy{Initial: 100_000, Max: 3_600_000, Multiplier: 2}}
	g.Attributes = map[string]string{"+" + groups.RetryJitterAttribute: "101"}
	if err := b.groups.Put(g); err == nil {
		t.Error("a jitter of 101 % is taken")
	}
	g.Attributes = map[string]string{"+" + groups.RetryJitterAttribute: "40"}
	if err := b.groups.Put(g); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for range 50 {
		before := time.Now().UnixMilli()
		if err := b.SendBack(&Request{Group: "g", Offset: b.put(record.Message{Topic: "T", Body: []byte("x")}), MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		m, _ := b.last(mq.TopicTimer, 0)
		due, _ := strconv.ParseInt(property(m, mq.PropDue), 10, 64)
		if pause, late := due-before, time.Now().UnixMilli()-before; pause < 60_000 || pause > 100_000+late {
			t.Errorf("a pause of %d ms, want 60,000 to 100,000", pause)
		}
		seen[(due-before)/4000] = true
	}
	if len(seen) < 3 {
		t.Errorf("50 pauses are all alike")
	}
}

// With timers switched off a plan uses the nearest level.
func TestPlanWithoutTimers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rules := b.delay.(delay.Rules)
	rules.Enabled = false
	b.delay = rules
	for i, c := range []struct{ pause, level int64 }{{3_000, 1}, {3_001, 2}, {70_000, 5}, {1 << 62, 18}} {
		g := mq.NewGroupConfig(fmt.Sprint("g", i))
		g.RetryPolicy = &mq.RetryPolicy{Type: mq.RetryCustomized, Customized: &mq.CustomizedPolicy{Next: []int64{0, 0, c.pause}}}
		if err := b.groups.Put(g); err != nil {
			t.Fatal(err)
		}
		if err := b.SendBack(&Request{Group: g.Name, Offset: b.put(record.Message{Topic: "T", Body: []byte("x")}), MaxReconsume: -1}); err != nil {
			t.Fatal(err)
		}
		if m, _ := b.last(mq.TopicSchedule, mq.QueueID(c.level-1)); m == nil || property(m, mq.PropRealTopic) != "%RETRY%"+g.Name {
			t.Errorf("a pause of %d ms does not become level %d", c.pause, c.level)
		}
	}
}
