package txn

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// The journal, DIR/sundial/txn.journal, says what was open up to a position of the
// log, so that a start need not read all of it, and what the log does not say: how
// often a producer was asked and when the next time is due.
//
//	"SDLTXN" 0 1                                     8 bytes
//	frames:  length of payload                       4
//	         CRC-32C of payload                      4
//	         payload: entries, one behind the other
//	entries: 'o' open half      offset 8  log position 8  due 8  born 8  tries 2
//	                            group: length 2, text  topic: length 2, text
//	         'x' ended half     offset 8
//	         'a' abandoned      offset 8  log position 8  half 8  decided 8  state 1
//	         'm' mark           log position 8  lowest open half 8  lowest mark 8
//
// A frame with a mark ends a step: all records of the log below its position are
// counted in. Steps are appended; each holds what is different since the step
// before. When steps that are outdated take more room than what is true, the file
// is written anew, to a second file that then takes its place.
//
// A reader stops at the first frame that is not whole and goes back to the last
// mark: what came later stands in the log.
type journal struct {
	fs   vfs.FS
	path string
	file vfs.File // nil: write anew
	size int64    // of what is whole
	full int64    // size when it was last written anew
}

var journalMagic = []byte("SDLTXN\x00\x01")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxFrame bounds a frame, and so the memory to read one.
const maxFrame = 1 << 20

// mark is the end of a step.
type mark struct {
	log     mq.LogOffset // records below are counted in
	lowHalf int64        // all halves below are ended
	lowMark int64        // marks below name no half from lowHalf on
}

// image is what a journal says.
type image struct {
	table   halves
	aside   abandons
	mark    mark
	written bool // there is a mark
}

// readJournal reads the file at path. A missing one is an empty image; one that
// is no journal at all is an error that wraps a [*mq.CorruptionError].
func readJournal(fsys vfs.FS, path string) (*journal, *image, error) {
	j := &journal{fs: fsys, path: path}
	raw, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, &image{}, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	im, good, err := parseJournal(raw)
	if err != nil {
		return nil, nil, &mq.CorruptionError{File: path, Err: err}
	}
	j.size, j.full = int64(good), int64(good)
	if good == len(raw) {
		// Otherwise the next save writes it anew, without the torn end.
		if j.file, err = fsys.Open(path); err != nil {
			return nil, nil, fmt.Errorf("open %s: %w", path, err)
		}
	}
	return j, im, nil
}

// parseJournal returns what the whole steps say, and how many bytes they take.
func parseJournal(raw []byte) (*image, int, error) {
	im := &image{}
	if len(raw) < len(journalMagic) || string(raw[:len(journalMagic)]) != string(journalMagic) {
		return nil, 0, errors.New("it does not begin like a journal of transactions")
	}
	good, step := len(journalMagic), [][]byte(nil)
	for at := good; len(raw)-at >= 8; {
		n := int(bin.Uint32(raw[at:]))
		if n > maxFrame || n > len(raw)-at-8 {
			break
		}
		payload := raw[at+8 : at+8+n]
		if crc32.Checksum(payload, castagnoli) != bin.Uint32(raw[at+4:]) {
			break
		}
		at += 8 + n
		step = append(step, payload)
		if n < markSize || payload[n-markSize] != 'm' {
			continue
		}
		// A last entry of another kind may have an m there; then this is no mark, and
		// the step goes on.
		ends, err := endsInMark(payload)
		if err != nil {
			return nil, 0, fmt.Errorf("frame before byte %d: %w", at, err)
		}
		if !ends {
			continue
		}
		for _, p := range step {
			if err := im.apply(p); err != nil {
				return nil, 0, fmt.Errorf("frame before byte %d: %w", at, err)
			}
		}
		good, step = at, nil
	}
	if !im.written {
		return nil, 0, errors.New("no step of it is whole")
	}
	im.table.settled()
	im.aside.settled()
	return im, good, nil
}

const markSize = 25

// entry is one entry of a frame.
type entry struct {
	kind         byte
	half         half
	group, topic string
	aside        abandoned
	mark         mark
}

// nextEntry reads one.
func nextEntry(r *bin.Reader) (entry, error) {
	e := entry{kind: r.Uint8()}
	switch e.kind {
	case 'o':
		e.half = half{off: r.Int64(), pos: mq.LogOffset(r.Int64()), due: r.Int64(), born: r.Int64(), tries: r.Uint16()}
		e.group = r.String(int(r.Uint16()))
		e.topic = r.String(int(r.Uint16()))
	case 'x':
		e.half.off = r.Int64()
	case 'a':
		e.aside = abandoned{off: r.Int64(), pos: mq.LogOffset(r.Int64()), half: r.Int64(), decided: r.Int64(), state: State(r.Uint8())}
	case 'm':
		e.mark = mark{mq.LogOffset(r.Int64()), r.Int64(), r.Int64()}
	default:
		r.Fail(fmt.Errorf("unknown entry %q", e.kind))
	}
	return e, r.Err()
}

func endsInMark(payload []byte) (bool, error) {
	last := byte(0)
	for r := bin.NewReader(payload); r.Len() > 0; {
		e, err := nextEntry(r)
		if err != nil {
			return false, err
		}
		last = e.kind
	}
	return last == 'm', nil
}

func (im *image) apply(payload []byte) error {
	for r := bin.NewReader(payload); r.Len() > 0; {
		e, err := nextEntry(r)
		if err != nil {
			return err
		}
		switch e.kind {
		case 'o':
			h := im.table.add(e.half, e.group, e.topic)
			im.table.touch(h)
		case 'x':
			if h := im.table.find(e.half.off); h != nil {
				im.table.close(h)
			}
			im.table.prune()
		case 'a':
			im.aside.put(e.aside)
		case 'm':
			im.mark, im.written = e.mark, true
		}
	}
	return nil
}

func appendOpen(b []byte, h *half, group, topic string) []byte {
	b = append(b, 'o')
	b = bin.AppendInt64(b, h.off)
	b = bin.AppendInt64(b, int64(h.pos))
	b = bin.AppendInt64(b, h.due)
	b = bin.AppendInt64(b, h.born)
	b = bin.AppendUint16(b, h.tries)
	b = append(bin.AppendUint16(b, uint16(len(group))), group...)
	return append(bin.AppendUint16(b, uint16(len(topic))), topic...)
}

func appendEnded(b []byte, off int64) []byte { return bin.AppendInt64(append(b, 'x'), off) }

func appendAbandoned(b []byte, x *abandoned) []byte {
	b = append(b, 'a')
	b = bin.AppendInt64(b, x.off)
	b = bin.AppendInt64(b, int64(x.pos))
	b = bin.AppendInt64(b, x.half)
	b = bin.AppendInt64(b, x.decided)
	return append(b, byte(x.state))
}

func appendMark(b []byte, m mark) []byte {
	b = append(b, 'm')
	b = bin.AppendInt64(b, int64(m.log))
	b = bin.AppendInt64(b, m.lowHalf)
	return bin.AppendInt64(b, m.lowMark)
}

// frames puts entries into frames.
type frames struct {
	b     []byte
	begin int // of the open frame
}

func (f *frames) start() {
	f.begin = len(f.b)
	f.b = append(f.b, 0, 0, 0, 0, 0, 0, 0, 0)
}

func (f *frames) end() {
	payload := f.b[f.begin+8:]
	bin.PutUint32(f.b[f.begin:], uint32(len(payload)))
	bin.PutUint32(f.b[f.begin+4:], crc32.Checksum(payload, castagnoli))
}

// room begins a new frame when the next entry might not fit into the open one.
func (f *frames) room() {
	if len(f.b)-f.begin > maxFrame/2 {
		f.end()
		f.start()
	}
}

// whole is everything in t and a.
func whole(t *halves, a *abandons, m mark) []byte {
	f := &frames{b: append(make([]byte, 0, 64+80*t.open), journalMagic...)}
	f.start()
	for i := range t.list {
		if h := &t.list[i]; !h.is(closed) {
			f.b = appendOpen(f.b, h, t.groups.text(h.group), t.topics.text(h.topic))
			f.room()
		}
	}
	for i := range a.list {
		f.b = appendAbandoned(f.b, &a.list[i])
		f.room()
	}
	f.b = appendMark(f.b, m)
	f.end()
	return f.b
}

// changes is what the journal does not know yet.
func changes(t *halves, a *abandons, m mark) []byte {
	f := &frames{}
	f.start()
	for _, off := range t.dirty {
		i, ok := t.index(off)
		if !ok {
			continue
		}
		h := &t.list[i]
		switch {
		case !h.is(closed):
			f.b = appendOpen(f.b, h, t.groups.text(h.group), t.topics.text(h.topic))
		case h.is(saved):
			f.b = appendEnded(f.b, off)
		}
		f.room()
	}
	if a.dirty > 0 {
		for i := range a.list {
			if x := &a.list[i]; x.dirty {
				f.b = appendAbandoned(f.b, x)
				f.room()
			}
		}
	}
	f.b = appendMark(f.b, m)
	f.end()
	return f.b
}

// anew reports whether the next save has to write everything.
func (j *journal) anew() bool { return j.file == nil || j.size > 2*j.full+1<<20 }

// append adds a step durably.
func (j *journal) append(step []byte) error {
	_, err := j.file.WriteAt(step, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		_ = j.file.Close()
		j.file = nil // what stands there now is not known
		return fmt.Errorf("append to %s: %w", j.path, err)
	}
	j.size += int64(len(step))
	return nil
}

// write replaces the file durably.
func (j *journal) write(content []byte) error {
	if j.file != nil {
		_ = j.file.Close()
		j.file = nil
	}
	if err := j.replace(content); err != nil {
		return fmt.Errorf("write %s: %w", j.path, err)
	}
	j.size, j.full = int64(len(content)), int64(len(content))
	return nil
}

func (j *journal) replace(content []byte) error {
	tmp := j.path + ".tmp"
	f, err := j.fs.Create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(content, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := j.fs.Rename(tmp, j.path); err != nil {
		return err
	}
	if err := j.fs.SyncDir(filepath.Dir(j.path)); err != nil {
		return err
	}
	j.file, err = j.fs.Open(j.path)
	return err
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	return f.Close()
}

// setAside moves a damaged journal out of the way.
func setAside(fsys vfs.FS, path string) (string, error) {
	to := path + ".damaged-" + time.Now().Format("20060102T150405.000")
	if err := fsys.Rename(path, to); err != nil {
		return "", fmt.Errorf("set %s aside: %w", path, err)
	}
	return to, fsys.SyncDir(filepath.Dir(path))
}
