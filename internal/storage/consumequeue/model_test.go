package consumequeue

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
	"pgregory.net/rapid"
)

// model is one queue as it should be. The log it indexes is rows: row i is the
// entry of message start+i.
type model struct {
	q     *Queue
	key   mq.QueueKey
	start int
	rows  []Entry
	min   int // number of the oldest entry that may be read
}

func (m *model) max() int { return m.start + len(m.rows) }

// covers counts the entries of records that end at or below pos.
func (m *model) covers(pos mq.LogOffset) int {
	n := 0
	for n < len(m.rows) && m.rows[n].End() <= pos {
		n++
	}
	return n
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		perFile := rapid.SampledFrom([]int64{8, 1024}).Draw(r, "entries per file")
		cfg := Config{FileSize: perFile * EntrySize, OpenFiles: 16}
		disk := memfs.New(rapid.Uint64().Draw(r, "seed"))
		set, err := OpenSet(disk, root, cfg)
		if err != nil {
			r.Fatal(err)
		}
		queues := []*model{{key: mq.QueueKey{Topic: "T", ID: 0}}, {key: mq.QueueKey{Topic: "T", ID: 1}}, {key: mq.QueueKey{Topic: "U", ID: 7}}}
		for _, m := range queues {
			m.start = rapid.SampledFrom([]int{0, 0, 5, 8, 1000}).Draw(r, "start")
			m.min = m.start
			m.q = set.GetOrCreate(m.key)
		}
		// The log ends at log, is durable up to durable, and begins at first; queues
		// are flushed and synced up to there at least.
		var log, durable, first, flushed, synced mq.LogOffset

		ends := []mq.LogOffset{0} // where records end
		boundary := func(r *rapid.T, lo, hi mq.LogOffset) mq.LogOffset {
			i, _ := slices.BinarySearch(ends, lo)
			j, _ := slices.BinarySearch(ends, hi+1)
			return ends[rapid.IntRange(i, j-1).Draw(r, "at record")]
		}

		// reopen opens disk again, compares, and follows the log as recovery does.
		reopen := func(covered, atLeast mq.LogOffset) {
			cfg.Covered = covered
			if set, err = OpenSet(disk, root, cfg); err != nil {
				r.Fatal(err)
			}
			if err := set.RaiseMin(first); err != nil {
				r.Fatal(err)
			}
			for _, m := range queues {
				m.q = set.GetOrCreate(m.key)
				have := int(m.q.Max()) - m.start
				if least := m.covers(atLeast); have < least && len(m.rows) > 0 && least > m.min-m.start {
					r.Fatalf("%v: %d entries survived, want at least %d", m.key, have, least)
				}
				if have > len(m.rows) {
					r.Fatalf("%v: %d entries came back, there were %d", m.key, have, len(m.rows))
				}
				if have > 0 && m.start+have-1 >= int(m.q.Min()) {
					if err := m.q.Confirm(mq.QueueOffset(m.start+have-1), m.rows[have-1]); err != nil {
						r.Fatal(err)
					}
				}
				for i := max(0, have); i < len(m.rows); i++ {
					if m.rows[i].Pos < first && m.start+i < m.min && have <= 0 {
						continue // its record has expired, and the queue holds nothing: it begins later
					}
					if err := m.q.Append(mq.QueueOffset(m.start+i), m.rows[i]); err != nil {
						r.Fatal(err)
					}
				}
			}
			if err := set.RaiseMin(first); err != nil {
				r.Fatal(err)
			}
		}

		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				n := rapid.SampledFrom([]int{1, 3, 9, 700}).Draw(r, "how many")
				rnd := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(r, "messages")))
				for range n {
					m := queues[rnd.IntN(len(queues))]
					e := Entry{Pos: log, Size: 1 + rnd.Int32N(9), TagsCode: int64(log) * 3}
					if err := m.q.Append(mq.QueueOffset(m.max()), e); err != nil {
						r.Fatal(err)
					}
					m.rows = append(m.rows, e)
					log = e.End()
					ends = append(ends, log)
				}
			},
			"flush": func(r *rapid.T) {
				flushed = boundary(r, flushed, log)
				durable = max(durable, flushed)
				if err := set.Flush(flushed); err != nil {
					r.Fatal(err)
				}
			},
			"sync": func(r *rapid.T) {
				if err := set.Sync(); err != nil {
					r.Fatal(err)
				}
				synced = flushed
			},
			"expire": func(r *rapid.T) {
				if flushed >= first {
					first = boundary(r, first, flushed)
				}
				if err := set.RaiseMin(first); err != nil {
					r.Fatal(err)
				}
			},
			"cut": func(r *rapid.T) {
				log = boundary(r, max(first, durable), log)
				i, _ := slices.BinarySearch(ends, log)
				ends = ends[:i+1]
				if err := set.TruncateAt(log); err != nil {
					r.Fatal(err)
				}
				for _, m := range queues {
					m.rows = m.rows[:m.covers(log)]
				}
				flushed, synced = min(flushed, log), min(synced, log)
			},
			"stop": func(r *rapid.T) {
				flushed, durable = log, log
				for _, step := range []func() error{func() error { return set.Flush(flushed) }, set.Sync, set.Close} {
					if err := step(); err != nil {
						r.Fatal(err)
					}
				}
				synced = flushed
				reopen(math.MaxInt64, log)
			},
			"kill": func(r *rapid.T) {
				disk = disk.KillClone()
				reopen(rapid.SampledFrom([]mq.LogOffset{0, synced}).Draw(r, "covered"), flushed)
			},
			"power cut": func(r *rapid.T) {
				disk = disk.Crash()
				flushed = synced
				reopen(rapid.SampledFrom([]mq.LogOffset{0, synced}).Draw(r, "covered"), synced)
			},
			"": func(r *rapid.T) {
				for _, m := range queues {
					for m.min < m.max() && m.rows[m.min-m.start].Pos < first {
						m.min++
					}
					if int(m.q.Max()) != m.max() && len(m.rows) > 0 && m.min < m.max() {
						r.Fatalf("%v: ends at %d, want %d", m.key, m.q.Max(), m.max())
					}
					if len(m.rows) == 0 || m.min == m.max() {
						continue
					}
					if int(m.q.Min()) != m.min {
						r.Fatalf("%v: begins at %d, want %d (log at %d)", m.key, m.q.Min(), m.min, first)
					}
					from := rapid.IntRange(m.min, m.max()-1).Draw(r, "from")
					buf := make([]Entry, rapid.IntRange(1, 2000).Draw(r, "count"))
					n, err := m.q.Read(mq.QueueOffset(from), buf)
					if err != nil || n != min(len(buf), m.max()-from) {
						r.Fatalf("%v: read %d from %d: %d, %v", m.key, len(buf), from, n, err)
					}
					for i, e := range buf[:n] {
						if want := m.rows[from-m.start+i]; e != want {
							r.Fatalf("%v: entry %d is %+v, want %+v", m.key, from+i, e, want)
						}
					}
				}
				if err := set.Check(); err != nil {
					r.Fatal(err)
				}
			},
		})
	})
}
