package memfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/vfs"
)

func must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, d vfs.FS, name, content string, synced bool) vfs.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	if synced {
		must(t, f.Sync())
	}
	return f
}

// tree is the disk as text: one line a file.
func tree(d *FS, dir string) (lines []string) {
	list, err := d.ReadDir(dir)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range list {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			lines = append(lines, tree(d, name)...)
			continue
		}
		b, _ := d.ReadFile(name)
		lines = append(lines, fmt.Sprintf("%s=%s", strings.TrimPrefix(name, "/"), bytes.TrimRight(b, "\x00")))
	}
	return lines
}

func wantTree(t *testing.T, d *FS, want ...string) {
	t.Helper()
	if got := tree(d, ""); !slices.Equal(got, want) {
		t.Errorf("the disk holds %q, want %q", got, want)
	}
}

func TestSyncedContentSurvivesAndTheRestMayNot(t *testing.T) {
	t.Parallel()
	d := New(7)
	f := write(t, d, "a", "old", true)
	must(t, d.SyncDir("/"))
	_, err := f.WriteAt([]byte("new"), 0)
	must(t, err)
	wantTree(t, d.CrashKeeping(0), "a=old")
	wantTree(t, d.CrashKeeping(1), "a=new")
	wantTree(t, d, "a=new")
	seen := map[string]int{}
	for range 100 {
		seen[tree(d.Crash(), "")[0]]++
	}
	if len(seen) != 2 || seen["a=old"] < 20 || seen["a=new"] < 20 {
		t.Errorf("crashes gave %v, want both often", seen)
	}
	must(t, f.Sync())
	for range 20 {
		wantTree(t, d.Crash(), "a=new")
	}
}

func TestPagesAndSizeAreKeptOrLostEachByItself(t *testing.T) {
	t.Parallel()
	d := New(7)
	f := write(t, d, "a", strings.Repeat("o", 2*pageSize), true)
	must(t, d.SyncDir("/"))
	_, err := f.WriteAt(bytes.Repeat([]byte("n"), 3*pageSize), 0)
	must(t, err)
	seen := map[string]bool{}
	for range 400 {
		b, err := d.Crash().ReadFile("a")
		must(t, err)
		picture := ""
		for at := 0; at < len(b); at += pageSize {
			page := b[at : at+pageSize]
			if !bytes.Equal(page, bytes.Repeat(page[:1], pageSize)) {
				t.Fatalf("a page is torn")
			}
			picture += string(page[:1])
		}
		seen[picture] = true
	}
	for _, want := range []string{"oo", "on", "no", "nn", "ooo", "nnn", "on\x00", "onn", "nn\x00"} {
		if want != "ooo" && !seen[want] {
			t.Errorf("no crash gave pages %q; there were %v", want, seen)
		}
	}
	if seen["ooo"] {
		t.Error("a page appeared that was never written")
	}
}

func TestStoresThroughMappingsAreUnsyncedUntilSync(t *testing.T) {
	t.Parallel()
	d := New(3)
	f := write(t, d, "a", "", false)
	must(t, f.Allocate(4*pageSize))
	must(t, f.Sync())
	must(t, d.SyncDir(""))
	m, err := f.Map(4*pageSize, true)
	must(t, err)
	copy(m.Bytes()[pageSize:], "stored")
	wantTree(t, d.CrashKeeping(0), "a=")
	wantTree(t, d.CrashKeeping(1), "a="+string(make([]byte, pageSize))+"stored")
	must(t, f.Sync())
	wantTree(t, d.CrashKeeping(0), "a="+string(make([]byte, pageSize))+"stored")
	copy(m.Bytes()[pageSize:], "STORED")
	must(t, m.Unmap())
	wantTree(t, d.CrashKeeping(0), "a="+string(make([]byte, pageSize))+"stored")
	must(t, f.Sync())
	wantTree(t, d.CrashKeeping(0), "a="+string(make([]byte, pageSize))+"STORED")
}

func TestDirectoryOperationsNeedSyncDir(t *testing.T) {
	t.Parallel()
	d := New(5)
	write(t, d, "gone", "1", true)
	write(t, d, "moved", "2", true)
	write(t, d, "over", "3", true)
	must(t, d.SyncDir("."))
	write(t, d, "made", "4", true)
	must(t, d.Remove("gone"))
	must(t, d.Rename("moved", "over"))
	wantTree(t, d.CrashKeeping(0), "gone=1", "moved=2", "over=3")
	wantTree(t, d.CrashKeeping(1), "made=4", "over=2")
	seen := map[string]bool{}
	for range 300 {
		seen[strings.Join(tree(d.Crash(), ""), " ")] = true
	}
	if len(seen) != 8 {
		t.Errorf("three operations give %d outcomes, want 8: %v", len(seen), seen)
	}
	for s := range seen {
		if moved := strings.Contains(s, "moved=2"); moved == strings.Contains(s, "over=2") || moved != strings.Contains(s, "over=3") {
			t.Errorf("a rename was done by half: %q", s)
		}
	}
	must(t, d.SyncDir("/"))
	wantTree(t, d.CrashKeeping(0), "made=4", "over=2")
}

func TestWhatIsInADirectoryIsLostWithIt(t *testing.T) {
	t.Parallel()
	d := New(5)
	must(t, d.MkdirAll("x/y"))
	write(t, d, "x/y/a", "1", true)
	must(t, d.SyncDir("x/y"))
	wantTree(t, d.CrashKeeping(0))
	must(t, d.SyncDir("x"))
	wantTree(t, d.CrashKeeping(0))
	must(t, d.SyncDir(""))
	wantTree(t, d.CrashKeeping(0), "x/y/a=1")
	must(t, d.RemoveAll("x"))
	wantTree(t, d.CrashKeeping(0), "x/y/a=1")
	must(t, d.SyncDir(""))
	wantTree(t, d.CrashKeeping(0))
}

func TestARenameBetweenDirectoriesLeavesOneName(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		d := New(seed)
		must(t, d.MkdirAll("p"))
		must(t, d.MkdirAll("q"))
		must(t, d.SyncDir(""))
		write(t, d, "p/a", "1", true)
		must(t, d.Rename("p/a", "q/b"))
		if seed%2 == 0 {
			must(t, d.SyncDir("q"))
		}
		must(t, d.Rename("q/b", "q/c"))
		if got := tree(d.Crash(), ""); len(got) > 1 || seed%2 == 0 && len(got) == 0 {
			t.Fatalf("seed %d: the file is at %q", seed, got)
		}
	}
}

func TestTheSameSeedCrashesTheSameWay(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (out []string) {
		d := New(seed)
		for i := range 20 {
			write(t, d, fmt.Sprint("f", i), strings.Repeat("x", 3*pageSize), i%2 == 0)
		}
		for range 5 {
			out = append(out, tree(d.Crash(), "")...)
		}
		return out
	}
	if !slices.Equal(run(1), run(1)) {
		t.Error("one seed, two outcomes")
	}
	if slices.Equal(run(1), run(2)) {
		t.Error("two seeds, one outcome")
	}
}

func TestKillLosesNothingButLocks(t *testing.T) {
	t.Parallel()
	d := New(5)
	f := write(t, d, "a", "written", false)
	m, err := f.Map(7, true)
	must(t, err)
	copy(m.Bytes(), "W")
	_, err = d.Lock("lock")
	must(t, err)
	k := d.KillClone()
	wantTree(t, k, "a=Written", "lock=")
	copy(m.Bytes(), "X")
	wantTree(t, k, "a=Written", "lock=")
	if _, err := k.Lock("lock"); err != nil {
		t.Errorf("the dead process still holds the lock: %v", err)
	}
	wantTree(t, k.CrashKeeping(0)) // still not synced
	g, err := k.Open("a")
	must(t, err)
	must(t, g.Sync())
	must(t, k.SyncDir(""))
	wantTree(t, k.CrashKeeping(0), "a=Written", "lock=")
}

func TestStopAfterCutsThePowerAtTheNextChange(t *testing.T) {
	t.Parallel()
	d := New(5)
	f := write(t, d, "a", "1", true)
	must(t, d.SyncDir(""))
	if d.OpCount() != 4 {
		t.Errorf("create, write, sync, syncdir are %d operations", d.OpCount())
	}
	m, err := f.Map(1, true)
	must(t, err)
	d.StopAfter(1)
	_, err = f.WriteAt([]byte("2"), 0)
	must(t, err)
	m.Bytes()[0] = '3'
	if _, err := d.ReadFile("a"); err != nil || d.Stopped() {
		t.Errorf("the power went too early: %v", err)
	}
	if err := f.Sync(); !errors.Is(err, ErrPowerOff) || !d.Stopped() {
		t.Errorf("the second change gave %v", err)
	}
	m.Bytes()[0] = '4'
	if _, err := d.ReadFile("a"); !errors.Is(err, ErrPowerOff) {
		t.Errorf("a read after the stop gave %v", err)
	}
	wantTree(t, d.CrashKeeping(0), "a=1")
	wantTree(t, d.CrashKeeping(1), "a=3")
	wantTree(t, d.KillClone(), "a=3")
}

// The crash loop of the package comment, on the usual way to replace a file.
func TestWalkingEveryCrashPointOfAnAtomicReplace(t *testing.T) {
	t.Parallel()
	scenario := func(d *FS) (acked string, err error) {
		acked = "none"
		for i := range 3 {
			f, err := d.Create("x.tmp")
			if err != nil {
				return acked, err
			}
			if _, err := f.WriteAt(fmt.Appendf(nil, "v%d", i), 0); err != nil {
				return acked, err
			}
			if err := f.Sync(); err != nil {
				return acked, err
			}
			if err := d.Rename("x.tmp", "x"); err != nil {
				return acked, err
			}
			if err := d.SyncDir(""); err != nil {
				return acked, err
			}
			acked = fmt.Sprint("v", i)
		}
		return acked, nil
	}
	order := []string{"none", "v0", "v1", "v2"}
	points := 0
	for n := int64(0); ; n++ {
		d := New(uint64(n))
		d.StopAfter(n)
		acked, err := scenario(d)
		for range 10 {
			b, rerr := d.Crash().ReadFile("x")
			got := string(b)
			if errors.Is(rerr, fs.ErrNotExist) {
				got = "none"
			}
			at := slices.Index(order, got)
			if low := slices.Index(order, acked); at != low && at != low+1 {
				t.Fatalf("crash after %d operations: %q acknowledged, %q found", n, acked, got)
			}
		}
		if !d.Stopped() {
			must(t, err)
			break
		}
		points++
	}
	if points != 15 {
		t.Errorf("%d crash points, want 15", points)
	}
}

func TestAFullDiskRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	d := New(1)
	d.SetLimit(4 * pageSize)
	f := write(t, d, "a", "x", false)
	if err := f.Allocate(5 * pageSize); !vfs.IsNoSpace(err) {
		t.Errorf("Allocate beyond the disk gave %v", err)
	}
	must(t, f.Truncate(0))
	must(t, f.Allocate(3*pageSize))
	must(t, f.Truncate(100*pageSize)) // holes take no room
	if d.Used() != 3*pageSize {
		t.Errorf("%d pages used, want 3", d.Used()/pageSize)
	}
	n, err := f.WriteAt(make([]byte, 2*pageSize), 3*pageSize+10)
	if n != pageSize-10 || !vfs.IsNoSpace(err) {
		t.Errorf("writing over the last page gave %d, %v", n, err)
	}
	u, err := d.Usage("a")
	if must(t, err); u.Available != 0 || u.Ratio() != 1 {
		t.Errorf("usage is %+v", u)
	}
	must(t, d.Remove("a"))
	if d.Used() != 0 {
		t.Errorf("%d bytes used after removal", d.Used())
	}
	write(t, d, "b", "y", false)
	d.SetUsage(vfs.Usage{Total: 100, Used: 91, Available: 9})
	if u, _ := d.Usage("/"); u.Ratio() != 0.91 {
		t.Errorf("usage was set, but is %+v", u)
	}
}

func TestGrowthUnderMappingsKeepsThemShared(t *testing.T) {
	t.Parallel()
	d := New(1)
	f := write(t, d, "a", "hello", true)
	m, err := f.Map(5, true)
	must(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("z"), 3<<20), 5)
	must(t, err)
	copy(m.Bytes(), "J")
	b, err := d.ReadFile("a")
	if must(t, err); string(b[:7]) != "Jellozz" || len(b) != 5+3<<20 {
		t.Errorf("after growth the file begins %q and has %d bytes", b[:7], len(b))
	}
	if _, err := f.Map(1<<20, true); err == nil {
		t.Error("a mapping was made that cannot share the earlier one's memory")
	}
	must(t, m.Unmap())
	m, err = f.Map(5+3<<20, true)
	must(t, err)
	if string(m.Bytes()[:6]) != "Jelloz" {
		t.Errorf("mapped again it begins %q", m.Bytes()[:6])
	}
	must(t, f.Sync())
	got := d.CrashKeeping(0)
	must(t, got.SyncDir("")) // its entry was never synced
	wantTree(t, got)
}
