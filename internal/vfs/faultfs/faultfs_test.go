package faultfs_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
	"github.com/sundial-mq/sundial/internal/vfs/vfstest"
)

func allow(faultfs.Op, string) error { return nil }

func TestAWrappedDiskKeepsTheRules(t *testing.T) {
	t.Parallel()
	t.Run("memfs", func(t *testing.T) {
		vfstest.Run(t, func(*testing.T) (vfs.FS, string) { return faultfs.Wrap(memfs.New(1), allow), "/" })
	})
	t.Run("OS", func(t *testing.T) {
		vfstest.Run(t, func(t *testing.T) (vfs.FS, string) { return faultfs.Wrap(vfs.OS(), allow), t.TempDir() })
	})
}

// script does every operation once and tells which gave an error.
func script(d vfs.FS) (failed map[string]error) {
	failed = make(map[string]error)
	note := func(op string, err error) {
		if err != nil {
			failed[op] = err
		}
	}
	note("mkdirall", d.MkdirAll("x"))
	f, err := d.Create("x/a")
	note("create", err)
	if err == nil {
		_, err = f.WriteAt([]byte("hello"), 0)
		note("writeat", err)
		_, err = f.ReadAt(make([]byte, 1), 0)
		note("readat", err)
		_, err = f.Size()
		note("size", err)
		note("truncate", f.Truncate(9))
		note("allocate", f.Allocate(10))
		note("zero", f.Zero(1, 2))
		note("sync", f.Sync())
		m, err := f.Map(3, true)
		note("map", err)
		if err == nil {
			m.Unmap()
		}
		note("close", f.Close())
	}
	g, err := d.Open("x/a")
	note("open", err)
	if err == nil {
		g.Close()
	}
	g, err = d.OpenRead("x/a")
	note("openread", err)
	if err == nil {
		g.Close()
	}
	_, err = d.ReadFile("x/a")
	note("readfile", err)
	_, err = d.ReadDir("x")
	note("readdir", err)
	info, err := d.Stat("x/a")
	note("stat", err)
	if err == nil {
		note("setmodtime", d.SetModTime("x/a", info.ModTime()))
	}
	_, err = d.Usage("x")
	note("usage", err)
	l, err := d.Lock("x/lock")
	note("lock", err)
	if err == nil {
		l.Close()
	}
	note("rename", d.Rename("x/a", "x/b"))
	note("syncdir", d.SyncDir("x"))
	note("remove", d.Remove("x/b"))
	note("removeall", d.RemoveAll("x"))
	return failed
}

func TestEveryOperationCanFailAlone(t *testing.T) {
	t.Parallel()
	if failed := script(faultfs.Wrap(prepared(t), allow)); len(failed) != 0 {
		t.Fatalf("with nothing injected: %v", failed)
	}
	for op := faultfs.OpOpen; op <= faultfs.OpMap; op++ {
		failed := script(faultfs.Wrap(prepared(t), func(o faultfs.Op, name string) error {
			if o == op && strings.HasPrefix(name, "x") {
				return faultfs.ErrInjected
			}
			return nil
		}))
		if err := failed[op.String()]; !errors.Is(err, faultfs.ErrInjected) || !strings.Contains(err.Error(), op.String()+" x") {
			t.Errorf("%s gave %v, want the injected fault with operation and name", op, err)
		}
	}
}

// prepared is a disk on which the script meets no other error when a step is missing.
func prepared(t *testing.T) vfs.FS {
	d := memfs.New(1)
	for _, name := range []string{"x/a", "x/b"} {
		if err := d.MkdirAll("x"); err != nil {
			t.Fatal(err)
		}
		f, err := d.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("before"), 0); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestShortWritesAndLostAnswers(t *testing.T) {
	t.Parallel()
	cause := errors.New("cable")
	var next error
	d := memfs.New(1)
	w := faultfs.Wrap(d, func(op faultfs.Op, _ string) error {
		if op.Changes() && op != faultfs.OpCreate {
			return next
		}
		return nil
	})
	f, err := w.Create("a")
	if err != nil {
		t.Fatal(err)
	}
	content := func(want string) {
		t.Helper()
		if b, err := d.ReadFile("a"); err != nil || string(b) != want {
			t.Errorf("the disk holds %q, %v; want %q", b, err, want)
		}
	}
	next = faultfs.Short(3, cause)
	if n, err := f.WriteAt([]byte("hello"), 0); n != 3 || !errors.Is(err, cause) {
		t.Errorf("a short write gave %d, %v", n, err)
	}
	content("hel")
	if err := f.Truncate(0); !errors.Is(err, cause) {
		t.Errorf("Truncate gave %v", err)
	}
	content("hel")
	next = faultfs.After(cause)
	if n, err := f.WriteAt([]byte("hello"), 0); n != 5 || !errors.Is(err, cause) {
		t.Errorf("a write whose answer was lost gave %d, %v", n, err)
	}
	content("hello")
	if err := w.Rename("a", "b"); !errors.Is(err, cause) {
		t.Errorf("Rename gave %v", err)
	}
	if _, err := d.Stat("b"); err != nil {
		t.Errorf("the rename was not done: %v", err)
	}
	if _, err := w.Lock("lock"); !errors.Is(err, cause) {
		t.Errorf("Lock gave %v", err)
	}
	if _, err := d.Lock("lock"); err != nil {
		t.Errorf("a lock that was not told was kept: %v", err)
	}
}

func TestNthAndFromCountWhatTheyAreToldTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hook faultfs.Hook
		want string
	}{
		{faultfs.Nth(2, faultfs.ErrInjected, faultfs.OpSync), "ok fail ok ok"},
		{faultfs.From(3, faultfs.ErrInjected, faultfs.OpSync), "ok ok fail fail"},
		{faultfs.Nth(1, faultfs.ErrInjected, faultfs.OpRemove), "ok ok ok ok"},
		{faultfs.From(3, faultfs.ErrInjected), "ok fail fail fail"}, // create and sync are one each
	} {
		f, err := faultfs.Wrap(memfs.New(1), c.hook).Create("a")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range 4 {
			if err := f.Sync(); err != nil {
				got = append(got, "fail")
			} else {
				got = append(got, "ok")
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("syncs went %q, want %q", s, c.want)
		}
	}
}

func TestAHookThatBlocksStallsItsOperationOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f, err := faultfs.Wrap(memfs.New(1), func(op faultfs.Op, _ string) error {
			if op == faultfs.OpSync {
				<-release
			}
			return nil
		}).Create("a")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		synced := false
		wg.Go(func() { _ = f.Sync(); synced = true })
		synctest.Wait()
		if _, err := f.WriteAt([]byte("x"), 0); err != nil || synced {
			t.Errorf("while Sync stalls, a write gave %v; synced %v", err, synced)
		}
		close(release)
		wg.Wait()
	})
}
