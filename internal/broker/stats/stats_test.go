package stats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func open(t testing.TB, fs vfs.FS, change ...func(*Config)) *Register {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Location = time.UTC
	for _, c := range change {
		c(&cfg)
	}
	r, err := Open(fs, "/store/sundial", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs the register until the returned function is called.
func run(t testing.TB, r *Register) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx, func(err error) { t.Error(err) }) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (r *Register) mustStat(t testing.TB, name, key string) Stat {
	t.Helper()
	s, err := r.Stat(name, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sums are the sums of the windows, for short.
func sums(s Stat) string { return fmt.Sprint(s[Minute].Sum, s[Hour].Sum, s[Day].Sum) }

func TestWindowsSlide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, memfs.New(1))
		defer run(t, r)()
		q := r.Tally(mq.QueueKey{Topic: "T", ID: 3})
		q.Add(1, 100)
		q.Add(7, 700) // a batch
		q.Took(30 * time.Millisecond)
		synctest.Wait()
		if got := r.mustStat(t, "TOPIC_PUT_NUMS", "T"); sums(got) != "8 8 8" || got[Minute].Calls != 2 || got[Minute].Mean() != 4 || got[Minute].Rate != 0.8 {
			t.Errorf("at once: %+v", got)
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{49 * time.Second, "8 8 8"}, {12 * time.Second, "0 8 8"}, {48 * time.Minute, "0 8 8"}, {12 * time.Minute, "0 0 8"},
			{21 * time.Hour, "0 0 8"}, {2 * time.Hour, "0 0 0"},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			if got := sums(r.mustStat(t, "TOPIC_PUT_NUMS", "T")); got != step.want {
				t.Errorf("%v later: %s, want %s", step.after, got, step.want)
			}
		}
		// What comes now counts alone; also after the samples were dropped.
		for range 2 {
			q.Add(2, 10)
			if got := sums(r.mustStat(t, "TOPIC_PUT_NUMS", "T")); got != "2 2 2" {
				t.Errorf("two more: %s", got)
			}
			time.Sleep(26 * time.Hour)
			synctest.Wait()
			if got := sums(r.mustStat(t, "TOPIC_PUT_SIZE", "T")); got != "0 0 0" {
				t.Errorf("a day later: %s", got)
			}
		}
		if w := r.mu.topics["T"][3]; w.past != nil {
			t.Error("an idle queue keeps its samples")
		}
	})
}

func TestRatesAreOfTheWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, memfs.New(1))
		defer run(t, r)()
		q := r.Tally(mq.QueueKey{Topic: "T"})
		for range 3 * 3600 { // 5 a second
			q.Add(5, 5000)
			q.Took(2 * time.Millisecond)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		s := r.mustStat(t, "TOPIC_PUT_NUMS", "T")
		for w, n := range s {
			if n.Rate < 4.9 || n.Rate > 5.1 {
				t.Errorf("window %d: %v a second, want 5", w, n.Rate)
			}
		}
		if n := s[Minute].Sum; n < 50*5-5 || n > 60*5 {
			t.Errorf("%d in the last minute", n)
		}
		if n := s[Hour].Sum; n < 50*60*5-5 || n > 3600*5 {
			t.Errorf("%d in the last hour", n)
		}
		if s[Day].Sum != 3*3600*5 {
			t.Errorf("%d in the last day", s[Day].Sum)
		}
		if got := r.mustStat(t, "TOPIC_PUT_LATENCY", "0@T")[Hour].Mean(); got != 2 {
			t.Errorf("%v ms a send, want 2", got)
		}
	})
}

func TestEveryNameCountsWhatItSays(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	tally := func(topic string, queue mq.QueueID) *metric.Tally {
		return r.Tally(mq.QueueKey{Topic: topic, ID: queue})
	}
	tally("T", 0).Add(1, 10)
	tally("T", 1).Add(3, 30)
	tally("T", 1).Took(4 * time.Millisecond)
	tally(mq.TopicSchedule, 2).Add(1, 5)
	tally(mq.DLQTopic("g"), 0).Add(1, 7)
	r.Read(&Read{Topic: "T", Group: "g", Queue: 0, Messages: 1, Bytes: 10, Took: 2 * time.Millisecond, BehindBytes: 40, BehindMillis: 9})
	r.Read(&Read{Topic: "T", Group: "g", Queue: 1, Messages: 3, Bytes: 30})
	r.Read(&Read{Topic: "T", Group: "g", Queue: 1, Messages: 3, Bytes: 30})
	r.Read(&Read{Topic: "T", Group: "h", Queue: 1, Messages: 3, Bytes: 30})
	r.Read(&Read{Topic: mq.TopicSchedule, Group: "h", Messages: 1, Bytes: 5})
	r.Back("T", "g", false)
	r.Back("T", "g", true)
	want := map[string]string{ // sum/calls of the minute
		"TOPIC_PUT_NUMS T": "4/2", "TOPIC_PUT_SIZE T": "40/2", "TOPIC_PUT_LATENCY 1@T": "4/1",
		"QUEUE_PUT_NUMS T@1": "3/1", "QUEUE_PUT_SIZE T@0": "10/1", "DLQ_PUT_NUMS g": "1/1",
		"GROUP_GET_NUMS T@g": "7/3", "GROUP_GET_SIZE T@g": "70/3", "GROUP_GET_LATENCY 0@T@g": "2/1",
		"GROUP_GET_FALL_SIZE 0@T@g": "40/1", "GROUP_GET_FALL_TIME 0@T@g": "9/1", "QUEUE_GET_NUMS T@1@g": "6/2", "QUEUE_GET_SIZE T@1@g": "60/2",
		"SNDBCK_PUT_NUMS T@g": "2/2", "SNDBCK2DLQ_TIMES T@g": "1/1",
		"BROKER_PUT_NUMS c": "6/0", "BROKER_GET_NUMS c": "11/0",
		"BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC c": "5/0", "BROKER_GET_NUMS_WITHOUT_SYSTEM_TOPIC c": "10/0",
	}
	for nameAndKey, want := range want {
		name, key, _ := strings.Cut(nameAndKey, " ")
		n := r.mustStat(t, name, key)[Minute]
		if got := fmt.Sprintf("%d/%d", n.Sum, n.Calls); got != want {
			t.Errorf("%s: %s, want %s", nameAndKey, got, want)
		}
	}
	for _, name := range Names() {
		found := false
		for nameAndKey := range want {
			found = found || strings.HasPrefix(nameAndKey, name+" ")
		}
		if !found {
			t.Errorf("%s is not tried", name)
		}
	}
	for _, c := range []struct{ name, key, says string }{
		{"TOPIC_PUT_NUMS", "nothing", "<nothing>"}, {"TOPIC_PUT_NUMS", "T@g", "the key of TOPIC_PUT_NUMS is topic"},
		{"QUEUE_PUT_NUMS", "T@x", "T@x"}, {"GROUP_GET_LATENCY", "7@T@g", "7@T@g"}, {"GROUP_ACK_NUMS", "T@g", "POP"}, {"NONSENSE", "T", "TOPIC_PUT_NUMS"},
	} {
		if _, err := r.Stat(c.name, c.key); !errors.Is(err, mq.ErrSystem) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v; want a refusal that names %q", c.name, c.key, err, c.says)
		}
	}
	r.DeleteTopic("T")
	r.DeleteGroup("h")
	if _, err := r.Stat("TOPIC_PUT_NUMS", "T"); err == nil {
		t.Error("a deleted topic is there")
	}
	if n := r.count.Load(); n != 0 || r.mu.pairs != 0 {
		t.Errorf("%d readers and %d pairs are left", n, r.mu.pairs)
	}
}

// Today and yesterday, over midnights where the broker is, restarts and kills.
func TestDaysTurnAtMidnight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zone := time.FixedZone("east", 8*3600) // the test begins at midnight UTC, 8:00 there
		in := func(c *Config) { c.Location = zone }
		disk := memfs.New(1)
		r := open(t, disk, in)
		stop := run(t, r)
		put := func(n int64) { r.Tally(mq.QueueKey{Topic: "T"}).Add(n, n) }
		days := func(what string, today, yesterday int64) {
			t.Helper()
			synctest.Wait()
			if d := r.Days(); d.Put.Today() != today || d.Put.Yesterday() != yesterday {
				t.Errorf("%s: today %d, yesterday %d (%+v); want %d, %d", what, d.Put.Today(), d.Put.Yesterday(), d.Put, today, yesterday)
			}
		}
		put(5)
		r.Read(&Read{Topic: "T", Group: "g", Messages: 2})
		days("first day", 5, 0)
		time.Sleep(16*time.Hour - time.Millisecond)
		put(1)
		days("a moment before midnight", 6, 0)
		time.Sleep(time.Millisecond)
		days("midnight", 0, 6)
		put(10)
		days("the second day", 10, 6)
		if d := r.Days(); d.Get.Now != 2 || d.Get.Yesterday() != 2 || d.Get.Today() != 0 {
			t.Errorf("read: %+v", d.Get)
		}

		// A restart keeps all.
		stop()
		r = open(t, disk, in)
		stop = run(t, r)
		days("after a restart", 10, 6)
		put(1)
		days("after a restart", 11, 6)
		time.Sleep(time.Minute)

		// A kill costs what came since the last save.
		put(100)
		disk = disk.Crash()
		stop()
		r = open(t, disk, in)
		days("after a kill", 11, 6)

		// Down over midnight.
		time.Sleep(24 * time.Hour)
		r = open(t, disk, in)
		stop = run(t, r)
		days("down over midnight", 0, 11)
		put(3)
		stop()
		time.Sleep(72 * time.Hour)
		r = open(t, disk, in)
		days("down for three days", 0, 0)
		if d := r.Days(); d.Put.Now != 20 {
			t.Errorf("%d in all, want 20", d.Put.Now)
		}
	})
}

func TestAClockThatSteps(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		tm, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return tm
	}
	var c calendar
	for _, step := range []struct {
		now              string
		add              int64
		today, yesterday int64
	}{
		{"2026-03-01 12:00", 10, 10, 0},
		{"2026-03-02 00:00", 0, 0, 10},
		{"2026-03-02 00:01", 1, 1, 10},
		{"2026-03-01 23:58", 2, 3, 10}, // set back over midnight
		{"2026-03-02 00:00", 0, 3, 10}, // and there again
		{"2026-03-03 00:00", 0, 0, 3},
		{"2027-03-03 00:00", 4, 0, 0}, // a wrong year
		{"2027-03-03 00:10", 4, 4, 0},
		{"2026-03-03 00:20", 1, 5, 0}, // put right
		{"2026-03-04 00:00", 0, 0, 5},
	} {
		c.Put.Now += step.add
		c.turn(at(step.now))
		if c.Put.Today() != step.today || c.Put.Yesterday() != step.yesterday {
			t.Errorf("%s: %+v: today %d, yesterday %d, want %d, %d", step.now, c, c.Put.Today(), c.Put.Yesterday(), step.today, step.yesterday)
		}
		if c.sane() != c {
			t.Errorf("%s: %+v is not sane", step.now, c)
		}
	}
	// Midnight comes when it comes, also on the days of 23 and 25 hours.
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for day, want := range map[string]time.Duration{"2026-03-29": 23 * time.Hour, "2026-10-25": 25 * time.Hour, "2026-06-01": 24 * time.Hour} {
		d, _ := time.ParseInLocation("2006-01-02", day, zone)
		if got := untilMidnight(d); got != want {
			t.Errorf("%s has %v, want %v", day, got, want)
		}
	}
}

func TestDamagedNumbersAreNoReasonNotToStart(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	r := open(t, disk)
	r.Tally(mq.QueueKey{Topic: "T"}).Add(5, 5)
	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Create("/store/sundial/stats.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("rubbish"), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r = open(t, disk)
	if !strings.Contains(r.Loaded().String(), "damaged") || r.Days().Put.Now != 0 {
		t.Errorf("%q, %+v", r.Loaded(), r.Days())
	}
	for _, c := range []calendar{{Date: "x"}, {Date: "2026-01-01", Put: Count{1, 2, 0}}, {Date: "2026-01-01", Get: Count{3, 2, -1}}} {
		if c.sane() != (calendar{}) {
			t.Errorf("%+v was believed", c)
		}
	}
}

// Names from clients are bounded, the idle make room, and nothing is missing in
// the sum.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, memfs.New(1), func(c *Config) { c.MaxReaders, c.MaxPairs = 100, 30 })
		defer run(t, r)()
		read := func(group string, queue int) {
			r.Read(&Read{Topic: "T", Group: group, Queue: mq.QueueID(queue), Messages: 1})
		}
		for i := range 10_000 {
			read(fmt.Sprint("g", i), i%4)
			r.Back("T", fmt.Sprint("b", i), false)
		}
		read("g0", 1<<30)
		if n := r.count.Load(); n > 100 || r.mu.pairs > 30 {
			t.Errorf("%d readers, %d pairs", n, r.mu.pairs)
		}
		if got := r.mustStat(t, "BROKER_GET_NUMS", "c")[Minute].Sum; got != 10_001 {
			t.Errorf("%d read in all", got)
		}
		read("g0", 0)
		time.Sleep(50 * time.Minute)
		read("g0", 0)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		read("new", 2)
		if got := r.mustStat(t, "GROUP_GET_NUMS", "T@new")[Minute].Sum; got != 1 {
			t.Errorf("the idle made no room: %d", got)
		}
		if got := r.mustStat(t, "GROUP_GET_NUMS", "T@g0")[Day].Sum; got != 3 {
			t.Errorf("who was busy left: %d", got)
		}
		time.Sleep(27 * time.Hour)
		synctest.Wait()
		if n := r.count.Load(); n != 0 || r.mu.pairs != 0 {
			t.Errorf("%d readers and %d pairs after an idle day", n, r.mu.pairs)
		}
	})
}

// Nothing is lost or counted twice, whoever counts and looks meanwhile.
func TestManyCount(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1))
	const each, workers = 2000, 8
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			q := r.Tally(mq.QueueKey{Topic: "T", ID: mq.QueueID(n % 3)})
			for i := range each {
				q.Add(1, 10)
				r.Read(&Read{Topic: "T", Group: fmt.Sprint("g", n%2), Queue: mq.QueueID(i % 5), Messages: 1, Bytes: 10})
				if i%500 == 0 {
					r.Sample(time.Now())
					r.Days()
				}
			}
		})
	}
	wg.Wait()
	total := r.mustStat(t, "GROUP_GET_NUMS", "T@g0")[Day].Sum + r.mustStat(t, "GROUP_GET_NUMS", "T@g1")[Day].Sum
	if got := r.mustStat(t, "TOPIC_PUT_SIZE", "T")[Day].Sum; got != 10*each*workers || total != each*workers {
		t.Errorf("%d bytes stored, %d read", got, total)
	}
	if d := r.Days(); d.Put.Today() != each*workers || d.Get.Today() != each*workers {
		t.Errorf("%+v", d)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := open(t, memfs.New(1))
	q := r.Tally(mq.QueueKey{Topic: "T"})
	g := &Read{Topic: "T", Group: "g", Messages: 1, Bytes: 10}
	r.Read(g)
	if n := testing.AllocsPerRun(1000, func() { q.Add(1, 10); q.Took(1); r.Read(g) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cost of a message stored and of a pull that found something.
func BenchmarkCount(b *testing.B) {
	r := open(b, memfs.New(1))
	q := r.Tally(mq.QueueKey{Topic: "T"})
	var h metric.Latency
	b.Run("stored", func(b *testing.B) {
		for b.Loop() {
			q.Add(1, 1024)
		}
	})
	b.Run("sent", func(b *testing.B) {
		began := time.Now()
		for b.Loop() {
			q.Add(1, 1024)
			took := time.Since(began) & (1<<20 - 1) // a new maximum each time would be another matter
			h.Record(took)
			q.Took(took)
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Read(&Read{Topic: "T", Group: "g", Queue: 3, Messages: 32, Bytes: 32 << 10, Took: time.Millisecond})
		}
	})
}

// The cost of a sample, which Run takes every ten seconds.
func BenchmarkSample(b *testing.B) {
	r := open(b, memfs.New(1))
	for i := range 10_000 {
		topic := fmt.Sprint("T", i/8)
		r.Tally(mq.QueueKey{Topic: topic, ID: mq.QueueID(i % 8)}).Add(1, 1)
		r.Read(&Read{Topic: topic, Group: "g", Queue: mq.QueueID(i % 8), Messages: 1})
	}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(Step)
		r.Sample(now)
	}
}
