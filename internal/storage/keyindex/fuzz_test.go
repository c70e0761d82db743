package keyindex

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// FuzzOpen opens any bytes as an index file and asks them: no panic, no chain
// without end, and putting works.
func FuzzOpen(f *testing.F) {
	names, _ := filepath.Glob("testdata/rocketmq/*")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "indexed", "AaAa")
	}
	f.Add(make([]byte, 4200), "t", "k")
	f.Fuzz(func(t *testing.T, b []byte, topic, key string) {
		fsys := memfs.New(1)
		full := make([]byte, fileSize(rocketMQ))
		copy(full, b)
		write(t, fsys, "20261130194018782", full)
		x, err := Open(fsys, dir, rocketMQ, true)
		if err != nil {
			return
		}
		for _, max := range []int{1, 64, 1 << 30} {
			found, err := x.Query(topic, key, max, -1<<63, 1<<62)
			if err != nil || len(found) > max || len(found) > rocketMQ.Entries {
				t.Fatalf("%d found, %v", len(found), err)
			}
		}
		_ = x.Check()
		if err := x.Cut(x.End()); err != nil {
			t.Fatal(err)
		}
		if end := x.End(); end < 1<<62 && topic != "" && len(topic) < 100 {
			if err := x.Put(message(t, topic, end+1, 1, "id", "k")); err != nil {
				t.Fatal(err)
			}
			if got := query(t, x, topic, "id"); len(got) == 0 || got[0] != end+1 {
				t.Fatalf("put at %d, found %v", end+1, got)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzMark(f *testing.F) {
	f.Add(mark{name: "20261130194018782", next: 100, end: 5000, time: 1_700_000_000_000}.encode())
	f.Add([]byte(markMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMark(b)
		if err != nil {
			return
		}
		if again, err := decodeMark(m.encode()); err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}
