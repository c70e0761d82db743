package offsets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const dir = "/store/config"

type queues = map[mq.QueueID]mq.QueueOffset

func open(t *testing.T, fs vfs.FS) *Register {
	t.Helper()
	r, err := Open(fs, dir, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, fs vfs.FS, content []byte) {
	t.Helper()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(dir + "/consumerOffset.json")
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

func all(r *Register) Table {
	t, _ := r.All()
	return t
}

// C04: what was never committed is not found; it is not zero. Progress is told
// as it was committed, whatever the queue holds: correcting it is the pull's
// affair.
func TestC04UnknownProgressIsNotZero(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	if off, found := r.Query("g", "t", 0); found || off == 0 {
		t.Errorf("nothing committed: %d, %v", off, found)
	}
	r.Commit("g", "t", 3, 0)
	for _, c := range []struct {
		group, topic string
		queue        mq.QueueID
		found        bool
	}{{"g", "t", 3, true}, {"g", "t", 2, false}, {"g", "t", 4, false}, {"g", "u", 3, false}, {"h", "t", 3, false}, {"t", "g", 3, false}} {
		off, found := r.Query(c.group, c.topic, c.queue)
		if found != c.found || found && off != 0 || !found && off != mq.UnknownOffset {
			t.Errorf("%+v: %d, %v", c, off, found)
		}
	}
}

func TestProgressGoesOnAndBack(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	for _, off := range []mq.QueueOffset{5, 100, 7, 0, 1 << 40} {
		if err := r.Commit("g", "t", 1, off); err != nil {
			t.Errorf("%d is refused: %v", off, err)
		}
		if got, found := r.Query("g", "t", 1); !found || got != off {
			t.Errorf("committed %d, got %d, %v", off, got, found)
		}
	}
	if err := r.Commit("g", "t", 1, -1); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("-1 is taken: %v", err)
	}
	if got, _ := r.Query("g", "t", 1); got != 1<<40 {
		t.Errorf("after the refusal %d", got)
	}
}

func TestRocketMQsFile(t *testing.T) {
	t.Parallel()
	for store, want := range map[string]Table{
		"clean": {"TopicTest@g-some": {0: 7, 1: 5, 2: 4, 3: 5}, "bulk@g-partial": {0: 17, 1: 18}, "TopicTest@g-all": {0: 11, 1: 16, 3: 11},
			"ordered@g-orderly": {0: 6, 1: 6}, "bulk@g-all": {0: 60, 1: 60}},
		"pop": nil, "retry-dlq": nil,
	} {
		raw, err := os.ReadFile("testdata/" + store + ".json")
		if err != nil {
			t.Fatal(err)
		}
		fs := memfs.New(1)
		write(t, fs, raw)
		r := open(t, fs)
		if want != nil && !reflect.DeepEqual(all(r), want) {
			t.Errorf("%s: %v", store, all(r))
		}
		if len(all(r)) == 0 {
			t.Errorf("%s: nothing was read", store)
		}
		if store == "clean" {
			if off, found := r.QueryPull("g-all", "TopicTest", 2); !found || off != 6 {
				t.Errorf("pulled: %d %v", off, found)
			}
		}
		before := maps.Clone(all(r))
		r.Commit("mine", "t", 9, 9)
		if err := r.Save(); err != nil {
			t.Fatal(err)
		}
		again := open(t, fs)
		before["t@mine"] = queues{9: 9}
		if !reflect.DeepEqual(all(again), before) {
			t.Errorf("%s: opened again: %v, want %v", store, all(again), before)
		}
		_, v := r.All()
		if _, va := again.All(); v != va || v.Timestamp == 0 {
			t.Errorf("%s: versions %+v and %+v", store, v, va)
		}
		if !reflect.DeepEqual(r.pulled.table(), again.pulled.table()) || len(again.pulled.table()) == 0 {
			t.Errorf("%s: pullOffsetTable is lost: %v", store, again.pulled.table())
		}
	}
}

func TestForeignMembersAreKeptAndTheDerivedOneIsNot(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	write(t, fs, []byte(`{"groupTopicMap":{"g":["t"]},"lmqOffsetTable":{"%LMQ%x@g":3},"offsetTable":{"t@g":{0:1,"7":2},"t@g@broadcast":{0:5}}}`))
	r := open(t, fs)
	if off, _ := r.Query("g", "t", 7); off != 2 {
		t.Errorf("%v", all(r))
	}
	if off, _ := r.Query("g@broadcast", "t", 0); off != 5 {
		t.Errorf("%v", all(r))
	}
	r.Commit("g", "t", 0, 2)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	b, err := fs.ReadFile(dir + "/consumerOffset.json")
	if err != nil || !strings.Contains(string(b), "lmqOffsetTable") || strings.Contains(string(b), "groupTopicMap") {
		t.Errorf("%s %v", b, err)
	}
	if err := r.DeleteGroup("g"); err != nil || len(all(r)) != 0 {
		t.Errorf("%v %v", err, all(r))
	}
}

// C01: nothing is answered from, and nothing saved over, a file that could not
// be read.
func TestC01NoRegisterWithoutItsFile(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{", `{"offsetTable":{"t@g":[1]}}`, `{"offsetTable":{"t@g":{"x":1}}}`} {
		fs := memfs.New(1)
		write(t, fs, []byte(content))
		if _, err := Open(fs, dir, DefaultConfig()); err == nil {
			t.Errorf("%q is read as progress", content)
		} else if _, ok := errors.AsType[*mq.CorruptionError](err); !ok {
			t.Errorf("%q: %v", content, err)
		}
		if b, err := fs.ReadFile(dir + "/consumerOffset.json"); err != nil || string(b) != content {
			t.Errorf("the evidence is gone: %q, %v", b, err)
		}
	}
}

// C19: a topic or group that is deleted and made again knows nothing of the
// progress of its namesake, also after a crash right behind the deletion.
func TestC19DeletionStartsANewGeneration(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	r := open(t, fs)
	for _, group := range []string{"g", "h"} {
		for _, topic := range []string{"t", "u"} {
			r.Commit(group, topic, 0, 400_000_000)
			r.CommitPull(group, topic, 0, 400_000_000)
		}
	}
	r.Reset("g", "t", 0, 5)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteTopic("t"); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteGroup("h"); err != nil {
		t.Fatal(err)
	}
	if off, found := r.TakeReset("g", "t", 0, 0); found {
		t.Errorf("a reset of the deleted topic is left: %d", off)
	}
	for name, r := range map[string]*Register{"at once": r, "after a crash": open(t, fs.Crash())} {
		if want := (Table{"u@g": {0: 400_000_000}}); !reflect.DeepEqual(all(r), want) {
			t.Errorf("%s: %v", name, all(r))
		}
		if _, found := r.QueryPull("g", "t", 0); found {
			t.Errorf("%s: what was read ahead is left", name)
		}
	}
}

// C19: a consumer that still counts from before the deletion cannot carry its
// progress into the new topic, so that lag is never negative.
func TestC19NoProgressBeyondTheEnd(t *testing.T) {
	t.Parallel()
	end := mq.QueueOffset(400_000_000)
	cfg := DefaultConfig()
	cfg.End = func(string, mq.QueueID) mq.QueueOffset { return end }
	r, err := Open(memfs.New(1), dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit("g", "t", 0, end); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteTopic("t"); err != nil {
		t.Fatal(err)
	}
	end = 10
	if err := r.Commit("g", "t", 0, 400_000_000); !errors.Is(err, mq.ErrIllegalOperation) {
		t.Errorf("%v", err)
	}
	if off, found := r.Query("g", "t", 0); found {
		t.Errorf("progress of the old topic: %d", off)
	}
	if err := r.Commit("g", "t", 0, 10); err != nil {
		t.Error(err)
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	r.Commit("g", "t", 0, 1)
	r.Commit("g", "t", 1, 20)
	r.Commit("g", "u", 0, 3)
	r.Commit("h", "t", 0, 4)
	r.Commit("h", "t", 1, 5)
	for _, c := range []struct{ got, want any }{
		{r.OfGroup("g"), Table{"t": {0: 1, 1: 20}, "u": {0: 3}}},
		{r.OfTopic("t"), Table{"g": {0: 1, 1: 20}, "h": {0: 4, 1: 5}}},
		{r.OfGroup("none"), Table{}},
		{r.Queues("g", "t"), queues{0: 1, 1: 20}},
		{r.Queues("g", "none"), queues(nil)},
		{r.Slowest("t", nil), queues{0: 1, 1: 5}},
		{r.Slowest("t", []string{"g"}), queues{0: 4, 1: 5}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if err := r.Clone("g", "c", "t"); err != nil {
		t.Fatal(err)
	}
	if got := r.OfGroup("c"); !reflect.DeepEqual(got, Table{"t": {0: 1, 1: 20}}) {
		t.Errorf("clone: %v", got)
	}
	if err := r.Clone("g", "d", ""); err != nil {
		t.Fatal(err)
	}
	if got := r.OfGroup("d"); len(got) != 2 {
		t.Errorf("clone of all: %v", got)
	}
	if err := r.Delete("d", "t"); err != nil {
		t.Fatal(err)
	}
	if got := r.OfGroup("d"); !reflect.DeepEqual(got, Table{"u": {0: 3}}) {
		t.Errorf("after delete: %v", got)
	}
}

// C08: a reset stands until a pull took it; consumers that do not know of it
// cannot commit over it.
func TestResetStandsUntilItIsTaken(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	r.Commit("g", "t", 0, 1000)
	r.Reset("g", "t", 0, 10)
	if off, found := r.Query("g", "t", 0); !found || off != 10 {
		t.Errorf("query after reset: %d %v", off, found)
	}
	if err := r.Commit("g", "t", 0, 1001); !errors.Is(err, mq.ErrIllegalOperation) {
		t.Errorf("a commit overran the reset: %v", err)
	}
	if err := r.Commit("g", "t", 1, 7); err != nil {
		t.Errorf("another queue waits, too: %v", err)
	}
	for range 2 { // the first pull may be that of a consumer that lost the queue
		if off, found := r.TakeReset("g", "t", 0, 1000); !found || off != 10 {
			t.Errorf("take: %d %v", off, found)
		}
		if err := r.Commit("g", "t", 0, 1001); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("a commit overran the reset that a pull was led to: %v", err)
		}
	}
	if _, found := r.TakeReset("g", "t", 0, 10); found {
		t.Error("who comes from there is led there")
	}
	if _, found := r.TakeReset("g", "t", 0, 1000); found {
		t.Error("taken twice")
	}
	if err := r.Commit("g", "t", 0, 11); err != nil {
		t.Errorf("commits are refused after the reset was taken: %v", err)
	}
}

// A consumer that does not go where it is led is let go after a while.
func TestResetEndsByItselfOncePullsWereLed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, memfs.New(1))
		r.Reset("g", "t", 0, 10)
		r.Reset("g", "t", 1, 10)
		time.Sleep(time.Hour)
		for q := range mq.QueueID(2) {
			if _, found := r.TakeReset("g", "t", q, 1000); !found {
				t.Error("no pull came for an hour, and the reset is gone")
			}
		}
		time.Sleep(resetGrace + time.Millisecond)
		if off, found := r.TakeReset("g", "t", 0, 1000); found {
			t.Errorf("still led to %d", off)
		}
		if err := r.Commit("g", "t", 1, 1000); err != nil {
			t.Errorf("commits are refused for good: %v", err)
		}
		if n := r.pending.Load(); n != 0 {
			t.Errorf("%d resets wait", n)
		}
	})
}

func TestSavesWhenChangedAndOnTheWayOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fs := memfs.New(1)
		r := open(t, fs)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx, func(err error) { t.Error(err) }) }()
		idle := fs.OpCount()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := fs.OpCount(); n != idle {
			t.Errorf("%d operations on the disk although nothing changed", n-idle)
		}
		r.Commit("g", "t", 0, 1)
		time.Sleep(DefaultConfig().Interval)
		synctest.Wait()
		if got := all(open(t, fs.Crash())); !reflect.DeepEqual(got, Table{"t@g": {0: 1}}) {
			t.Errorf("after the interval: %v", got)
		}
		r.Commit("g", "t", 0, 2)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := all(open(t, fs.Crash())); !reflect.DeepEqual(got, Table{"t@g": {0: 2}}) {
			t.Errorf("after the stop: %v", got)
		}
	})
}

func TestVersionStepsWithCommits(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	_, v := r.All()
	for i := range 499 {
		r.Commit("g", "t", 0, mq.QueueOffset(i))
	}
	if _, got := r.All(); got != v {
		t.Errorf("after 499 commits: %+v", got)
	}
	r.Commit("g", "t", 0, 499)
	if _, got := r.All(); got.Counter != v.Counter+1 {
		t.Errorf("after 500 commits: %+v", got)
	}
}

func TestPowerCutLeavesAWholeGeneration(t *testing.T) {
	t.Parallel()
	for cut := int64(1); ; cut++ {
		fs := memfs.New(uint64(cut))
		r := open(t, fs)
		fs.StopAfter(cut)
		saved := mq.QueueOffset(0)
		for i := mq.QueueOffset(1); i < 5; i++ {
			for q := range mq.QueueID(3) {
				r.Commit("g", "t", q, i)
			}
			if r.Save() != nil {
				break
			}
			saved = i
		}
		stopped := fs.Stopped()
		again := open(t, fs.Crash())
		first, _ := again.Query("g", "t", 0)
		for q := range mq.QueueID(3) {
			off, found := again.Query("g", "t", q)
			if saved > 0 && (!found || off < saved) || off != first {
				t.Fatalf("cut %d: queue %d is at %d (%v), saved was %d, queue 0 is at %d", cut, q, off, found, saved, first)
			}
		}
		if !stopped {
			return
		}
	}
}

func TestCommitsAndSavesAtOnce(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	r := open(t, fs)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				r.Commit(fmt.Sprintf("g%d", g), "t", mq.QueueID(i%7), mq.QueueOffset(i))
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if err := r.Save(); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(all(open(t, fs)), all(r)) {
		t.Error("the file is not what is in memory")
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	r := open(t, memfs.New(1))
	group, topic := string([]byte("g")), string([]byte("t"))
	r.Commit(group, topic, 0, 0)
	off := mq.QueueOffset(0)
	if n := testing.AllocsPerRun(1000, func() { off++; r.Commit(group, topic, 0, off); r.Query(group, topic, 0) }); n != 0 {
		t.Errorf("commit and query allocate %v times", n)
	}
}

// The strings of a commit may be views into a frame whose bytes are used again.
func TestNamesAreCopied(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	frame := []byte("gt")
	r.Commit(view(frame[:1]), view(frame[1:]), 0, 1)
	frame[0], frame[1] = 'x', 'y'
	if want := (Table{"t@g": {0: 1}}); !reflect.DeepEqual(all(r), want) {
		t.Errorf("%v", all(r))
	}
}

func BenchmarkCommit(b *testing.B) {
	r, err := Open(memfs.New(1), dir, DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	off := mq.QueueOffset(0)
	for b.Loop() {
		off++
		r.Commit("group", "topic", 3, off)
	}
}

// A million offsets: 10,000 pairs of a group and a topic with 100 queues.
func BenchmarkSaveMillion(b *testing.B) {
	r, err := Open(memfs.New(1), dir, DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	for p := range 10_000 {
		for q := range mq.QueueID(100) {
			r.Commit(fmt.Sprintf("group-%d", p%100), fmt.Sprintf("topic-%d", p/100), q, 123456789)
		}
	}
	off := mq.QueueOffset(0)
	for b.Loop() {
		off++
		r.Commit("group", "topic", 3, off)
		if err := r.Save(); err != nil {
			b.Fatal(err)
		}
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
	f.Add([]byte(`{"offsetTable":{"t":{"1":2},"@":null,"a@b@c":{"-1":-5}},"pullOffsetTable":null}`))
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
		if !reflect.DeepEqual(again.consumed.table(), d.consumed.table()) || again.version != d.version {
			t.Fatalf("written %v, read %v", d.consumed.table(), again.consumed.table())
		}
	})
}

func (t *pairs) table() Table {
	all := Table{}
	t.each(func(k key, p *progress) { all[k.join()] = p.copy() })
	return all
}
