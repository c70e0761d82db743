// Package vfstest examines file systems: one suite for every filling of vfs.FS.
// Each failure names the rule of package vfs that was broken. It is for tests
// only.
package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/vfs"
)

// Run examines the file systems that open gives: one for each rule, with an
// empty directory in it.
func Run(t *testing.T, open func(t *testing.T) (fsys vfs.FS, dir string)) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			fsys, dir := open(t)
			rule.check(&exam{T: t, FS: fsys, dir: dir})
		})
	}
}

var rules = []struct {
	name  string
	check func(*exam)
}{
	{"what is written is read back by every handle", (*exam).readBack},
	{"reads end with io.EOF as io.ReaderAt says", (*exam).readEnds},
	{"missing files and directories are fs.ErrNotExist", (*exam).missing},
	{"Create truncates what is there", (*exam).createTruncates},
	{"a handle opened for reading does not write", (*exam).readOnly},
	{"Truncate cuts and grows with zeros", (*exam).truncate},
	{"Allocate grows, never shrinks, and keeps content", (*exam).allocate},
	{"Zero clears exactly its range", (*exam).zero},
	{"directories list sorted and MkdirAll is idempotent", (*exam).directories},
	{"Remove takes files and empty directories only", (*exam).remove},
	{"RemoveAll takes trees and does not mind missing ones", (*exam).removeAll},
	{"Rename replaces atomically and moves between directories", (*exam).rename},
	{"an open file outlives its name", (*exam).unlinkedStaysOpen},
	{"SetModTime is what Stat tells", (*exam).modTime},
	{"a lock is exclusive until it is closed", (*exam).lock},
	{"Usage adds up", (*exam).usage},
	{"Sync and SyncDir succeed on what is there", (*exam).syncs},
	{"mappings, reads and writes see each other", (*exam).mapShares},
	{"a mapping outlives its file handle", (*exam).mapOutlives},
	{"a mapping must lie within the file", (*exam).mapBounds},
	{"hints do not change content", (*exam).mapHints},
	{"a closed file refuses", (*exam).closed},
	{"handles are safe for concurrent use", (*exam).concurrent},
}

type exam struct {
	*testing.T
	vfs.FS
	dir string
}

func (x *exam) path(name string) string { return filepath.Join(x.dir, filepath.FromSlash(name)) }

// must stops the rule at an error that has nothing to do with it.
func (x *exam) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *exam) want(err, target error, doing string) {
	x.Helper()
	if !errors.Is(err, target) {
		x.Errorf("%s gave %v, want %v", doing, err, target)
	}
}

func (x *exam) create(name, content string) vfs.File {
	x.Helper()
	f, err := x.Create(x.path(name))
	x.must(err)
	x.Cleanup(func() { f.Close() })
	_, err = f.WriteAt([]byte(content), 0)
	x.must(err)
	return f
}

func (x *exam) content(name, want string) {
	x.Helper()
	b, err := x.ReadFile(x.path(name))
	if err != nil || string(b) != want {
		x.Errorf("%s holds %s, error %v; want %s", name, brief(b), err, brief([]byte(want)))
	}
}

func (x *exam) size(f vfs.File, want int64) {
	x.Helper()
	if n, err := f.Size(); err != nil || n != want {
		x.Errorf("size is %d, error %v; want %d", n, err, want)
	}
	if info, err := x.Stat(f.Name()); err != nil || info.Size() != want {
		x.Errorf("Stat does not say size %d: %v, error %v", want, info, err)
	}
}

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}

func (x *exam) readBack() {
	f := x.create("a", "hello")
	g, err := x.Open(x.path("a"))
	x.must(err)
	defer g.Close()
	if n, err := g.WriteAt([]byte("LO, world"), 3); n != 9 || err != nil {
		x.Errorf("WriteAt gave %d, %v", n, err)
	}
	b := make([]byte, 5)
	if n, err := f.ReadAt(b, 2); n != 5 || err != nil || string(b) != "lLO, " {
		x.Errorf("ReadAt gave %d, %v, %q", n, err, b)
	}
	x.content("a", "helLO, world")
	_, err = f.WriteAt([]byte("z"), 10000)
	x.must(err)
	x.size(f, 10001)
	x.content("a", "helLO, world"+string(make([]byte, 10000-12))+"z")
	if f.Name() != x.path("a") {
		x.Errorf("Name is %q, want the name it was opened by, %q", f.Name(), x.path("a"))
	}
}

func (x *exam) readEnds() {
	f := x.create("a", "hello")
	b := make([]byte, 4)
	if n, err := f.ReadAt(b, 3); n != 2 || err != io.EOF || string(b[:n]) != "lo" {
		x.Errorf("a read over the end gave %d, %v", n, err)
	}
	if n, err := f.ReadAt(b, 5); n != 0 || err != io.EOF {
		x.Errorf("a read at the end gave %d, %v", n, err)
	}
	if n, err := f.ReadAt(b, 500); n != 0 || err != io.EOF {
		x.Errorf("a read beyond the end gave %d, %v", n, err)
	}
	if n, err := f.ReadAt(nil, 2); n != 0 || err != nil {
		x.Errorf("reading nothing gave %d, %v", n, err)
	}
}

func (x *exam) missing() {
	_, err := x.Open(x.path("no"))
	x.want(err, fs.ErrNotExist, "Open")
	_, err = x.OpenRead(x.path("no"))
	x.want(err, fs.ErrNotExist, "OpenRead")
	_, err = x.ReadFile(x.path("no"))
	x.want(err, fs.ErrNotExist, "ReadFile")
	_, err = x.Stat(x.path("no"))
	x.want(err, fs.ErrNotExist, "Stat")
	_, err = x.ReadDir(x.path("no"))
	x.want(err, fs.ErrNotExist, "ReadDir")
	_, err = x.Create(x.path("no/file"))
	x.want(err, fs.ErrNotExist, "Create in a missing directory")
	x.want(x.Remove(x.path("no")), fs.ErrNotExist, "Remove")
	x.want(x.Rename(x.path("no"), x.path("yes")), fs.ErrNotExist, "Rename")
	x.want(x.SyncDir(x.path("no")), fs.ErrNotExist, "SyncDir")
	x.want(x.SetModTime(x.path("no"), time.Now()), fs.ErrNotExist, "SetModTime")
}

func (x *exam) createTruncates() {
	x.create("a", "old content")
	f, err := x.Create(x.path("a"))
	x.must(err)
	defer f.Close()
	x.size(f, 0)
	x.content("a", "")
}

func (x *exam) readOnly() {
	x.create("a", "hello")
	f, err := x.OpenRead(x.path("a"))
	x.must(err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		x.Error("WriteAt went through")
	}
	if f.Truncate(1) == nil {
		x.Error("Truncate went through")
	}
	if m, err := f.Map(5, true); err == nil {
		x.Error("a writable mapping was made")
		m.Unmap()
	}
	m, err := f.Map(5, false)
	x.must(err)
	if string(m.Bytes()) != "hello" {
		x.Errorf("the mapping shows %q", m.Bytes())
	}
	x.must(m.Unmap())
	x.content("a", "hello")
}

func (x *exam) truncate() {
	f := x.create("a", "hello world")
	x.must(f.Truncate(5))
	x.size(f, 5)
	x.must(f.Truncate(9000))
	x.size(f, 9000)
	x.content("a", "hello"+string(make([]byte, 8995)))
	x.must(f.Truncate(0))
	x.content("a", "")
}

func (x *exam) allocate() {
	f := x.create("a", "hello")
	x.must(f.Allocate(20000))
	x.size(f, 20000)
	x.content("a", "hello"+string(make([]byte, 19995)))
	x.must(f.Allocate(3))
	x.size(f, 20000)
	x.must(f.Truncate(30000))
	x.must(f.Allocate(30000))
	x.size(f, 30000)
}

func (x *exam) zero() {
	all := bytes.Repeat([]byte{0xAA}, 20000)
	f := x.create("a", string(all))
	x.must(f.Zero(3000, 9000))
	clear(all[3000:12000])
	x.content("a", string(all))
	x.must(f.Zero(0, 1))
	all[0] = 0
	x.must(f.Zero(19999, 1))
	all[19999] = 0
	x.must(f.Zero(5, 0))
	x.content("a", string(all))
	x.size(f, 20000)
	m, err := f.Map(20000, true)
	x.must(err)
	defer m.Unmap()
	x.must(f.Zero(12000, 5000))
	clear(all[12000:17000])
	if !bytes.Equal(m.Bytes(), all) {
		x.Error("a mapping does not show what Zero cleared")
	}
}

func (x *exam) directories() {
	x.must(x.MkdirAll(x.path("d/e/f")))
	x.must(x.MkdirAll(x.path("d/e/f")))
	x.create("d/zz", "1")
	x.create("d/aa", "22")
	list, err := x.ReadDir(x.path("d"))
	x.must(err)
	var got []string
	for _, e := range list {
		got = append(got, fmt.Sprint(e.Name(), " ", e.IsDir()))
	}
	if want := []string{"aa false", "e true", "zz false"}; !slices.Equal(got, want) {
		x.Errorf("listed %q, want %q", got, want)
	}
	if info, err := list[0].Info(); err != nil || info.Size() != 2 || info.Name() != "aa" {
		x.Errorf("the entry's info is %v, %v", info, err)
	}
	if info, err := x.Stat(x.path("d/e")); err != nil || !info.IsDir() || info.Name() != "e" {
		x.Errorf("Stat of a directory gave %v, %v", info, err)
	}
	if x.MkdirAll(x.path("d/aa/x")) == nil {
		x.Error("a directory was made below a file")
	}
	if _, err := x.Create(x.path("d/e")); err == nil {
		x.Error("a file was made where a directory is")
	}
	if _, err := x.ReadDir(x.path("d/aa")); err == nil {
		x.Error("a file was listed")
	}
}

func (x *exam) remove() {
	x.must(x.MkdirAll(x.path("d")))
	f := x.create("d/a", "1")
	if x.Remove(x.path("d")) == nil {
		x.Error("a directory that is not empty was removed")
	}
	x.must(f.Close())
	x.must(x.Remove(x.path("d/a")))
	x.must(x.Remove(x.path("d")))
	_, err := x.Stat(x.path("d"))
	x.want(err, fs.ErrNotExist, "Stat of what was removed")
}

func (x *exam) removeAll() {
	x.must(x.MkdirAll(x.path("d/e/f")))
	x.must(x.create("d/e/f/a", "1").Close())
	x.must(x.create("d/b", "1").Close())
	x.must(x.RemoveAll(x.path("d")))
	_, err := x.Stat(x.path("d"))
	x.want(err, fs.ErrNotExist, "Stat of what was removed")
	x.must(x.RemoveAll(x.path("d")))
	x.must(x.RemoveAll(x.path("no/such/tree")))
}

func (x *exam) rename() {
	x.must(x.MkdirAll(x.path("d")))
	x.must(x.create("a", "new").Close())
	x.must(x.create("d/b", "old").Close())
	x.must(x.Rename(x.path("a"), x.path("d/b")))
	x.content("d/b", "new")
	_, err := x.Stat(x.path("a"))
	x.want(err, fs.ErrNotExist, "Stat of the old name")
	x.must(x.Rename(x.path("d"), x.path("e")))
	x.content("e/b", "new")
	x.must(x.Rename(x.path("e/b"), x.path("e/b")))
	x.content("e/b", "new")
	if x.Rename(x.path("e"), x.path("e/sub")) == nil {
		x.Error("a directory was moved into itself")
	}
	x.want(x.Rename(x.path("e/b"), x.path("no/b")), fs.ErrNotExist, "Rename into a missing directory")
}

func (x *exam) unlinkedStaysOpen() {
	f := x.create("a", "hello")
	if err := x.Remove(x.path("a")); err != nil {
		x.Skipf("this system does not remove open files: %v", err)
	}
	b := make([]byte, 5)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "hello" {
		x.Errorf("reading gave %q, %v", b, err)
	}
	_, err := f.WriteAt([]byte("J"), 0)
	x.must(err)
	x.must(f.Sync())
	x.create("a", "other")
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "Jello" {
		x.Errorf("reading gave %q, %v", b, err)
	}
	x.content("a", "other")
}

func (x *exam) modTime() {
	f := x.create("a", "hello")
	then := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	x.must(x.SetModTime(x.path("a"), then))
	info, err := x.Stat(x.path("a"))
	x.must(err)
	if !info.ModTime().Equal(then) {
		x.Errorf("the time is %v, want %v", info.ModTime(), then)
	}
	_, err = f.WriteAt([]byte("x"), 0)
	x.must(err)
	if info, err = x.Stat(x.path("a")); err != nil || !info.ModTime().After(then) {
		x.Errorf("after a write the time is still %v (%v)", info.ModTime(), err)
	}
}

func (x *exam) lock() {
	name := x.path("lock")
	held, err := x.Lock(name)
	x.must(err)
	if _, err := x.Stat(name); err != nil {
		x.Errorf("the lock file was not made: %v", err)
	}
	_, err = x.Lock(name)
	x.want(err, vfs.ErrLocked, "a second Lock of this process")
	_, err = x.Lock(filepath.Join(x.dir, ".", "lock"))
	x.want(err, vfs.ErrLocked, "a second Lock by another spelling")
	other, err := x.Lock(x.path("other"))
	x.must(err)
	x.must(other.Close())
	x.must(held.Close())
	held.Close() // closing twice must not free the next holder's lock
	again, err := x.Lock(name)
	x.must(err)
	held.Close()
	_, err = x.Lock(name)
	x.want(err, vfs.ErrLocked, "Lock after the first holder closed once more")
	x.must(again.Close())
	_, err = x.Lock(x.path("no/lock"))
	x.want(err, fs.ErrNotExist, "Lock in a missing directory")
}

func (x *exam) usage() {
	for _, name := range []string{x.dir, x.path("not/made/yet")} {
		u, err := x.Usage(name)
		x.must(err)
		if u.Total == 0 || u.Used > u.Total || u.Available > u.Total-u.Used || u.Ratio() < 0 || u.Ratio() > 1 {
			x.Errorf("usage of %s is %+v, ratio %v", name, u, u.Ratio())
		}
	}
}

func (x *exam) syncs() {
	f := x.create("a", "hello")
	x.must(f.Sync())
	x.must(x.SyncDir(x.dir))
	x.must(f.Sync())
	if x.SyncDir(x.path("a")) == nil {
		x.Skip("this system does not sync directories")
	}
}

func (x *exam) mapShares() {
	f := x.create("a", "")
	x.must(f.Allocate(3 * 4096))
	m, err := f.Map(3*4096, true)
	x.must(err)
	defer m.Unmap()
	short, err := f.Map(4096, false)
	x.must(err)
	defer short.Unmap()
	if len(m.Bytes()) != 3*4096 || len(short.Bytes()) != 4096 {
		x.Fatalf("mapped %d and %d bytes", len(m.Bytes()), len(short.Bytes()))
	}
	copy(m.Bytes()[10:], "stored")
	if string(short.Bytes()[10:16]) != "stored" {
		x.Error("another mapping does not see a store")
	}
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, 10); err != nil || string(b) != "stored" {
		x.Errorf("ReadAt does not see a store: %q, %v", b, err)
	}
	g, err := x.Open(x.path("a"))
	x.must(err)
	defer g.Close()
	_, err = g.WriteAt([]byte("written"), 8000)
	x.must(err)
	if string(m.Bytes()[8000:8007]) != "written" {
		x.Error("the mapping does not see a write through another handle")
	}
	x.must(f.Sync())
	x.must(f.Truncate(5 * 4096)) // growing under a mapping
	copy(m.Bytes()[100:], "again")
	if _, err := g.ReadAt(b[:5], 100); err != nil || string(b[:5]) != "again" {
		x.Errorf("after growth ReadAt does not see a store: %q, %v", b[:5], err)
	}
}

func (x *exam) mapOutlives() {
	f := x.create("a", "hello")
	m, err := f.Map(5, true)
	x.must(err)
	x.must(f.Close())
	copy(m.Bytes(), "J")
	x.content("a", "Jello")
	x.must(m.Unmap())
	x.must(m.Unmap())
	x.content("a", "Jello")
}

func (x *exam) mapBounds() {
	f := x.create("a", "hello")
	for _, size := range []int64{6, 0, -1} {
		if m, err := f.Map(size, false); err == nil {
			x.Errorf("%d bytes of 5 were mapped", size)
			m.Unmap()
		}
	}
}

func (x *exam) mapHints() {
	all := bytes.Repeat([]byte("sundial "), 4096)
	f := x.create("a", string(all))
	m, err := f.Map(int64(len(all)), true)
	x.must(err)
	defer m.Unmap()
	m.Bytes()[7] = '!'
	all[7] = '!'
	for _, span := range [][2]int64{{0, 1}, {100, 9000}, {0, int64(len(all))}, {5000, 1 << 40}, {int64(len(all)), 10}, {-5, 3}, {7, 0}} {
		m.Populate(span[0], span[1])
		m.Drop(span[0], span[1])
	}
	if !bytes.Equal(m.Bytes(), all) {
		x.Error("a hint changed what the mapping shows")
	}
	x.content("a", string(all))
}

func (x *exam) closed() {
	f := x.create("a", "hello")
	x.must(f.Close())
	if _, err := f.ReadAt(make([]byte, 1), 0); err == nil {
		x.Error("ReadAt went through")
	}
	if _, err := f.WriteAt(make([]byte, 1), 0); err == nil {
		x.Error("WriteAt went through")
	}
	if f.Sync() == nil || f.Truncate(0) == nil || f.Allocate(9) == nil || f.Zero(0, 1) == nil {
		x.Error("Sync, Truncate, Allocate or Zero went through")
	}
	if _, err := f.Map(1, false); err == nil {
		x.Error("Map went through")
	}
	if f.Close() == nil {
		x.Error("a second Close gave no error")
	}
	x.content("a", "hello")
}

func (x *exam) concurrent() {
	f := x.create("a", "")
	x.must(f.Allocate(8 * 1000))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			mine := bytes.Repeat([]byte{byte('a' + g)}, 1000)
			got := make([]byte, 1000)
			for range 20 {
				if _, err := f.WriteAt(mine, int64(g)*1000); err != nil {
					x.Error(err)
				}
				if _, err := f.ReadAt(got, int64(g)*1000); err != nil || !bytes.Equal(got, mine) {
					x.Errorf("read %s, %v", brief(got), err)
				}
				if err := f.Sync(); err != nil {
					x.Error(err)
				}
			}
			name := fmt.Sprint("f", g)
			h := x.create(name, name)
			x.must(h.Close())
			x.must(x.Rename(x.path(name), x.path(name+"x")))
			x.content(name+"x", name)
		})
	}
	wg.Wait()
	list, err := x.ReadDir(x.dir)
	if err != nil || len(list) != 9 {
		x.Errorf("%d entries, %v", len(list), err)
	}
}
