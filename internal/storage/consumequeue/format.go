package consumequeue

import (
	"encoding/binary"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
)

// EntrySize is the size of an entry on disk:
//
//	offset size field
//	0      8    position of the record in the commit log, big-endian
//	8      4    size of the record in bytes
//	12     8    tags code: Java's hash of the TAGS property, sign-extended, 0 for none;
//	            in SCHEDULE_TOPIC_XXXX the due time in ms
//
// Entry i of a queue lies at byte 20*i; the file that holds it is named by the
// byte offset of its first entry in 20 decimal digits. The rest of a file after
// the last entry is zeros, or garbage that RocketMQ left there. When the first
// file of a queue does not begin with an entry, because the queue's first number
// is not a multiple of the entries per file, the slots before it hold fillers:
// position 0, size 0x7FFFFFFF, tags code 0.
const EntrySize = 20

const (
	fillerSize = 0x7FFFFFFF
	nameDigits = 20
)

// Entry says where a message lies in the commit log.
type Entry struct {
	Pos      mq.LogOffset
	Size     int32
	TagsCode int64
}

// End is the position after the record.
func (e Entry) End() mq.LogOffset { return e.Pos + mq.LogOffset(e.Size) }

// valid reports whether e can be an entry at all; fillers are not.
func (e Entry) valid() bool { return e.Pos >= 0 && e.Size > 0 && !e.filler() }

// filler reports whether e stands for a slot that never held a message.
func (e Entry) filler() bool { return e.Pos == 0 && e.Size == fillerSize }

var fillerEntry = Entry{Size: fillerSize}

// AppendEntry appends the 20 bytes of e to dst.
func AppendEntry(dst []byte, e Entry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Pos))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Size))
	return binary.BigEndian.AppendUint64(dst, uint64(e.TagsCode))
}

// DecodeEntry reads the entry in the first 20 bytes of b, whatever it says.
func DecodeEntry(b []byte) Entry {
	_ = b[EntrySize-1]
	return Entry{
		Pos:      mq.LogOffset(binary.BigEndian.Uint64(b)),
		Size:     int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode: int64(binary.BigEndian.Uint64(b[12:])),
	}
}

func fileName(byteOffset int64) string { return fmt.Sprintf("%0*d", nameDigits, byteOffset) }

// parseFileName returns the byte offset in a file's name.
func parseFileName(name string) (int64, bool) {
	if len(name) != nameDigits {
		return 0, false
	}
	var n int64
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c < '0' || c > '9' || n > (1<<63-1-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
