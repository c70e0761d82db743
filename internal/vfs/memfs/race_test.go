package memfs

import (
	"sync"
	"testing"
)

// As on a real disk, Sync, Crash and growth may run while the owner of a mapping
// stores to it; -race has nothing to say.
func TestStoresWhileTheDiskSyncsAndCrashes(t *testing.T) {
	t.Parallel()
	d := New(1)
	f := write(t, d, "a", "", false)
	must(t, f.Allocate(8*pageSize))
	must(t, d.SyncDir(""))
	m, err := f.Map(8*pageSize, true)
	must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		b := m.Bytes()
		for i := range 20000 {
			b[i%len(b)] = byte(i)
		}
	})
	for i := range 20 {
		must(t, f.Sync())
		d.Crash()
		d.KillClone()
		must(t, f.Truncate(int64(9+i)<<18))
	}
	wg.Wait()
	must(t, f.Sync())
	b, err := d.CrashKeeping(0).ReadFile("a")
	must(t, err)
	if string(b[:8*pageSize]) != string(m.Bytes()) {
		t.Error("the last sync missed a store")
	}
}
