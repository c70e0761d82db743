package memfs

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The model: files with a live and a durable content, names with a live and a
// durable file. Keeping all must give the live disk, keeping nothing the durable
// one, and any other crash pages and entries that are one or the other.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type content struct{ live, durable []byte }
		d := New(rapid.Uint64().Draw(t, "seed"))
		live, durable := map[string]*content{}, map[string]*content{}
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		picture := func(of map[string]*content, which func(*content) []byte) (lines []string) {
			for _, name := range slices.Sorted(maps.Keys(of)) {
				lines = append(lines, fmt.Sprintf("%s=%s", name, bytes.TrimRight(which(of[name]), "\x00")))
			}
			return lines
		}
		fill := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				name := names.Draw(t, "name")
				f, err := d.Create(name)
				must(t, err)
				must(t, f.Close())
				if live[name] == nil {
					live[name] = new(content)
				}
				live[name].live = nil
			},
			"write": func(t *rapid.T) {
				name := names.Draw(t, "name")
				c := live[name]
				if c == nil {
					t.Skip()
				}
				off, n := rapid.IntRange(0, 3*pageSize).Draw(t, "off"), rapid.IntRange(1, 2*pageSize).Draw(t, "n")
				fill = fill%26 + 1
				f, err := d.Open(name)
				must(t, err)
				if off+n > len(c.live) {
					c.live = append(c.live, make([]byte, off+n-len(c.live))...)
				}
				b := bytes.Repeat([]byte{'a' + fill - 1}, n)
				copy(c.live[off:], b)
				if off+n <= len(c.live) && rapid.Bool().Draw(t, "by mapping") {
					must(t, f.Allocate(int64(off+n)))
					m, err := f.Map(int64(off+n), true)
					must(t, err)
					copy(m.Bytes()[off:], b)
					must(t, m.Unmap())
				} else {
					_, err = f.WriteAt(b, int64(off))
					must(t, err)
				}
				must(t, f.Close())
			},
			"truncate": func(t *rapid.T) {
				name := names.Draw(t, "name")
				c := live[name]
				if c == nil {
					t.Skip()
				}
				size := rapid.IntRange(0, 4*pageSize).Draw(t, "size")
				f, err := d.Open(name)
				must(t, err)
				must(t, f.Truncate(int64(size)))
				c.live = append(bytes.Clone(c.live), make([]byte, max(size-len(c.live), 0))...)[:size]
			},
			"sync": func(t *rapid.T) {
				name := names.Draw(t, "name")
				c := live[name]
				if c == nil {
					t.Skip()
				}
				f, err := d.Open(name)
				must(t, err)
				must(t, f.Sync())
				c.durable = bytes.Clone(c.live)
			},
			"rename": func(t *rapid.T) {
				from, to := names.Draw(t, "from"), names.Draw(t, "to")
				if live[from] == nil || from == to {
					t.Skip()
				}
				must(t, d.Rename(from, to))
				live[to] = live[from]
				delete(live, from)
			},
			"remove": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if live[name] == nil {
					t.Skip()
				}
				must(t, d.Remove(name))
				delete(live, name)
			},
			"sync the directory": func(t *rapid.T) {
				must(t, d.SyncDir("/"))
				durable = maps.Clone(live)
			},
			"be killed": func(t *rapid.T) { d = d.KillClone() },
			"": func(t *rapid.T) {
				liveNow := picture(live, func(c *content) []byte { return c.live })
				check := func(what string, got *FS, want []string) {
					if lines := tree(got, ""); !slices.Equal(lines, want) {
						t.Fatalf("%s holds %s, want %s", what, short(lines), short(want))
					}
				}
				check("the disk", d, liveNow)
				check("a crash that keeps all", d.CrashKeeping(1), liveNow)
				check("a crash that keeps nothing", d.CrashKeeping(0), picture(durable, func(c *content) []byte { return c.durable }))
				crashed := d.Crash()
				check("a second crash", crashed.Crash(), tree(crashed, ""))
			},
		})
	})
}

func short(lines []string) string {
	var out []string
	for _, l := range lines {
		if len(l) > 30 {
			l = fmt.Sprintf("%s…(%d)", l[:30], len(l))
		}
		out = append(out, l)
	}
	return strings.Join(out, " ")
}
