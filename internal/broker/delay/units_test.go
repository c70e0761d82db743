package delay

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"pgregory.net/rapid"
)

func TestLevelTable(t *testing.T) {
	t.Parallel()
	l, err := ParseLevels(DefaultLevels)
	if err != nil || l.Count() != 18 || l.Millis(1) != 1000 || l.Millis(5) != 60_000 || l.Millis(18) != 7_200_000 {
		t.Errorf("default table: %+v, %v", l, err)
	}
	l, err = ParseLevels("  1s \t 5m   2h 3d ")
	if err != nil || !slices.Equal(l.millis, []int64{1000, 300_000, 7_200_000, 259_200_000}) {
		t.Errorf("table with many blanks: %+v, %v", l, err)
	}
	for text, want := range map[string]string{
		"":                      "0 entries",
		"   ":                   "0 entries",
		"1s 5":                  `entry 2, "5" at character 4`,
		"1s 100ms":              `entry 2, "100ms" at character 4: want a whole number before the unit s`,
		"1.5h":                  `entry 1, "1.5h" at character 1`,
		"1s -1s":                `entry 2, "-1s"`,
		"1s,5s":                 `entry 1, "1s,5s"`,
		"1w":                    "want a number with a unit s, m, h or d",
		"9223372036854775807d":  "longer than this broker can count",
		"99999999999999999999s": "want a whole number",
		"s":                     "want a whole number",
	} {
		if _, err := ParseLevels(text); !errors.Is(err, mq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func properties(pairs ...string) []byte {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = record.AppendProperty(b, pairs[i], pairs[i+1])
	}
	return b
}

func TestRetarget(t *testing.T) {
	t.Parallel()
	l, _ := ParseLevels("1s 5s 10s")
	for _, c := range []struct {
		name  string
		props []byte
		flag  mq.SysFlag
		queue mq.QueueID // in the schedule topic; -1: left as it is
		want  []byte
	}{
		{"a level", properties("KEYS", "k", "DELAY", "2"), 0, 1,
			properties("KEYS", "k", "DELAY", "2", "REAL_TOPIC", "T", "REAL_QID", "4", "SUNDIAL_DELAY_MS", "5000")},
		{"above the last is the last", properties("DELAY", "99"), 0, 2,
			properties("DELAY", "3", "REAL_TOPIC", "T", "REAL_QID", "4", "SUNDIAL_DELAY_MS", "10000")},
		{"the level wins over timer properties", properties("TIMER_DELIVER_MS", "1", "TIMER_DELAY_SEC", "2", "TIMER_DELAY_MS", "3", "DELAY", "1"), 0, 0,
			properties("DELAY", "1", "REAL_TOPIC", "T", "REAL_QID", "4", "SUNDIAL_DELAY_MS", "1000")},
		{"level 0", properties("DELAY", "0"), 0, -1, properties("DELAY", "0")},
		{"level -1", properties("DELAY", "-1"), 0, -1, properties("DELAY", "-1")},
		{"no level", properties("KEYS", "k"), 0, -1, properties("KEYS", "k")},
		{"half message", properties("DELAY", "1"), mq.SysTxPrepared, -1, properties("DELAY", "1")},
		{"committed message", properties("DELAY", "1"), mq.SysTxCommit, 0,
			properties("DELAY", "1", "REAL_TOPIC", "T", "REAL_QID", "4", "SUNDIAL_DELAY_MS", "1000")},
	} {
		m := &record.Message{Topic: "T", QueueID: 4, Properties: slices.Clone(c.props), SysFlag: c.flag}
		given := m.Properties
		if err := l.Retarget(m); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		topic, queue := mq.TopicSchedule, c.queue
		if c.queue < 0 {
			topic, queue = "T", 4
		}
		if m.Topic != topic || m.QueueID != queue || string(m.Properties) != string(c.want) {
			t.Errorf("%s: %s/%d %q, want %s/%d %q", c.name, m.Topic, m.QueueID, m.Properties, topic, queue, c.want)
		}
		if string(given) != string(c.props) {
			t.Errorf("%s: the caller's properties were changed", c.name)
		}
	}
	for _, bad := range [][]byte{properties("DELAY", "soon"), properties("DELAY", "1", "X", strings.Repeat("x", record.MaxProperties-30))} {
		m := &record.Message{Topic: "T", Properties: bad}
		if err := l.Retarget(m); !errors.Is(err, mq.ErrIllegalMessage) || m.Topic != "T" {
			t.Errorf("%.40q: %v, topic %s", bad, err, m.Topic)
		}
	}
}

func TestTagsCode(t *testing.T) {
	t.Parallel()
	l, _ := ParseLevels("1s 5s")
	for _, c := range []struct {
		topic string
		props []byte
		want  int64
	}{
		{"T", properties("TAGS", "TagA", "DELAY", "1"), 2598919},
		{"T", properties("DELAY", "1"), 0},
		{mq.TopicSchedule, properties("DELAY", "1", "SUNDIAL_DELAY_MS", "77"), 1_000_077},
		{mq.TopicSchedule, properties("DELAY", "2", "TAGS", "TagA"), 1_005_000},
		{mq.TopicSchedule, properties("DELAY", "18"), 1_005_000},
		{mq.TopicSchedule, properties("DELAY", "0"), 1_001_000},
		{mq.TopicSchedule, properties("DELAY", "x"), 1_001_000},
		{mq.TopicSchedule, nil, 1_001_000},
		{mq.TopicSchedule, properties("DELAY", "1", "SUNDIAL_DELAY_MS", "-1"), 1_001_000},
		{mq.TopicSchedule, properties("DELAY", "1", "SUNDIAL_DELAY_MS", "9223372036854775807"), 1_001_000},
	} {
		if got := l.TagsCode(c.topic, c.props, 1_000_000); got != c.want {
			t.Errorf("%s %q: %d, want %d", c.topic, c.props, got, c.want)
		}
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	props := record.AppendReceipt(nil, receiptOf("store", mq.QueueKey{Topic: mq.TopicSchedule, ID: 17}, math.MaxInt64, 5))
	value, _ := record.Property(props, mq.PropReceipt)
	want := record.Receipt{Store: "store", Queue: mq.QueueKey{Topic: mq.TopicSchedule, ID: 17}, Offset: math.MaxInt64}
	if r, ok := record.ParseReceipt(string(value)); !ok || r != want {
		t.Errorf("%q is read as %+v, %v", value, r, ok)
	}
	if n := len(record.AppendReceipt(nil, receiptOf(strings.Repeat("s", 36), mq.QueueKey{Topic: mq.TopicSchedule, ID: math.MaxInt32}, math.MaxInt64, 0))); n > receiptRoom {
		t.Errorf("a receipt takes %d bytes, room is left for %d", n, receiptRoom)
	}
}

func FuzzParseReceipt(f *testing.F) {
	f.Add("a SCHEDULE_TOPIC_XXXX 1 2")
	f.Add("  1 2")
	f.Add("a b -1 2")
	f.Add("a b 1 99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := record.ParseReceipt(text)
		if ok && (r.Offset < 0 || r.Queue.ID < 0 || r.Store == "" || r.Queue.Topic == "") {
			t.Errorf("%q is read as %+v", text, r)
		}
	})
}

func FuzzParseLevels(f *testing.F) {
	f.Add(DefaultLevels)
	f.Add(" 1s  5x")
	f.Add("9223372036854775807s")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLevels(text)
		if err != nil {
			return
		}
		for level := range l.Count() {
			if l.Millis(mq.DelayLevel(level+1)) < 0 {
				t.Errorf("%q: level %d is negative", text, level+1)
			}
		}
	})
}

func TestSpansModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var s spans
		var done [64]bool
		low := func() int64 {
			for i, d := range done {
				if !d {
					return int64(i)
				}
			}
			return int64(len(done))
		}
		r.Repeat(map[string]func(*rapid.T){
			"add": func(r *rapid.T) {
				lo := rapid.Int64Range(0, 62).Draw(r, "lo")
				hi := min(lo+rapid.Int64Range(0, 9).Draw(r, "len"), 63)
				added := int64(0)
				for i := lo; i < hi; i++ {
					if !done[i] {
						added++
					}
					done[i] = true
				}
				if got := s.add(lo, hi); got != added {
					r.Fatalf("add(%d, %d) = %d, want %d", lo, hi, got, added)
				}
			},
			"clip": func(r *rapid.T) {
				lo := rapid.Int64Range(0, 10).Draw(r, "lo")
				hi := rapid.Int64Range(20, 63).Draw(r, "hi")
				s.clip(lo, hi)
				for i := range done {
					done[i] = int64(i) < hi && (done[i] || int64(i) < lo)
				}
			},
			"save and load": func(*rapid.T) { s = stateOf(s).spans() },
			"": func(r *rapid.T) {
				if s.low != low() {
					r.Fatalf("low is %d, want %d: %+v", s.low, low(), s)
				}
				n, next := int64(0), int64(len(done))
				for i := int64(len(done)) - 1; i >= 0; i-- {
					if !done[i] {
						next = i
					}
					if s.has(i) != done[i] {
						r.Fatalf("has(%d) is %v: %+v", i, s.has(i), s)
					}
					if got := s.next(i); got != next {
						r.Fatalf("next(%d) is %d, want %d: %+v", i, got, next, s)
					}
					if done[i] && i >= s.low {
						n++
					}
				}
				if s.count() != n {
					r.Fatalf("count is %d, want %d: %+v", s.count(), n, s)
				}
				for i, d := range s.done {
					if d.lo >= d.hi || d.lo <= s.low || i > 0 && d.lo <= s.done[i-1].hi {
						r.Fatalf("not apart: %+v", s)
					}
				}
			},
		})
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	var r rate
	for ms := int64(0); ms < 20_000; ms += 100 {
		r.add(1_700_000_000_000+ms, 5)
	}
	if got := r.perSecond(1_700_000_020_000); got != 50 {
		t.Errorf("%v a second, want 50", got)
	}
	if got := r.perSecond(1_700_000_025_000); got != 25 {
		t.Errorf("%v a second five seconds later, want 25", got)
	}
	if got := r.perSecond(1_800_000_000_000); got != 0 {
		t.Errorf("%v a second long after", got)
	}
	r.add(1_600_000_000_000, 1) // the clock was set back
}

func TestConfigComplaints(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	err := Config{}.Validate()
	for _, want := range []string{"messageDelayLevel", "flushDelayOffsetInterval", "window", "parked", "pauses"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("complaints do not name %s: %v", want, err)
		}
	}
}

// partly is a store that is durable up to some position.
type partly struct {
	Store
	durable mq.LogOffset
}

func (s *partly) ID() string                        { return "id" }
func (s *partly) Deleted(string, mq.LogOffset) bool { return false }
func (s *partly) Durable() mq.LogOffset             { return s.durable }

// Deliveries in a row share an entry of the list. When only some of them are
// durable, the receipts of those must still be read at the next start.
func TestCheckpointStopsShortOfDeliveriesItDoesNotCount(t *testing.T) {
	t.Parallel()
	store := &partly{}
	f := &Flow{store: store}
	f.mu.lanes, f.mu.streams = map[mq.QueueID]*lane{}, map[int32]*stream{}
	l := f.newLane(0)
	for i := range int64(10) {
		f.put.last = mq.LogOffset(i+1) * 100
		f.hand(l, i, i+1, mq.LogOffset(i)*100)
	}
	for durable := range mq.LogOffset(1001) {
		store.durable = durable
		c := f.snapshot()
		counted := mq.LogOffset(c.Queues[0].Low) * 100
		if c.Log > counted || counted > durable {
			t.Fatalf("durable to %d: receipts are read from %d on, deliveries to %d are counted", durable, c.Log, counted)
		}
		if durable == 1000 && (c.Log != 1000 || counted != 1000) {
			t.Fatalf("all durable: receipts are read from %d on, deliveries to %d are counted", c.Log, counted)
		}
	}
}
