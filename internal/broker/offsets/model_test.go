package offsets

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func view(b []byte) string { return bin.String(b) }

// TestModel drives a register and a plain map through the same commands; a
// restart, clean or by a crash of the process after a save, is one of them.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fs := memfs.New(1)
		r, err := Open(fs, dir, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		model, saved := Table{}, Table{}
		resets := map[[2]string]map[mq.QueueID]mq.QueueOffset{}
		group := rapid.SampledFrom([]string{"g", "h", "g@broadcast"})
		topic := rapid.SampledFrom([]string{"t", "u", "%RETRY%g"})
		queue := rapid.Custom(func(t *rapid.T) mq.QueueID { return mq.QueueID(rapid.IntRange(0, 3).Draw(t, "q")) })
		offset := rapid.Custom(func(t *rapid.T) mq.QueueOffset { return mq.QueueOffset(rapid.IntRange(-1, 50).Draw(t, "off")) })
		set := func(g, tp string, q mq.QueueID, off mq.QueueOffset) {
			if model[tp+"@"+g] == nil {
				model[tp+"@"+g] = queues{}
			}
			model[tp+"@"+g][q] = off
		}
		drop := func(match func(topic, group string) bool) {
			for joined := range model {
				if k := split(joined); match(k.topic, k.group) {
					delete(model, joined)
				}
			}
			for k := range resets {
				if match(k[0], k[1]) {
					delete(resets, k)
				}
			}
			saved = clone(model)
		}
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				g, tp, q, off := group.Draw(t, "g"), topic.Draw(t, "t"), queue.Draw(t, "q"), offset.Draw(t, "off")
				to, waits := resets[[2]string{tp, g}][q]
				want := off >= 0 && (!waits || off == to)
				if err := r.Commit(g, tp, q, off); (err == nil) != want {
					t.Fatalf("commit says %v, want it taken: %v", err, want)
				}
				if want {
					set(g, tp, q, off)
				}
			},
			"reset": func(t *rapid.T) {
				g, tp, q, off := group.Draw(t, "g"), topic.Draw(t, "t"), queue.Draw(t, "q"), max(0, offset.Draw(t, "off"))
				r.Reset(g, tp, q, off)
				set(g, tp, q, off)
				k := [2]string{tp, g}
				if resets[k] == nil {
					resets[k] = queues{}
				}
				resets[k][q] = off
			},
			"take": func(t *rapid.T) {
				g, tp, q := group.Draw(t, "g"), topic.Draw(t, "t"), queue.Draw(t, "q")
				from := max(0, offset.Draw(t, "from"))
				want, waits := resets[[2]string{tp, g}][q]
				if got, found := r.WaitingReset(g, tp, q); found != waits || found && got != want {
					t.Fatalf("waiting says %d %v, want %d %v", got, found, want, waits)
				}
				if got, found := r.TakeReset(g, tp, q, from); found != (waits && want != from) || found && got != want {
					t.Fatalf("take from %d says %d %v, want %d %v", from, got, found, want, waits)
				}
				if want == from {
					delete(resets[[2]string{tp, g}], q)
				}
			},
			"query": func(t *rapid.T) {
				g, tp, q := group.Draw(t, "g"), topic.Draw(t, "t"), queue.Draw(t, "q")
				want, known := model[tp+"@"+g][q]
				if got, found := r.Query(g, tp, q); found != known || found && got != want {
					t.Fatalf("query says %d %v, want %d %v", got, found, want, known)
				}
			},
			"deleteTopic": func(t *rapid.T) {
				tp := topic.Draw(t, "t")
				if err := r.DeleteTopic(tp); err != nil {
					t.Fatal(err)
				}
				drop(func(topic, _ string) bool { return topic == tp })
			},
			"deleteGroup": func(t *rapid.T) {
				g := group.Draw(t, "g")
				if err := r.DeleteGroup(g); err != nil {
					t.Fatal(err)
				}
				drop(func(_, group string) bool { return group == g || group == g+"@broadcast" })
			},
			"save": func(t *rapid.T) {
				if err := r.Save(); err != nil {
					t.Fatal(err)
				}
				saved = clone(model)
			},
			"crash": func(t *rapid.T) {
				fs = fs.Crash()
				if r, err = Open(fs, dir, DefaultConfig()); err != nil {
					t.Fatal(err)
				}
				model, resets = clone(saved), map[[2]string]map[mq.QueueID]mq.QueueOffset{}
			},
			"": func(t *rapid.T) {
				if got, _ := r.All(); !reflect.DeepEqual(got, model) {
					t.Fatalf("the register has %v, the model %v", got, model)
				}
			},
		})
	})
}

func clone(t Table) Table {
	c := Table{}
	for k, q := range t {
		c[k] = queues{}
		for id, off := range q {
			c[k][id] = off
		}
	}
	return c
}
