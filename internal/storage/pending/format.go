package pending

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Entry is one pending message.
type Entry struct {
	Due   int64          // epoch ms
	Seq   mq.QueueOffset // its offset in the queue of pending messages, which is its name
	Log   mq.LogOffset   // of its record
	Size  int32          // of its record, bytes
	Topic uint32         // where it is to go, see Index.Topic
}

// end is the log position behind the entry's record.
func (e *Entry) end() mq.LogOffset { return e.Log + mq.LogOffset(e.Size) }

func (e *Entry) before(o *Entry) bool {
	return e.Due < o.Due || e.Due == o.Due && e.Seq < o.Seq
}

func compare(a, b Entry) int {
	switch {
	case a.before(&b):
		return -1
	case b.before(&a):
		return 1
	}
	return 0
}

// A run file, numbers big-endian:
//
//	block × blocks, 16,384 bytes each
//	  0  4  number of entries, 1..511 (511 but for the last block)
//	  4  4  CRC-32C of the entries
//	  8  32 × number: due 8 | seq 8 | log 8 | size 4 | topic 4; the rest is zero
//	sparse index: for each block due 8 | seq 8 of its first entry
//	tail, 48 bytes
//	  0  8  "SUNDPEND"
//	  8  4  format, 1
//	 12  4  blocks
//	 16  8  entries
//	 24  8  due of the last entry
//	 32  8  reserved, 0
//	 40  4  CRC-32C of the sparse index
//	 44  4  CRC-32C of tail 0..43
//
// Entries are sorted by due and seq, each pair once.
const (
	entrySize   = 32
	blockSize   = 16384
	blockHeader = 8
	perBlock    = (blockSize - blockHeader) / entrySize // 511
	sparseSize  = 16
	tailSize    = 48
	runMagic    = "SUNDPEND"
	runFormat   = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (e *Entry) put(b []byte) {
	binary.BigEndian.PutUint64(b, uint64(e.Due))
	binary.BigEndian.PutUint64(b[8:], uint64(e.Seq))
	binary.BigEndian.PutUint64(b[16:], uint64(e.Log))
	binary.BigEndian.PutUint32(b[24:], uint32(e.Size))
	binary.BigEndian.PutUint32(b[28:], e.Topic)
}

func (e *Entry) get(b []byte) {
	e.Due = int64(binary.BigEndian.Uint64(b))
	e.Seq = mq.QueueOffset(binary.BigEndian.Uint64(b[8:]))
	e.Log = mq.LogOffset(binary.BigEndian.Uint64(b[16:]))
	e.Size = int32(binary.BigEndian.Uint32(b[24:]))
	e.Topic = binary.BigEndian.Uint32(b[28:])
}

// putBlock encodes up to perBlock entries into b, which is blockSize long.
func putBlock(b []byte, entries []Entry) {
	binary.BigEndian.PutUint32(b, uint32(len(entries)))
	p := blockHeader
	for i := range entries {
		entries[i].put(b[p:])
		p += entrySize
	}
	binary.BigEndian.PutUint32(b[4:], crc32.Checksum(b[blockHeader:p], castagnoli))
	clear(b[p:])
}

// getBlock decodes a block of want entries into dst, which has room for them.
func getBlock(b []byte, want int, dst []Entry) error {
	if len(b) != blockSize {
		return fmt.Errorf("block has %d bytes, want %d", len(b), blockSize)
	}
	if n := binary.BigEndian.Uint32(b); int64(n) != int64(want) {
		return fmt.Errorf("block says %d entries, want %d", n, want)
	}
	end := blockHeader + want*entrySize
	if got, says := crc32.Checksum(b[blockHeader:end], castagnoli), binary.BigEndian.Uint32(b[4:]); got != says {
		return fmt.Errorf("checksum of the block is %08x, it says %08x", got, says)
	}
	for i := range dst[:want] {
		dst[i].get(b[blockHeader+i*entrySize:])
		if i > 0 && !dst[i-1].before(&dst[i]) {
			return fmt.Errorf("entries %d and %d of the block are out of order", i-1, i)
		}
	}
	return nil
}

// tail is the fixed end of a run file.
type tail struct {
	blocks  int
	entries int64
	lastDue int64
	sparse  uint32 // checksum
}

func (t tail) put(b []byte) {
	clear(b[:tailSize])
	copy(b, runMagic)
	binary.BigEndian.PutUint32(b[8:], runFormat)
	binary.BigEndian.PutUint32(b[12:], uint32(t.blocks))
	binary.BigEndian.PutUint64(b[16:], uint64(t.entries))
	binary.BigEndian.PutUint64(b[24:], uint64(t.lastDue))
	binary.BigEndian.PutUint32(b[40:], t.sparse)
	binary.BigEndian.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
}

// getTail decodes the tail of a run file of a size.
func getTail(b []byte, fileSize int64) (t tail, err error) {
	if len(b) != tailSize || string(b[:8]) != runMagic {
		return t, fmt.Errorf("no run file: its tail begins with %q", b[:min(8, len(b))])
	}
	if got, says := crc32.Checksum(b[:44], castagnoli), binary.BigEndian.Uint32(b[44:]); got != says {
		return t, fmt.Errorf("checksum of the tail is %08x, it says %08x", got, says)
	}
	if f := binary.BigEndian.Uint32(b[8:]); f != runFormat {
		return t, fmt.Errorf("format %d, this program knows %d", f, runFormat)
	}
	t.blocks = int(binary.BigEndian.Uint32(b[12:]))
	t.entries = int64(binary.BigEndian.Uint64(b[16:]))
	t.lastDue = int64(binary.BigEndian.Uint64(b[24:]))
	t.sparse = binary.BigEndian.Uint32(b[40:])
	if t.entries < 0 || int64(t.blocks) != (t.entries+perBlock-1)/perBlock {
		return t, fmt.Errorf("%d entries do not fill %d blocks", t.entries, t.blocks)
	}
	if want := int64(t.blocks)*(blockSize+sparseSize) + tailSize; want != fileSize {
		return t, fmt.Errorf("file has %d bytes, %d entries take %d", fileSize, t.entries, want)
	}
	return t, nil
}
