package pending

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// manifest is DIR/manifest.json: a checkpoint.
type manifest struct {
	Format int            `json:"format"` // 1
	Store  string         `json:"store"`  // id, see storage.Store.ID
	Log    mq.LogOffset   `json:"log"`    // receipts and recalls below are counted in
	Next   mq.QueueOffset `json:"next"`   // entries below are counted in
	Runs   []manifestRun  `json:"runs"`
	Loose  string         `json:"loose,omitempty"` // run file of what was in memory
	Gone   string         `json:"gone,omitempty"`  // bitmap of those done before their time
	Topics []TopicCount   `json:"topics"`          // by number

	// What is due before this was handed over: it is done, loose, or in a range of a herd.
	HorizonDue int64          `json:"horizonDue"`
	HorizonSeq mq.QueueOffset `json:"horizonSeq"`

	NextID int64 `json:"nextFile"`

	// Damaged asks the next start to build the index anew.
	Damaged string `json:"damaged,omitempty"`
}

// manifestRun is what is not taken from a run.
type manifestRun struct {
	File   string     `json:"file"`
	Ranges [][2]int64 `json:"ranges"` // entries from, to (exclusive)
}

const (
	manifestName   = "manifest.json"
	manifestFormat = 1
	runSuffix      = ".run"
	goneSuffix     = ".gone"
)

func (m *manifest) files() map[string]bool {
	set := map[string]bool{}
	for _, r := range m.Runs {
		set[r.File] = true
	}
	for _, name := range []string{m.Loose, m.Gone} {
		if name != "" {
			set[name] = true
		}
	}
	return set
}

// Open reads the last checkpoint of the index in dir. If it cannot be used the
// index is empty and State says why; what it needs is in the log. Durable, Fence and Flush
// are not called before the first entry is added.
func Open(fsys vfs.FS, dir string, cfg Config) (*Index, State, error) {
	if err := cfg.Validate(); err != nil {
		return nil, State{}, fmt.Errorf("index of pending messages: %w", err)
	}
	x := newIndex(fsys, dir, cfg)
	doc, man, report, err := table.Open[manifest](fsys, filepath.Join(dir, manifestName))
	if err == nil && report.Source == table.Nothing {
		x.save.doc, x.save.nextFile = doc, 1
		return x, State{}, x.clean(nil)
	}
	if err == nil {
		if report.Damaged != nil {
			x.note.Warn("index of pending messages", "report", report.String())
		}
		if err = x.restore(&man); err == nil {
			x.save.doc, x.save.now, x.save.before, x.save.nextFile = doc, man, man, man.NextID
			st := State{Next: man.Next, Log: man.Log, Store: man.Store}
			for _, t := range x.mu.out {
				st.Out = append(st.Out, t.Entry)
			}
			return x, st, nil
		}
	}
	damage := err
	var corrupt *mq.CorruptionError
	if !errors.As(err, &corrupt) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errUnusable) {
		return nil, State{}, fmt.Errorf("open index of pending messages: %w", err)
	}
	x.closeRuns()
	x = newIndex(fsys, dir, cfg)
	doc, _, err = table.Reset[manifest](fsys, filepath.Join(dir, manifestName))
	if err != nil {
		return nil, State{}, fmt.Errorf("open index of pending messages: %w", err)
	}
	x.save.doc, x.save.nextFile = doc, 1
	return x, State{Rebuilt: damage}, x.clean(nil)
}

// errUnusable says that a checkpoint is whole but of no use.
var errUnusable = errors.New("cannot be used")

// restore fills an empty index from a manifest.
func (x *Index) restore(man *manifest) error {
	switch {
	case man.Format != manifestFormat:
		return fmt.Errorf("manifest of format %d %w, this program knows %d", man.Format, errUnusable, manifestFormat)
	case man.Damaged != "":
		return fmt.Errorf("manifest %w: %s", errUnusable, man.Damaged)
	}
	m := &x.mu
	m.next = man.Next
	m.horizon = Entry{Due: man.HorizonDue, Seq: man.HorizonSeq}
	m.topics = slices.Clone(man.Topics)
	for i, t := range m.topics {
		m.numbers[t.Topic] = uint32(i)
		m.pending += t.Pending
	}
	for _, mr := range man.Runs {
		r, err := openRun(x.fs, x.dir, mr.File)
		if err != nil {
			return err
		}
		x.retain(r)
		for _, rg := range mr.Ranges {
			if rg[0] < 0 || rg[0] > rg[1] || rg[1] > r.n {
				return fmt.Errorf("manifest %w: range %v of %s, which has %d entries", errUnusable, rg, mr.File, r.n)
			}
			x.retain(r)
			if err := x.admit(newSource(r, rg[0], rg[1])); err != nil {
				return err
			}
		}
		x.release(r)
	}
	if man.Loose != "" {
		r, err := openRun(x.fs, x.dir, man.Loose)
		if err != nil {
			return err
		}
		defer r.file.Close()
		s := newSource(r, 0, r.n)
		for e, err := range s.all() {
			if err != nil {
				return err
			}
			if e.before(&m.horizon) {
				m.out[e.Seq] = taken{Entry: e}
			} else {
				m.table.push(e)
			}
		}
	}
	if man.Gone != "" {
		gone, err := readGone(x.fs, filepath.Join(x.dir, man.Gone))
		if err != nil {
			return err
		}
		m.gone = gone
	}
	return nil
}

func (x *Index) closeRuns() {
	for _, s := range x.sourcesLocked() {
		x.release(s.run)
	}
}

// Close gives back the files. It saves nothing; Checkpoint does.
func (x *Index) Close() {
	x.save.Lock()
	defer x.save.Unlock()
	x.load.Lock()
	defer x.load.Unlock()
	x.closeRuns()
	x.load.heads, x.load.broken, x.load.herds = nil, nil, map[int32]*source{}
}

// all yields what is left of a source.
func (s *source) all() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			e, err := s.head()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if e == nil {
				return
			}
			s.lo++
			if !yield(*e, nil) {
				return
			}
		}
	}
}

// Oldest is the log position that a start may need to read receipts from, should
// it have to fall back to the checkpoint before the last.
func (x *Index) Oldest() mq.LogOffset {
	x.save.Lock()
	defer x.save.Unlock()
	return x.save.before.Log
}

// Checkpoint writes down what is durable. Entries are added in the order of the
// queue, so it may run beside everything else.
func (x *Index) Checkpoint(store string) error {
	x.save.Lock()
	defer x.save.Unlock()
	sealed, err := x.seal()
	if err != nil {
		return fmt.Errorf("checkpoint of pending messages: %w", err)
	}
	snap, err := x.snapshot(store, sealed)
	if err != nil {
		return fmt.Errorf("checkpoint of pending messages: %w", err)
	}
	if err := x.publish(snap); err != nil {
		return fmt.Errorf("checkpoint of pending messages: %w", err)
	}
	return nil
}

// fileName is a name not used before; save is held.
func (x *Index) fileName(suffix string) string {
	x.save.nextFile++
	return fmt.Sprintf("%016d%s", x.save.nextFile, suffix)
}

// seal writes the table as a run if it is large, or what an attempt before has
// left frozen. It returns nil when there is nothing to write.
func (x *Index) seal() (*run, error) {
	m := &x.mu
	m.Lock()
	if len(m.frozen) == 0 && len(m.table) >= x.cfg.TableEntries/4 {
		m.frozen, m.table = m.table, nil
	}
	entries := slices.Clone([]Entry(m.frozen))
	m.Unlock()
	if len(entries) == 0 {
		return nil, nil
	}
	slices.SortFunc(entries, compare)
	var end mq.LogOffset
	for i := range entries {
		end = max(end, entries[i].end())
	}
	name := x.fileName(runSuffix)
	if _, err := writeRun(x.fs, x.dir, name, plain(entries)); err != nil {
		return nil, err
	}
	if x.cfg.Durable() < end {
		if err := x.cfg.Flush(); err != nil {
			return nil, err
		}
		if d := x.cfg.Durable(); d < end {
			return nil, fmt.Errorf("log is durable to %d after a flush, want %d", d, end)
		}
	}
	return openRun(x.fs, x.dir, name)
}

func plain(entries []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// snapshot is what a checkpoint will say.
type snapshot struct {
	man   manifest
	loose []Entry
	gone  *roaring64.Bitmap
}

// snapshot makes a sealed table a run like the others and looks at everything at once.
func (x *Index) snapshot(store string, sealed *run) (*snapshot, error) {
	durable := x.cfg.Fence()
	x.load.Lock()
	defer x.load.Unlock()
	m := &x.mu
	if sealed != nil {
		// What was taken from the frozen table meanwhile are its first entries.
		m.Lock()
		taken := sealed.n - int64(len(m.frozen))
		m.frozen = nil
		m.Unlock()
		x.retain(sealed)
		if err := x.admit(newSource(sealed, taken, sealed.n)); err != nil {
			x.load.lost = err // just written and not readable: the next start builds anew
		}
	}
	s := &snapshot{man: manifest{Format: manifestFormat, Store: store, Log: durable}}
	if x.load.lost != nil {
		s.man.Damaged = x.load.lost.Error()
	}
	ranges := map[string][][2]int64{}
	for _, src := range x.sourcesLocked() {
		ranges[src.run.name] = append(ranges[src.run.name], [2]int64{src.lo, src.hi})
	}
	for name, rs := range ranges {
		slices.SortFunc(rs, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		s.man.Runs = append(s.man.Runs, manifestRun{name, rs})
	}
	slices.SortFunc(s.man.Runs, func(a, b manifestRun) int { return strings.Compare(a.File, b.File) })

	m.Lock()
	defer m.Unlock()
	x.settleLocked(durable)
	s.man.Topics = slices.Clone(m.topics)
	count := func(topic uint32, n int64) {
		if int(topic) < len(s.man.Topics) {
			s.man.Topics[topic].Pending += n
		}
	}
	// Entries whose records are not durable stay out of it; the queue has them.
	s.man.HorizonDue, s.man.HorizonSeq = m.horizon.Due, m.horizon.Seq
	next := m.next
	for _, t := range m.out {
		if t.end() > durable {
			next = min(next, t.Seq)
		}
	}
	for i := range m.table {
		if m.table[i].end() > durable {
			next = min(next, m.table[i].Seq)
		}
	}
	s.man.Next = next
	for _, t := range m.out {
		switch {
		case t.Seq < next:
			s.loose = append(s.loose, t.Entry) // marks that are not durable do not count yet
			if t.by != 0 {
				count(t.Topic, 1)
			}
		case t.by == 0:
			count(t.Topic, -1)
		}
	}
	for _, e := range m.table {
		if e.Seq < next {
			s.loose = append(s.loose, e)
		} else {
			count(e.Topic, -1)
		}
	}
	s.gone = m.gone.Clone()
	for _, mk := range m.marks {
		if _, recent := m.recent[mk.seq]; recent {
			s.gone.Remove(uint64(mk.seq))
			count(mk.topic, 1)
		}
	}
	return s, nil
}

// publish writes a snapshot and removes the files that no checkpoint names any more.
func (x *Index) publish(s *snapshot) error {
	if len(s.loose) > 0 {
		slices.SortFunc(s.loose, compare)
		s.man.Loose = x.fileName(runSuffix)
		if _, err := writeRun(x.fs, x.dir, s.man.Loose, plain(s.loose)); err != nil {
			return err
		}
	}
	if !s.gone.IsEmpty() {
		s.man.Gone = x.fileName(goneSuffix)
		if err := writeGone(x.fs, filepath.Join(x.dir, s.man.Gone), s.gone); err != nil {
			return err
		}
	}
	if err := x.fs.SyncDir(x.dir); err != nil {
		return err
	}
	s.man.NextID = x.save.nextFile
	if err := x.save.doc.Save(s.man); err != nil {
		return err
	}
	x.save.before, x.save.now = x.save.now, s.man
	return x.clean(x.save.before.files())
}

// clean removes the files of the index that neither the checkpoint on disk nor keep names.
func (x *Index) clean(keep map[string]bool) error {
	list, err := x.fs.ReadDir(x.dir)
	if err != nil {
		return err
	}
	named := x.save.now.files()
	for _, d := range list {
		name := d.Name()
		if s := filepath.Ext(name); (s == runSuffix || s == goneSuffix) && !named[name] && !keep[name] {
			if err := x.fs.Remove(filepath.Join(x.dir, name)); err != nil {
				x.note.Warn("remove old file of the index of pending messages", "err", err)
			}
		}
	}
	return nil
}

// A .gone file: CRC-32C of what follows (4 bytes, big-endian), then a 64-bit
// roaring bitmap in its portable form.

func writeGone(fsys vfs.FS, path string, gone *roaring64.Bitmap) (err error) {
	gone.RunOptimize()
	body, err := gone.ToBytes()
	if err != nil {
		return err
	}
	f, err := fsys.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), crc32.Checksum(body, castagnoli))
	if _, err := f.WriteAt(append(b, body...), 0); err != nil {
		return err
	}
	return f.Sync()
}

func readGone(fsys vfs.FS, path string) (*roaring64.Bitmap, error) {
	b, err := fsys.ReadFile(path)
	if err != nil {
		return nil, err
	}
	gone, err := decodeGone(b)
	if err != nil {
		return nil, &mq.CorruptionError{File: path, Err: err}
	}
	return gone, nil
}

func decodeGone(b []byte) (*roaring64.Bitmap, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("file has %d bytes, want at least 4", len(b))
	}
	if got, says := crc32.Checksum(b[4:], castagnoli), binary.BigEndian.Uint32(b); got != says {
		return nil, fmt.Errorf("checksum is %08x, it says %08x", got, says)
	}
	gone := roaring64.New()
	if _, err := gone.ReadFrom(bytes.NewReader(b[4:])); err != nil {
		return nil, err
	}
	return gone, nil
}
