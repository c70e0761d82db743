package pending

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"path/filepath"
	"sort"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// run is a run file opened for reading. Its content does not change; refs is
// guarded by Index.mu.
type run struct {
	name    string // in the index's directory
	file    vfs.File
	n       int64
	lastDue int64
	dues    []int64 // of the first entry of each block
	seqs    []mq.QueueOffset

	refs int // sources and scans that read it
}

func openRun(fsys vfs.FS, dir, name string) (*run, error) {
	path := filepath.Join(dir, name)
	f, err := fsys.OpenRead(path)
	if err != nil {
		return nil, err
	}
	r, err := readRun(f)
	if err != nil {
		f.Close()
		return nil, &mq.CorruptionError{File: path, Err: err}
	}
	r.name = name
	return r, nil
}

func readRun(f vfs.File) (*run, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size < tailSize {
		return nil, fmt.Errorf("file has %d bytes, a run has at least %d", size, tailSize)
	}
	var tb [tailSize]byte
	if _, err := f.ReadAt(tb[:], size-tailSize); err != nil {
		return nil, err
	}
	t, err := getTail(tb[:], size)
	if err != nil {
		return nil, err
	}
	sparse := make([]byte, t.blocks*sparseSize)
	if _, err := f.ReadAt(sparse, int64(t.blocks)*blockSize); err != nil && len(sparse) > 0 {
		return nil, err
	}
	if got := crc32.Checksum(sparse, castagnoli); got != t.sparse {
		return nil, fmt.Errorf("checksum of the sparse index is %08x, the tail says %08x", got, t.sparse)
	}
	r := &run{file: f, n: t.entries, lastDue: t.lastDue, dues: make([]int64, t.blocks), seqs: make([]mq.QueueOffset, t.blocks)}
	for i := range r.dues {
		r.dues[i] = int64(binary.BigEndian.Uint64(sparse[i*sparseSize:]))
		r.seqs[i] = mq.QueueOffset(binary.BigEndian.Uint64(sparse[i*sparseSize+8:]))
	}
	return r, nil
}

// count is how many entries a block has.
func (r *run) count(block int) int { return int(min(perBlock, r.n-int64(block)*perBlock)) }

// read decodes a block into dst, which has room for perBlock; raw has blockSize.
func (r *run) read(block int, raw []byte, dst []Entry) ([]Entry, error) {
	if _, err := r.file.ReadAt(raw, int64(block)*blockSize); err != nil {
		return nil, fmt.Errorf("read block %d of %s: %w", block, r.name, err)
	}
	n := r.count(block)
	if err := getBlock(raw, n, dst[:n]); err != nil {
		return nil, &mq.CorruptionError{File: r.file.Name(), Offset: int64(block) * blockSize, Err: err}
	}
	return dst[:n], nil
}

// find returns the index of the first entry that is not before (due, seq).
func (r *run) find(due int64, seq mq.QueueOffset) (int64, error) {
	key := Entry{Due: due, Seq: seq}
	// The block behind the one that may hold it.
	next := sort.Search(len(r.dues), func(i int) bool {
		first := Entry{Due: r.dues[i], Seq: r.seqs[i]}
		return !first.before(&key)
	})
	if next == 0 {
		return 0, nil
	}
	entries, err := r.read(next-1, make([]byte, blockSize), make([]Entry, perBlock))
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(entries), func(i int) bool { return !entries[i].before(&key) })
	return int64(next-1)*perBlock + int64(i), nil
}

// source reads entries lo..hi-1 of a run in order.
type source struct {
	run    *run
	lo, hi int64
	herd   bool // all due in one millisecond

	raw   []byte
	buf   []Entry // decoded block
	block int     // which, -1 none
}

func newSource(r *run, lo, hi int64) *source { return &source{run: r, lo: lo, hi: hi, block: -1} }

// head returns the next entry, nil when there is none. It may read.
func (s *source) head() (*Entry, error) {
	if s.lo >= s.hi {
		return nil, nil
	}
	block := int(s.lo / perBlock)
	if block != s.block {
		if s.raw == nil {
			s.raw, s.buf = make([]byte, blockSize), make([]Entry, perBlock)
		}
		if _, err := s.run.read(block, s.raw, s.buf[:perBlock]); err != nil {
			s.block = -1
			return nil, err
		}
		s.block = block
	}
	return &s.buf[s.lo%perBlock], nil
}

// buffered returns the next entry if it can be had without reading.
func (s *source) buffered() *Entry {
	if s.lo >= s.hi || int(s.lo/perBlock) != s.block {
		return nil
	}
	return &s.buf[s.lo%perBlock]
}

// writeRun makes a run file of sorted entries, durable but for its directory.
func writeRun(fsys vfs.FS, dir, name string, entries iter.Seq2[Entry, error]) (n int64, err error) {
	path := filepath.Join(dir, name)
	f, err := fsys.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = fmt.Errorf("write run: %w", err)
			fsys.Remove(path)
		}
	}()
	w := bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 1<<20)
	var sparse []byte
	var t tail
	block := make([]byte, blockSize)
	var part []Entry
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		putBlock(block, part)
		sparse = binary.BigEndian.AppendUint64(sparse, uint64(part[0].Due))
		sparse = binary.BigEndian.AppendUint64(sparse, uint64(part[0].Seq))
		t.blocks++
		t.entries += int64(len(part))
		t.lastDue = part[len(part)-1].Due
		part = part[:0]
		_, err := w.Write(block)
		return err
	}
	for e, err := range entries {
		if err != nil {
			return 0, err
		}
		if part = append(part, e); len(part) == perBlock {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if err := flush(); err != nil {
		return 0, err
	}
	t.sparse = crc32.Checksum(sparse, castagnoli)
	var tb [tailSize]byte
	t.put(tb[:])
	for _, b := range [][]byte{sparse, tb[:]} {
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	return t.entries, f.Sync()
}
