package keyindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// The mark, a file of ours, says how much of the last index file is durable:
//
//	offset  bytes  field
//	0       8      "SUNDIDX1"
//	8       24     name of the index file, filled up with zeros
//	32      4      number of the next entry: all before it are durable
//	36      4      zeros
//	40      8      end offset at that time
//	48      8      end time at that time
//	56      4      CRC-32/IEEE of what is before
//
// Entries never change once they are written. So after any crash the marked ones
// are good, and slots and header can be made from them again, whatever happened
// to their pages.
const (
	markMagic = "SUNDIDX1"
	markSize  = 60

	atMarkName   = 8
	atMarkNext   = 32
	atMarkOffset = 40
	atMarkTime   = 48
	atMarkCRC    = 56
)

// mark is a position in the last index file.
type mark struct {
	name string
	next int32
	end  mq.LogOffset
	time int64
}

func (m mark) encode() []byte {
	b := make([]byte, markSize)
	copy(b, markMagic)
	copy(b[atMarkName:atMarkNext], m.name)
	binary.BigEndian.PutUint32(b[atMarkNext:], uint32(m.next))
	binary.BigEndian.PutUint64(b[atMarkOffset:], uint64(m.end))
	binary.BigEndian.PutUint64(b[atMarkTime:], uint64(m.time))
	binary.BigEndian.PutUint32(b[atMarkCRC:], crc32.ChecksumIEEE(b[:atMarkCRC]))
	return b
}

// decodeMark reads a mark; what is none is an error, which costs the follower some
// time and nothing else.
func decodeMark(b []byte) (m mark, err error) {
	if len(b) != markSize || string(b[:len(markMagic)]) != markMagic || binary.BigEndian.Uint32(b[atMarkCRC:]) != crc32.ChecksumIEEE(b[:atMarkCRC]) {
		return m, errors.New("not a mark")
	}
	name := b[atMarkName:atMarkNext]
	for len(name) > 0 && name[len(name)-1] == 0 {
		name = name[:len(name)-1]
	}
	return mark{
		name: string(name), next: int32(binary.BigEndian.Uint32(b[atMarkNext:])),
		end: mq.LogOffset(binary.BigEndian.Uint64(b[atMarkOffset:])), time: int64(binary.BigEndian.Uint64(b[atMarkTime:])),
	}, nil
}

// Mark makes what is in the index durable and writes the mark, if one is
// configured. An unclean stop later costs what came after it.
func (x *Index) Mark() error {
	if x.cfg.Mark == "" {
		return x.Sync()
	}
	x.marking.Lock()
	defer x.marking.Unlock()
	x.mu.RLock()
	n := len(x.mu.files)
	if n == 0 || x.mu.closed || x.mu.files[n-1].empty() {
		x.mu.RUnlock()
		return nil
	}
	f := x.mu.files[n-1]
	m := mark{name: f.name, next: f.next(), end: f.endOffset(), time: f.i64(atEndTime)}
	x.mu.RUnlock()
	if m == x.marked {
		return nil
	}
	// Put goes on meanwhile. Close, Cut and Expire wait for marking.
	if err := f.f.Sync(); err != nil {
		return fmt.Errorf("sync index file %s: %w", f.name, err)
	}
	if err := replaceFile(x.fs, x.cfg.Mark, m.encode()); err != nil {
		return fmt.Errorf("write index mark: %w", err)
	}
	x.marked = m
	return nil
}

func replaceFile(fsys vfs.FS, path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(b, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// dropMark makes the mark void before what it names changes.
func (x *Index) dropMark() error {
	x.marked = mark{}
	if x.cfg.Mark == "" {
		return nil
	}
	err := x.fs.Remove(x.cfg.Mark)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = x.fs.SyncDir(filepath.Dir(x.cfg.Mark))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove index mark: %w", err)
	}
	return nil
}

// restore opens the last file as it was marked, after an unclean stop. It returns
// nil if there is no mark of it, or if the marked entries are not what they must
// be: the file is dropped then.
func (x *Index) restore(name string) (*file, error) {
	if x.cfg.Mark == "" {
		return nil, nil
	}
	raw, err := x.fs.ReadFile(x.cfg.Mark)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read index mark: %w", err)
	}
	m, err := decodeMark(raw)
	if err != nil || m.name != name {
		return nil, nil
	}
	f, err := x.openFile(name)
	if err != nil {
		return nil, err
	}
	if m.next <= 1 || m.next > f.limit || f.entryOffset(m.next-1) != m.end || f.rewind(m.next, m.time) != nil || f.check() != nil {
		return nil, f.close()
	}
	x.marked = m
	return f, nil
}
