package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/clients"
	"github.com/sundial-mq/sundial/internal/broker/groups"
	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/broker/topics"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// bench is a Flow on a store of its own, with topic T of 4 queues.
type bench struct {
	t testing.TB
	*Flow
	disk *memfs.FS
}

func newBench(t testing.TB, change ...func(*Config)) *bench {
	t.Helper()
	disk := memfs.New(1)
	b := &bench{t: t, disk: disk}
	cfg, sc := DefaultConfig(), storage.DefaultConfig("store")
	for _, c := range change {
		c(&cfg)
	}
	sc.LogFileSize, sc.QueueFileSize, sc.IndexSlots, sc.IndexEntries, sc.Prefault, sc.Reserve = 1<<20, 2000, 100, 400, 0, 0
	sc.OnArrival = func(key mq.QueueKey, off mq.QueueOffset, code int64) { b.Arrived(key, off, code) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tr, err := topics.Open(disk, "store/config", topics.DefaultConfig())
	check(err)
	gr, err := groups.Open(disk, "store/config", groups.DefaultConfig())
	check(err)
	or, err := offsets.Open(disk, "store/config", offsets.DefaultConfig())
	check(err)
	cr, err := clients.New(clients.DefaultConfig())
	check(err)
	check(tr.Put(&mq.TopicConfig{Name: "T", Perm: mq.PermRead | mq.PermWrite, ReadQueues: 4, WriteQueues: 4, Filter: "SINGLE_TAG"}, ""))
	store, err := storage.Open(disk, sc)
	check(err)
	b.Flow, err = New(cfg, store, tr, gr, cr, or)
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- store.Run(ctx) }()
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

func (b *bench) put(queue mq.QueueID, body, tags string) mq.QueueOffset {
	b.t.Helper()
	host := netip.MustParseAddrPort("10.0.0.1:10911")
	at, err := b.store.Append(&record.Message{
		Topic: "T", QueueID: queue, BornHost: host, StoreHost: host, Body: []byte(body), Properties: record.AppendProperty(nil, mq.PropTags, tags),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return at.Queue
}

// answer is what a pull got, and when.
type answer struct {
	Result
	err    error
	bodies []string
	at     time.Time
}

// pull starts a pull; the channel has its one answer.
func (b *bench) pull(req Request) <-chan answer {
	if req.Topic == "" {
		req.Topic = "T"
	}
	if req.Group == "" {
		req.Group = "g"
	}
	if req.Max == 0 {
		req.Max = 32
	}
	if req.Flag&mq.PullSubscription == 0 && req.SubVersion == 0 {
		req.Flag |= mq.PullSubscription
	}
	if req.Suspend > 0 {
		req.Flag |= mq.PullSuspend
	}
	got := make(chan answer, 2)
	b.Pull(&req, func(r Result, err error) {
		a := answer{Result: r, err: err, at: time.Now()}
		for _, c := range r.Chunks {
			for len(c) > 0 {
				v, _, err := record.Next(c)
				if err != nil {
					b.t.Errorf("what came is no record: %v", err)
					break
				}
				a.bodies = append(a.bodies, string(v.Body()))
				c = c[len(v):]
			}
		}
		if r.Release != nil {
			r.Release()
		}
		got <- a
	})
	return got
}

// C04: every offset is answered with the right correction, never with 0 when
// there is an end.
func TestC04OffsetsOutsideAreCorrected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 10 {
			b.put(0, fmt.Sprint(i), "a")
		}
		for _, c := range []struct {
			queue  mq.QueueID
			off    mq.QueueOffset
			status Status
			next   mq.QueueOffset
			remark string
		}{
			{0, 0, Found, 10, "FOUND"},
			{0, 9, Found, 10, "FOUND"},
			{0, 10, NoNew, 10, "OFFSET_OVERFLOW_ONE"},
			{0, 11, Moved, 10, "OFFSET_OVERFLOW_BADLY"},
			{0, 1 << 40, Moved, 10, "OFFSET_OVERFLOW_BADLY"},
			{0, -1, Moved, 0, "OFFSET_TOO_SMALL"},
			{1, 0, NoNew, 0, "NO_MATCHED_LOGIC_QUEUE"},
			{1, 5, Moved, 0, "NO_MATCHED_LOGIC_QUEUE"},
		} {
			a := <-b.pull(Request{Queue: c.queue, Offset: c.off})
			if a.err != nil || a.Status != c.status || a.Next != c.next || a.Remark != c.remark {
				t.Errorf("queue %d at %d: %+v; want status %d, next %d, %s", c.queue, c.off, a, c.status, c.next, c.remark)
			}
			if c.queue == 0 && (a.Min != 0 || a.Max != 10) {
				t.Errorf("queue 0 is [%d, %d) in the answer, want [0, 10)", a.Min, a.Max)
			}
		}
	})
}

// C04, C11: with the beginning of the queue expired, what lies before it is
// corrected to the beginning, and consuming goes on there.
func TestC11ExpiredOffsetsAreCorrectedToTheBeginning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		body := strings.Repeat("x", 100_000)
		for range 40 {
			b.put(0, body, "")
		}
		old := time.Now().Add(-100 * time.Hour)
		files, err := b.disk.ReadDir("store/commitlog")
		if err != nil || len(files) < 3 {
			t.Fatalf("%d log files, %v", len(files), err)
		}
		if err := b.disk.SetModTime("store/commitlog/"+files[0].Name(), old); err != nil {
			t.Fatal(err)
		}
		if n, err := b.store.ExpireNow(t.Context()); n != 1 || err != nil {
			t.Fatalf("%d files expired, %v", n, err)
		}
		key := mq.QueueKey{Topic: "T"}
		begin := b.store.MinOffset(key)
		if begin == 0 {
			t.Fatal("the queue still begins at 0")
		}
		for _, off := range []mq.QueueOffset{0, begin - 1} {
			if a := <-b.pull(Request{Offset: off}); a.Status != Moved || a.Next != begin || a.Remark != "OFFSET_TOO_SMALL" {
				t.Errorf("at %d: %+v; want to be moved to %d", off, a, begin)
			}
		}
		if a := <-b.pull(Request{Offset: begin}); a.Status != Found || len(a.bodies) == 0 {
			t.Errorf("at the beginning: %+v", a)
		}
		for off, want := range map[mq.QueueOffset]Status{40: NoNew, 41: Moved, 90: Moved} {
			if a := <-b.pull(Request{Offset: off}); a.Status != want || a.Next != 40 {
				t.Errorf("at %d: %+v; want status %d and 40", off, a, want)
			}
		}
	})
}

// C05, C01: what was never committed is unknown, not 0.
func TestC05NothingCommittedIsNotZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 100 {
			b.put(0, fmt.Sprint(i), "")
		}
		if off, found := b.offsets.Query("new", "T", 0); found {
			t.Errorf("a group that never committed is at %d", off)
		}
		<-b.pull(Request{Group: "new", Offset: 50, CommitOffset: 50})
		if off, found := b.offsets.Query("new", "T", 0); found {
			t.Errorf("a pull without the flag committed %d", off)
		}
		<-b.pull(Request{Group: "new", Offset: 50, CommitOffset: 50, Flag: mq.PullCommitOffset | mq.PullSubscription})
		if off, found := b.offsets.Query("new", "T", 0); !found || off != 50 {
			t.Errorf("committed %d, %v; want 50", off, found)
		}
		// A commit that overtook the pull is not taken back.
		b.offsets.Commit("new", "T", 0, 70)
		<-b.pull(Request{Group: "new", Offset: 50, CommitOffset: 60, Flag: mq.PullCommitOffset | mq.PullSubscription})
		if off, _ := b.offsets.Query("new", "T", 0); off != 70 {
			t.Errorf("committed %d, want 70", off)
		}
	})
}

func TestParkedPullIsWokenByTheMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		got := b.pull(Request{Queue: 1, Suspend: 15 * time.Second})
		<-time.After(3 * time.Second)
		synctest.Wait()
		if n := b.Parked(); n != 1 {
			t.Fatalf("%d pulls parked", n)
		}
		before := time.Now()
		b.put(1, "news", "")
		a := <-got
		if a.err != nil || a.Status != Found || len(a.bodies) != 1 || a.bodies[0] != "news" || a.at != before {
			t.Errorf("%+v after %v", a, a.at.Sub(before))
		}
	})
}

func TestParkedPullTimesOutExactly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		for _, wait := range []time.Duration{2 * time.Second, 3 * time.Second, 15 * time.Second} {
			a := <-b.pull(Request{Suspend: wait})
			if took := a.at.Sub(began); a.err != nil || a.Status != NoNew || took != wait {
				t.Errorf("a pull that waits %v: %+v after %v", wait, a, took)
			}
			began = time.Now()
		}
		// What the filter does not want wakes nobody, and is passed over at the end.
		got := b.pull(Request{Suspend: 5 * time.Second, Subscription: "a || b"})
		b.put(0, "unwanted", "c")
		a := <-got
		if a.Status != Filtered || a.Next != 1 || a.at.Sub(began) != 5*time.Second {
			t.Errorf("%+v after %v; want to be told to go on at 1 after 5 s", a, a.at.Sub(began))
		}
	})
}

// A message that arrives between the look and the parking is not missed: every
// pull that is parked while messages arrive has the next one at once.
func TestNoArrivalIsMissed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 3000
	go func() {
		for i := range n {
			b.put(0, fmt.Sprint(i), "")
		}
	}()
	for off := mq.QueueOffset(0); off < n; {
		select {
		case a := <-b.pull(Request{Offset: off, Max: 1, Suspend: time.Minute}):
			if a.err != nil || a.Status != Found || a.bodies[0] != fmt.Sprint(off) {
				t.Fatalf("at %d: %+v", off, a)
			}
			off = a.Next
		case <-time.After(20 * time.Second):
			t.Fatalf("the pull at %d sleeps while the queue ends at %d", off, b.store.MaxOffset(mq.QueueKey{Topic: "T"}))
		}
	}
}

func TestFilterByTextAfterHash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.put(0, "1", "Aa") // same Java hash as BB
		b.put(0, "2", "BB")
		b.put(0, "3", "other")
		b.put(0, "4", "")
		a := <-b.pull(Request{Subscription: "BB || other"})
		if fmt.Sprint(a.bodies) != "[2 3]" || a.Next != 4 {
			t.Errorf("%+v", a)
		}
		if a := <-b.pull(Request{Subscription: "none"}); a.Status != Filtered || a.Next != 4 {
			t.Errorf("%+v", a)
		}
	})
}

// C10: a reset reaches a waiting consumer at once.
func TestC10ResetMovesTheParkedPull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 5 {
			b.put(0, fmt.Sprint(i), "")
		}
		got := b.pull(Request{Offset: 5, Suspend: time.Minute})
		synctest.Wait()
		b.offsets.Reset("g", "T", 0, 2)
		b.Wake(mq.QueueKey{Topic: "T"})
		if a := <-got; a.Status != Moved || a.Next != 2 || a.Remark != "OFFSET_RESET" {
			t.Errorf("%+v; want to be moved to 2", a)
		}
		if a := <-b.pull(Request{Offset: 2}); a.Status != Found || len(a.bodies) != 3 {
			t.Errorf("%+v; the reset is taken once", a)
		}
	})
}

// A consumer that lost a queue may have a pull parked there still: the reset is not
// spent on it.
func TestC10ResetMovesEveryParkedPull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 5 {
			b.put(0, fmt.Sprint(i), "")
		}
		lost, has := b.pull(Request{Offset: 5, Suspend: time.Minute}), b.pull(Request{Offset: 5, Suspend: time.Minute})
		synctest.Wait()
		b.offsets.Reset("g", "T", 0, 2)
		b.Wake(mq.QueueKey{Topic: "T"})
		for _, got := range []<-chan answer{lost, has} {
			if a := <-got; a.Status != Moved || a.Next != 2 {
				t.Errorf("%+v; want to be moved to 2", a)
			}
		}
	})
}

func TestPullsThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		closed := mq.NewGroupConfig("closed")
		closed.ConsumeEnable = false
		if err := b.groups.Put(closed); err != nil {
			t.Fatal(err)
		}
		noBroadcast := mq.NewGroupConfig("narrow")
		noBroadcast.ConsumeBroadcastEnable = false
		if err := b.groups.Put(noBroadcast); err != nil {
			t.Fatal(err)
		}
		if err := b.topics.Put(&mq.TopicConfig{Name: "W", Perm: mq.PermWrite, ReadQueues: 4, WriteQueues: 4, Filter: "SINGLE_TAG"}, ""); err != nil {
			t.Fatal(err)
		}
		if err := b.groups.Forbid("listed", "T", mq.PermRead, true); err != nil {
			t.Fatal(err)
		}
		online := func(group string, model clients.Model) {
			b.clients.Heartbeat(&clients.Heartbeat{Client: clients.Client{Conn: group, ID: group}, Consumers: []clients.Consumer{{
				Group: group, Type: clients.Passively, Model: model, Subscriptions: []clients.Subscription{{Topic: "T", Expression: "*", Version: 7}},
			}}}, time.Now())
		}
		online("listed", clients.Clustering)
		online("narrow", clients.Broadcasting)
		online("fine", clients.Clustering)
		for _, c := range []struct {
			name      string
			req       Request
			want      error
			forbidden int32
		}{
			{"a group that may not consume", Request{Group: "closed"}, mq.ErrNoPermission, 2},
			{"a topic that is not there", Request{Topic: "Nothing"}, mq.ErrNoTopic, 0},
			{"a topic that is not read", Request{Topic: "W"}, mq.ErrNoPermission, 3},
			{"a queue that is not there", Request{Queue: 4}, mq.ErrInvalid, 0},
			{"a queue below 0", Request{Queue: -1}, mq.ErrInvalid, 0},
			{"a group that nobody told of", Request{Group: "unheard", SubVersion: 1}, mq.ErrNotSubscribed, 0},
			{"a broadcasting group that may not", Request{Group: "narrow", SubVersion: 1}, mq.ErrNoPermission, 4},
			{"a group that may not read this topic", Request{Group: "listed", SubVersion: 1}, mq.ErrNoPermission, 5},
			{"a topic that the group does not want", Request{Group: "fine", Topic: "TBW102", SubVersion: 1}, mq.ErrNotSubscribed, 0},
			{"a subscription newer than the known one", Request{Group: "fine", SubVersion: 8}, mq.ErrSubscriptionStale, 0},
			{"the known subscription", Request{Group: "fine", SubVersion: 7}, nil, 0},
		} {
			a := <-b.pull(c.req)
			if !errors.Is(a.err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, a.err, c.want)
			}
			if f, ok := errors.AsType[*ForbiddenError](a.err); (ok || c.forbidden > 0) && (!ok || f.Type != c.forbidden) {
				t.Errorf("%s: forbidden as %+v, want type %d", c.name, f, c.forbidden)
			}
		}
	})
}

func TestStoppingAnswersParkedPulls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		got := b.pull(Request{Suspend: time.Minute})
		synctest.Wait()
		b.StopWaiting()
		if a := <-got; a.err != nil || a.Status != NoNew {
			t.Errorf("%+v", a)
		}
		if a := <-b.pull(Request{Suspend: time.Minute}); !errors.Is(a.err, mq.ErrUnavailable) {
			t.Errorf("a pull that would wait: %+v", a)
		}
	})
}

func BenchmarkWake(b *testing.B) {
	f := newBench(b)
	for b.Loop() {
		off := f.store.MaxOffset(mq.QueueKey{Topic: "T"})
		got := f.pull(Request{Offset: off, Suspend: time.Minute})
		f.put(0, "x", "")
		<-got
	}
}
