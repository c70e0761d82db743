package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/commitlog"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// DIR/sundial/state has two slots of 512 bytes, at 0 and at 4096, written in
// turn, so that one is whole whatever is lost while the other is written. The
// slot with the higher sequence counts. A slot, all numbers big-endian:
//
//	offset  bytes  field
//	0       8      magic "SUNSTATE"
//	8       4      version: 1
//	12      4      flags: 1 the store was stopped clean
//	16      8      sequence
//	24      8      covered: the log up to here, and the queue entries of all
//	               records before it, are durable
//	32      8      start of the last record before covered, -1 for none
//	40      8      store time of that record, ms
//	48      4      CRC of the first 48 bytes of checkpoint when this was written
//	52      4      CRC of what they were to become right after
//	56      4      CRC-32/IEEE of the bytes before
//	60      452    zero
const (
	stateMagic   = "SUNSTATE"
	stateVersion = 1
	stateSlot    = 512
	stateStride  = 4096
	stateUsed    = 60

	stateClean = 1
)

// state is what the store knew of itself.
type state struct {
	clean      bool
	seq        uint64
	covered    commitlog.Mark
	checkpoint [2]uint32
}

func (s state) append(dst []byte) []byte {
	from := len(dst)
	var flags uint32
	if s.clean {
		flags = stateClean
	}
	dst = append(dst, stateMagic...)
	dst = bin.AppendUint32(dst, stateVersion)
	dst = bin.AppendUint32(dst, flags)
	dst = bin.AppendUint64(dst, s.seq)
	dst = bin.AppendInt64(dst, int64(s.covered.End))
	dst = bin.AppendInt64(dst, int64(s.covered.Last))
	dst = bin.AppendInt64(dst, s.covered.StoreTime)
	dst = bin.AppendUint32(dst, s.checkpoint[0])
	dst = bin.AppendUint32(dst, s.checkpoint[1])
	dst = bin.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
	return append(dst, make([]byte, stateSlot-stateUsed)...)
}

func decodeState(b []byte) (state, error) {
	if len(b) < stateUsed {
		return state{}, fmt.Errorf("%d bytes, a slot has %d", len(b), stateSlot)
	}
	if got, want := crc32.ChecksumIEEE(b[:stateUsed-4]), bin.Uint32(b[stateUsed-4:]); got != want {
		return state{}, fmt.Errorf("CRC is %08X, the slot says %08X", got, want)
	}
	r := bin.NewReader(b)
	if m := r.String(len(stateMagic)); m != stateMagic {
		return state{}, fmt.Errorf("magic is %q", m)
	}
	if v := r.Uint32(); v != stateVersion {
		return state{}, fmt.Errorf("version is %d, this program knows %d", v, stateVersion)
	}
	s := state{clean: r.Uint32()&stateClean != 0, seq: r.Uint64()}
	s.covered.End = mq.LogOffset(r.Int64())
	s.covered.Last = mq.LogOffset(r.Int64())
	s.covered.StoreTime = r.Int64()
	s.checkpoint = [2]uint32{r.Uint32(), r.Uint32()}
	if s.covered.End < 0 || s.covered.Last >= s.covered.End && s.covered.Last != -1 {
		return state{}, fmt.Errorf("covered up to %d, last record at %d", s.covered.End, s.covered.Last)
	}
	return s, r.Err()
}

// readState returns the younger whole slot; false when there is none.
func readState(fsys vfs.FS, path string) (state, bool, error) {
	b, err := fsys.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, false, nil
	}
	if err != nil {
		return state{}, false, fmt.Errorf("read store state: %w", err)
	}
	var best state
	found := false
	for _, at := range []int{0, stateStride} {
		if len(b) < at {
			break
		}
		if s, err := decodeState(b[at:]); err == nil && (!found || s.seq > best.seq) {
			best, found = s, true
		}
	}
	return best, found, nil
}

// writeState replaces the older slot, durably.
func writeState(fsys vfs.FS, path, dir string, s state) error {
	f, err := fsys.Open(path)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = fsys.Create(path)
	}
	if err != nil {
		return fmt.Errorf("open store state: %w", err)
	}
	_, err = f.WriteAt(s.append(nil), int64(s.seq%2)*stateStride)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && made {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write store state: %w", err)
	}
	return nil
}
