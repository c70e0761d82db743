package segment

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const size = 4096

func config() Config {
	return Config{Dirs: []string{"/a"}, FileSize: size, FileSizeKey: "sizeKey", ForceAfter: time.Minute}
}

func put(t *testing.T, disk vfs.FS, path string, content []byte) {
	t.Helper()
	f, err := disk.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 0 {
		_, err = f.WriteAt(content, 0)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatACrashLeavesAtTheEndIsRemovedAndDamageIsNot(t *testing.T) {
	t.Parallel()
	full, zeros, text := make([]byte, size), make([]byte, 100), []byte("something")
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  int    // files afterwards
		err   string // or why it is refused
	}{
		{"nothing", nil, 0, ""},
		{"whole files", map[string][]byte{name(0): full, name(size): full}, 2, ""},
		{"a run that begins later", map[string][]byte{name(size * 7): full, name(size * 8): full}, 2, ""},
		{"an empty last file", map[string][]byte{name(0): full, name(size): nil}, 1, ""},
		{"a last file of some zeros", map[string][]byte{name(0): full, name(size): zeros}, 1, ""},
		{"two unfinished files", map[string][]byte{name(0): full, name(size): zeros, name(size * 2): nil}, 1, ""},
		{"a short last file with something in it", map[string][]byte{name(0): full, name(size): text}, 0, "every segment has 4096: if the store was made with another sizeKey"},
		{"a short file in the middle", map[string][]byte{name(0): zeros, name(size): full}, 0, "every segment has 4096"},
		{"a large file", map[string][]byte{name(0): append(full, 1)}, 0, "every segment has 4096"},
		{"a gap", map[string][]byte{name(0): full, name(size * 2): full}, 0, "file 00000000000000004096 is missing"},
		{"other names", map[string][]byte{name(0): full, "README": text, "123": text}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			disk := memfs.New(1)
			if err := disk.MkdirAll("/a/9999"); err != nil { // a directory is no file
				t.Fatal(err)
			}
			for name, content := range c.files {
				put(t, disk, "/a/"+name, content)
			}
			r, err := Open(disk, config())
			if c.err != "" {
				var damage *mq.CorruptionError
				if !errors.As(err, &damage) || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("opened with %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Files()); got != c.want {
				t.Errorf("%d files, want %d", got, c.want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADirectoryNamedLikeASegmentIsRefused(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	if err := disk.MkdirAll("/a/" + name(size)); err != nil {
		t.Fatal(err)
	}
	put(t, disk, "/a/"+name(0), make([]byte, size))
	_, err := Open(disk, config())
	if damage, ok := errors.AsType[*mq.CorruptionError](err); !ok || damage.File != "/a/"+name(size) {
		t.Errorf("opened with %v", err)
	}
}

func TestFilesLieInTheirDirectoriesInTurn(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	cfg := config()
	cfg.Dirs = []string{"/a", "/b"}
	r, err := Open(disk, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		f.Bytes()[0] = byte(f.Start()/size) + 1
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]byte{"/a/" + name(0): 1, "/b/" + name(size): 2, "/a/" + name(2*size): 3} {
		b, err := disk.ReadFile(path)
		if err != nil || len(b) != size || b[0] != content {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
	}
	if r, err = Open(disk, cfg); err != nil || len(r.Files()) != 3 {
		t.Fatalf("reopened: %v", err)
	}
}

func TestTheNextFileIsMadeAheadAndRemovedIfNotNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New(1)
		r, err := Open(disk, config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		there := func(start int64) bool {
			_, err := disk.Stat("/a/" + name(start))
			return err == nil
		}
		if !there(0) {
			t.Error("the first file is not made ahead")
		}
		if f, err := r.Next(); err != nil || f.Start() != 0 {
			t.Fatal(err)
		}
		r.Advance(size / 4)
		synctest.Wait()
		if there(size) {
			t.Error("the second file is made with three quarters of the first left")
		}
		r.Advance(size/2 + 1)
		synctest.Wait()
		if !there(size) {
			t.Error("the second file is not made with half of the first left")
		}
		stop()
		if err := errors.Join(<-done, r.Close()); err != nil {
			t.Error(err)
		}
		if there(size) || !there(0) {
			t.Error("what was made ahead is left, or what was used is gone")
		}
	})
}

func TestAFullDiskIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New(1)
		disk.SetLimit(size + 1)
		r, err := Open(disk, config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		r.Advance(size - 10)
		<-time.After(3 * retryAfter)
		if err := r.SpareError(); !vfs.IsNoSpace(err) {
			t.Errorf("the disk is full, and the run says %v", err)
		}
		if _, err := r.Next(); !vfs.IsNoSpace(err) {
			t.Errorf("a file on a full disk: %v", err)
		}
		if entries, _ := disk.ReadDir("/a"); len(entries) != 1 {
			t.Errorf("a failed attempt left %v", entries)
		}
		disk.SetLimit(0)
		<-time.After(2 * retryAfter)
		if err := r.SpareError(); err != nil {
			t.Errorf("with room again: %v", err)
		}
		if f, err := r.Next(); err != nil || f.Start() != size {
			t.Errorf("with room again: %v", err)
		}
		stop()
		if err := errors.Join(<-done, r.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestDroppedFilesStayMappedForTheirReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := memfs.New(1)
		r, err := Open(disk, config())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			f.Bytes()[7] = byte(f.Start()/size) + 1
		}
		held := r.Acquire(5)
		if held == nil || r.Acquire(3*size) != nil || r.Acquire(-1) != nil {
			t.Fatal("Acquire does not know what is there")
		}
		for i, want := range []bool{true, true, false} {
			if r.Drop() != want {
				t.Errorf("drop %d of three files: %v", i, !want)
			}
		}
		if r.First() != 2*size || r.Acquire(5) != nil {
			t.Error("a dropped file is still given out")
		}
		// The second file has no reader, but the first goes first.
		if left, err := r.Sweep(); err != nil || left != 2 {
			t.Errorf("%d are left, %v", left, err)
		}
		if held.Bytes()[7] != 1 {
			t.Error("the bytes changed under the reader")
		}
		held.Release()
		if left, err := r.Sweep(); err != nil || left != 0 {
			t.Errorf("%d are left, %v", left, err)
		}
		if _, err := disk.Stat("/a/" + name(0)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCutLeavesNothingBehindTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		end   int64
		files int
	}{{0, 1}, {1, 1}, {size - 1, 1}, {size, 2}, {size + 9, 2}, {3 * size, 3}} {
		disk := memfs.New(1)
		for i := range int64(3) {
			content := []byte(strings.Repeat("x", size))
			if err := disk.MkdirAll("/a"); err != nil {
				t.Fatal(err)
			}
			put(t, disk, "/a/"+name(i*size), content)
		}
		r, err := Open(disk, config())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Cut(c.end); err != nil {
			t.Fatal(err)
		}
		if got := len(r.Files()); got != c.files {
			t.Errorf("cut at %d: %d files, want %d", c.end, got, c.files)
		}
		for _, f := range r.Files() {
			for i, b := range f.Bytes() {
				if before := f.Start()+int64(i) < c.end; before != (b == 'x') || !before && b != 0 {
					t.Fatalf("cut at %d: byte %d of file %d is %q", c.end, i, f.Start(), b)
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
