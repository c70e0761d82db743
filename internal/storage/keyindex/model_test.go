package keyindex

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// model is a log and what an index of it must answer.
type model struct {
	log      []record.View // every record
	at       []mq.LogOffset
	stored   []int64
	keys     [][]string // with the topic before them
	followed int        // that Put has had
	begin    mq.LogOffset
}

// hashed are all messages of which a key has the hash of topic#key, newest first.
func (m *model) hashed(topic, key string) (all []int) {
	h := keyHash(topic, key)
	for i := m.followed - 1; i >= 0; i-- {
		if slices.ContainsFunc(m.keys[i], func(k string) bool { return max(mq.JavaHash(k), -mq.JavaHash(k)) == h }) {
			all = append(all, i)
		}
	}
	return all
}

// TestModel runs random messages, queries, stops of both kinds, expiry and
// replays against a plain list.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Slots: rapid.IntRange(1, 5).Draw(rt, "slots"), Entries: rapid.IntRange(2, 9).Draw(rt, "entries")}
		fsys := memfs.New(rapid.Uint64().Draw(rt, "seed"))
		if err := errors.Join(fsys.MkdirAll("store"), fsys.SyncDir(".")); err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "with marks") {
			cfg.Mark = "store/mark"
		}
		x := open(t, fsys, cfg, true)
		m := &model{}
		topics, keys := rapid.SampledFrom([]string{"t", "u"}), rapid.SampledFrom([]string{"AaAa", "BBBB", "AaBB", "k", "键", "😀"})
		now := int64(1_700_000_000_000)
		follow := func() {
			end := x.End()
			for i, v := range m.log {
				if m.at[i] < end || m.at[i] < m.begin {
					continue
				}
				put(t, x, v)
			}
			m.followed = len(m.log)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"store": func(rt *rapid.T) {
				n := len(m.log)
				now += rapid.Int64Range(0, 3000).Draw(rt, "millis")
				at := mq.LogOffset(n*50 + rapid.IntRange(0, 49).Draw(rt, "at"))
				topic, uniq := topics.Draw(rt, "topic"), fmt.Sprintf("id-%d", n)
				more := rapid.SliceOfN(keys, 0, 3).Draw(rt, "keys")
				all := []string{topic + "#" + uniq}
				joined := ""
				for _, k := range more {
					all = append(all, topic+"#"+k)
					joined += k + " "
				}
				v := message(t, topic, at, now, uniq, joined)
				m.log, m.at, m.stored, m.keys = append(m.log, v), append(m.at, at), append(m.stored, now), append(m.keys, all)
			},
			"follow": func(*rapid.T) { follow() },
			"query": func(rt *rapid.T) {
				topic, key, most := topics.Draw(rt, "topic"), keys.Draw(rt, "key"), rapid.IntRange(0, 6).Draw(rt, "max")
				begin := now - rapid.Int64Range(0, 20_000).Draw(rt, "begin")
				end := begin + rapid.Int64Range(0, 20_000).Draw(rt, "millis")
				found, err := x.Query(topic, key, most, begin, end)
				if err != nil {
					rt.Fatal(err)
				}
				if len(found) > most {
					rt.Fatalf("%d found of at most %d", len(found), most)
				}
				all := m.hashed(topic, key)
				for i, at := range found {
					j := slices.Index(m.at, at)
					if !slices.Contains(all, j) || m.stored[j] < begin-999 || m.stored[j] > end+999 {
						rt.Fatalf("%s#%s in [%d, %d]: %d found, which does not belong", topic, key, begin, end, at)
					}
					if i > 0 && at >= found[i-1] {
						rt.Fatalf("not newest first: %v", found)
					}
				}
				if len(found) == most {
					return
				}
				for _, j := range all {
					if m.at[j] >= m.begin && begin <= m.stored[j] && m.stored[j] <= end && !slices.Contains(found, m.at[j]) {
						rt.Fatalf("%s#%s in [%d, %d]: %d is missing in %v", topic, key, begin, end, m.at[j], found)
					}
				}
			},
			"stop and start": func(*rapid.T) {
				closed(t, x)
				x = open(t, fsys, cfg, true)
			},
			"mark": func(rt *rapid.T) {
				if err := x.Mark(); err != nil {
					rt.Fatal(err)
				}
			},
			"cut": func(rt *rapid.T) {
				if m.followed == 0 {
					return
				}
				if err := x.Cut(m.at[rapid.IntRange(0, m.followed-1).Draw(rt, "at")]); err != nil {
					rt.Fatal(err)
				}
				follow() // no record was lost
			},
			"kill and start": func(*rapid.T) {
				fsys = fsys.KillClone()
				x = open(t, fsys, cfg, false)
				follow()
			},
			"lose power and start": func(*rapid.T) {
				fsys = fsys.Crash()
				x = open(t, fsys, cfg, false)
				follow()
			},
			"expire": func(rt *rapid.T) {
				if len(m.log) == 0 {
					return
				}
				m.begin = max(m.begin, m.at[rapid.IntRange(0, len(m.log)-1).Draw(rt, "first")])
				if _, err := x.Expire(m.begin); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				if err := x.Check(); err != nil {
					rt.Fatal(err)
				}
			},
		})
		closed(t, x)
	})
}
