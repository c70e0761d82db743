package table_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/faultfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const path = "store/config/offsets.json"

// offsets is a document like consumerOffset.json.
type offsets struct {
	Version mq.DataVersion             `json:"dataVersion"`
	Table   map[string]map[int32]int64 `json:"offsetTable"`
}

func generation(n int64) offsets {
	return offsets{Version: mq.DataVersion{Counter: n}, Table: map[string]map[int32]int64{"t@g": {0: n, 1: 2 * n}}}
}

func open(t testing.TB, fsys vfs.FS) (*table.Document[offsets], offsets, table.Report) {
	t.Helper()
	d, v, report, err := table.Open[offsets](fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	return d, v, report
}

func save(t testing.TB, d *table.Document[offsets], v offsets) {
	t.Helper()
	if err := d.Save(v); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, fsys vfs.FS, name, content string) {
	t.Helper()
	if err := fsys.MkdirAll("store/config"); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		t.Fatal(err)
	}
}

func names(t testing.TB, fsys vfs.FS) (all []string) {
	t.Helper()
	entries, err := fsys.ReadDir("store/config")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, _, damaged := strings.Cut(e.Name(), ".damaged-")
		if damaged {
			name += ".damaged"
		}
		all = append(all, name)
	}
	return all
}

func TestSaveAndOpen(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	d, v, report := open(t, fsys)
	if report != (table.Report{}) || v.Table != nil {
		t.Errorf("nothing there: %+v, %+v", v, report)
	}
	for n := range int64(3) {
		save(t, d, generation(n))
	}
	var report2 table.Report
	if _, v, report2 = open(t, fsys); report2.Source != table.File || report2.String() != "" || !cmp.Equal(v, generation(2)) {
		t.Errorf("read %+v, %+v", v, report2)
	}
	if d := cmp.Diff(names(t, fsys), []string{"offsets.json", "offsets.json.bak"}); d != "" {
		t.Error(d)
	}
	raw, err := fsys.ReadFile(path)
	if want := "{\n\t\"dataVersion\":{\n\t\t\"counter\":2,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":0\n\t},\n\t\"offsetTable\":{\n\t\t\"t@g\":{\n\t\t\t\"0\":2,\n\t\t\t\"1\":4\n\t\t}\n\t}\n}"; err != nil || string(raw) != want {
		t.Errorf("written\n%s\n%v", raw, err)
	}
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, v, report = open(t, fsys)
	if report.Source != table.Backup || !strings.Contains(report.String(), "missing") || !cmp.Equal(v, generation(1)) {
		t.Errorf("from .bak: read %+v, %v", v, report)
	}
}

func TestReadsWhatJavaWrites(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	write(t, fsys, path, "{\n\t\"dataVersion\":{\n\t\t\"counter\":7\n\t},\n\t\"groupTopicMap\":{},\n\t\"offsetTable\":{\n\t\t\"t@g\":{0:7,\n\t\t\t1:14\n\t\t}\n\t}\n}")
	if _, v, _ := open(t, fsys); !cmp.Equal(v, generation(7)) {
		t.Errorf("read %+v", v)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	good, older := `{"dataVersion":{"counter":2},"offsetTable":{"t@g":{0:2,1:4}}}`, `{"dataVersion":{"counter":1},"offsetTable":{"t@g":{0:1,1:2}}}`
	for name, bad := range map[string]string{
		"empty": "", "zeros": "\x00\x00\x00", "half": good[:40], "no object": "null", "a list": "[]", "another type": `{"offsetTable":{"t@g":{"x":1}}}`,
		// What was read before the error must not shine through.
		"an error at the end": `{"dataVersion":{"counter":9},"offsetTable":{"u@g":{0:9},"t@g":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := memfs.New(1)
			write(t, fsys, path, bad)
			write(t, fsys, path+".bak", older)
			d, v, report := open(t, fsys)
			if report.Source != table.Backup || !cmp.Equal(v, generation(1)) {
				t.Errorf("read %+v, %+v", v, report)
			}
			if e, ok := errors.AsType[*mq.CorruptionError](report.Damaged); !ok || e.File != path || !strings.Contains(report.String(), report.SetAside) {
				t.Errorf("report %v", report)
			}
			if raw, err := fsys.ReadFile(report.SetAside); err != nil || string(raw) != bad {
				t.Errorf("the evidence: %q, %v", raw, err)
			}
			save(t, d, generation(3))
			if _, v, report := open(t, fsys); report.Source != table.File || !cmp.Equal(v, generation(3)) {
				t.Errorf("after saving: %+v, %+v", v, report)
			}
			if d := cmp.Diff(names(t, fsys), []string{"offsets.json", "offsets.json.bak", "offsets.json.damaged"}); d != "" {
				t.Error(d)
			}
		})
		t.Run(name+", and .bak too", func(t *testing.T) {
			t.Parallel()
			for _, hasBackup := range []bool{false, true} {
				fsys := memfs.New(1)
				write(t, fsys, path, bad)
				want := []string{"offsets.json"}
				if hasBackup {
					write(t, fsys, path+".bak", good[:50])
					want = append(want, "offsets.json.bak")
				}
				for range 2 {
					d, _, _, err := table.Open[offsets](fsys, path)
					if e, ok := errors.AsType[*mq.CorruptionError](err); d != nil || !ok || e.File != path || !strings.Contains(err.Error(), ".bak") {
						t.Errorf(".bak there %v: %v", hasBackup, err)
					}
				}
				if d := cmp.Diff(names(t, fsys), want); d != "" {
					t.Error(d)
				}
				d, aside, err := table.Reset[offsets](fsys, path)
				if err != nil || len(aside) != len(want) {
					t.Fatalf("reset: %v, %v", aside, err)
				}
				save(t, d, generation(5))
				if _, v, report := open(t, fsys); report.Source != table.File || !cmp.Equal(v, generation(5)) {
					t.Errorf("after reset: %+v, %+v", v, report)
				}
			}
		})
	}
	// A missing file with a bad .bak is no new document.
	fsys := memfs.New(1)
	write(t, fsys, path+".bak", "")
	if _, _, _, err := table.Open[offsets](fsys, path); err == nil {
		t.Error("a bad .bak alone is taken for nothing")
	}
}

// TestAFileThatCannotBeReadIsNoDamage: an error of the disk says nothing about
// the content.
func TestAFileThatCannotBeReadIsNoDamage(t *testing.T) {
	t.Parallel()
	below := memfs.New(1)
	d, _, _ := open(t, below)
	save(t, d, generation(1))
	save(t, d, generation(2))
	broken := errors.New("input/output error")
	for _, name := range []string{path, path + ".bak"} {
		fsys := faultfs.Wrap(below, func(op faultfs.Op, n string) error {
			if op == faultfs.OpReadFile && n == name {
				return broken
			}
			return nil
		})
		_, v, _, err := table.Open[offsets](fsys, path)
		if name == path && !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if name != path && (err != nil || !cmp.Equal(v, generation(2))) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if d := cmp.Diff(names(t, below), []string{"offsets.json", "offsets.json.bak"}); d != "" {
		t.Error(d)
	}
}

// TestPowerCutAnywhere cuts the power and kills the process at every operation of
// several saves: what is read then is what was saved last, or what was being
// saved.
func TestPowerCutAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		for n := int64(1); ; n++ {
			fsys := memfs.New(seed)
			fsys.StopAfter(n)
			saved := int64(0)
			d, _, _, err := table.Open[offsets](fsys, path)
			for err == nil && saved < 4 {
				if err = d.Save(generation(saved + 1)); err == nil {
					saved++
				}
			}
			for how, after := range map[string]*memfs.FS{"power cut": fsys.Crash(), "killed": fsys.KillClone()} {
				d, v, report, err := table.Open[offsets](after, path)
				if err != nil {
					t.Fatalf("seed %d, %s at operation %d: %v", seed, how, n, err)
				}
				if got := v.Version.Counter; got != saved && got != saved+1 || report.Damaged != nil || got > 0 && !cmp.Equal(v, generation(got)) {
					t.Fatalf("seed %d, %s at operation %d: %d generations saved, read %+v, %v", seed, how, n, saved, v, report)
				}
				save(t, d, generation(9))
				if _, v, _ := open(t, after.Crash()); !cmp.Equal(v, generation(9)) {
					t.Fatalf("seed %d, %s at operation %d: saved again, read %+v", seed, how, n, v)
				}
			}
			if saved == 4 {
				break
			}
		}
	}
}

// TestPowerCutWhileSettingAside: the evidence and the backup survive.
func TestPowerCutWhileSettingAside(t *testing.T) {
	t.Parallel()
	for n := int64(1); n < 20; n++ {
		fsys := memfs.New(uint64(n))
		d, _, _ := open(t, fsys)
		save(t, d, generation(1))
		save(t, d, generation(2))
		write(t, fsys, path, "{")
		f, err := fsys.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		fsys.StopAfter(n)
		_, _, _, _ = table.Open[offsets](fsys, path)
		if _, v, report := open(t, fsys.Crash()); report.Source != table.Backup || !cmp.Equal(v, generation(1)) {
			t.Fatalf("at operation %d: %+v, %v", n, v, report)
		}
	}
}

// TestEveryOperationFails: the error comes out, the old or the new content is
// read, and saving works again.
func TestEveryOperationFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for n := int64(1); ; n++ {
		below := memfs.New(1)
		d, _, _ := open(t, below)
		save(t, d, generation(1))
		save(t, d, generation(2))
		hook := faultfs.Nth(n, broken)
		on := false
		fsys := faultfs.Wrap(below, func(op faultfs.Op, name string) error {
			if !on {
				return nil
			}
			return hook(op, name)
		})
		d, _, _ = open(t, fsys)
		on = true
		err := d.Save(generation(3))
		on = false
		if err == nil {
			if n < 5 {
				t.Errorf("only %d operations", n)
			}
			return
		}
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), path) {
			t.Errorf("operation %d: %v", n, err)
		}
		if _, v, report := open(t, below.KillClone()); report.Damaged != nil || !cmp.Equal(v, generation(2)) && !cmp.Equal(v, generation(3)) {
			t.Errorf("operation %d: read %+v, %v", n, v, report)
		}
		save(t, d, generation(4))
		if _, v, report := open(t, below); report.Source != table.File || !cmp.Equal(v, generation(4)) {
			t.Errorf("operation %d: saved again, read %+v, %v", n, v, report)
		}
	}
}

func TestSaveOfWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	fsys := memfs.New(1)
	d, _, _, err := table.Open[map[string]any](fsys, path)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Save(map[string]any{"f": func() {}}); err == nil {
		t.Error("a function was saved")
	}
	if _, err := fsys.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left something: %v", err)
	}
}

func BenchmarkSave(b *testing.B) {
	for _, groups := range []int{10, 1000} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			d, _, _, err := table.Open[offsets](vfs.OS(), b.TempDir()+"/offsets.json")
			if err != nil {
				b.Fatal(err)
			}
			v := offsets{Table: map[string]map[int32]int64{}}
			for i := range groups {
				v.Table[fmt.Sprintf("topic-%d@group", i)] = map[int32]int64{0: 1, 1: 2, 2: 3, 3: 4}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Save(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
