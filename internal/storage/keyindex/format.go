package keyindex

import (
	"encoding/binary"
	"fmt"

	"github.com/sundial-mq/sundial/internal/mq"
)

// An index file, all numbers big-endian, s slots and n entries:
//
//	offset      bytes  field
//	0           8      begin time: store time of the first message, ms
//	8           8      end time: store time of the last message, ms
//	16          8      begin offset: log offset of the first message
//	24          8      end offset: log offset of the last message
//	32          4      slots in use
//	36          4      number of the next entry, from 1
//	40          4*s    slots
//	40+4*s      20*n   entries; entry 0 is never used
//
// A slot holds the number of the newest entry in it, 0 for none. An entry:
//
//	0           4      hash of the key
//	4           8      log offset of the message
//	12          4      store time minus begin time, whole seconds
//	16          4      number of the next older entry of the same slot, 0 for none
//
// The key is topic#key; its hash is Java's String.hashCode made positive, and
// its slot is hash mod s. For the tags of a message the key is topic#T#tags. A file is full when the next entry would be number n.
// The name is the time the file was made, local, as yyyyMMddHHmmssSSS.
const (
	headerSize = 40
	slotSize   = 4
	entrySize  = 20

	atBeginTime   = 0
	atEndTime     = 8
	atBeginOffset = 16
	atEndOffset   = 24
	atUsedSlots   = 32
	atNext        = 36

	atEntryOffset = 4
	atEntryTime   = 12
	atEntryOlder  = 16
)

func fileSize(cfg Config) int64 {
	return headerSize + int64(cfg.Slots)*slotSize + int64(cfg.Entries)*entrySize
}

// keyHash is the hash of topic#key, never negative.
func keyHash[T ~string | ~[]byte](topic, key T) int32 {
	return positive(mq.JavaHashOn(31*mq.JavaHashOn(0, topic)+'#', key))
}

// tagHash is keyHash of [TagKey] without joining the two.
func tagHash(topic, tags []byte) int32 {
	return positive(mq.JavaHashOn(mq.JavaHashOn(mq.JavaHashOn(0, topic), "#T#"), tags))
}

func positive(hash int32) int32 {
	if hash >= 0 {
		return hash
	}
	return max(-hash, 0) // the smallest number has no positive counterpart
}

// table reads and writes the bytes of one index file.
type table struct {
	b     []byte
	slots int32
	limit int32 // entries
}

func (t table) i32(at int) int32        { return int32(binary.BigEndian.Uint32(t.b[at:])) }
func (t table) i64(at int) int64        { return int64(binary.BigEndian.Uint64(t.b[at:])) }
func (t table) put32(at int, v int32)   { binary.BigEndian.PutUint32(t.b[at:], uint32(v)) }
func (t table) put64(at int, v int64)   { binary.BigEndian.PutUint64(t.b[at:], uint64(v)) }
func (t table) slotAt(hash int32) int   { return headerSize + int(hash%t.slots)*slotSize }
func (t table) entryAt(n int32) int     { return headerSize + int(t.slots)*slotSize + int(n)*entrySize }
func (t table) next() int32             { return max(t.i32(atNext), 1) }
func (t table) full() bool              { return t.next() >= t.limit }
func (t table) empty() bool             { return t.next() <= 1 }
func (t table) endOffset() mq.LogOffset { return mq.LogOffset(t.i64(atEndOffset)) }

// seed prepares the header of a new file that follows one with this end.
func (t table) seed(endTime int64, endOffset mq.LogOffset) {
	t.put64(atBeginTime, endTime)
	t.put64(atEndTime, endTime)
	t.put64(atBeginOffset, int64(endOffset))
	t.put64(atEndOffset, int64(endOffset))
	t.put32(atNext, 1)
}

// put adds one entry; the table must not be full.
func (t table) put(hash int32, at mq.LogOffset, storeTime int64) {
	n := t.next()
	slot := t.slotAt(hash)
	older := t.i32(slot)
	if older < 0 || older >= n {
		older = 0
	}
	// RocketMQ measures the first entry of a follow-up file from the end of the
	// file before, which seed left here, and then sets the begin time. Nobody
	// reads that difference; see entryTime.
	var seconds int64
	if begin := t.i64(atBeginTime); begin > 0 {
		seconds = min(max((storeTime-begin)/1000, 0), 1<<31-1)
	}
	e := t.entryAt(n)
	t.put32(e, hash)
	t.put64(e+atEntryOffset, int64(at))
	t.put32(e+atEntryTime, int32(seconds))
	t.put32(e+atEntryOlder, older)
	t.put32(slot, n)
	if n == 1 {
		t.put64(atBeginTime, storeTime)
		t.put64(atBeginOffset, int64(at))
	}
	if older == 0 {
		t.put32(atUsedSlots, t.i32(atUsedSlots)+1)
	}
	t.put64(atEndTime, storeTime)
	t.put64(atEndOffset, int64(at))
	t.put32(atNext, n+1)
}

// entryTime is the earliest store time that entry n can stand for; the true one
// is less than a second later.
func (t table) entryTime(n int32) int64 {
	begin := t.i64(atBeginTime)
	if n == 1 {
		return begin
	}
	return begin + int64(t.i32(t.entryAt(n)+atEntryTime))*1000
}

// newest is the number of the newest entry in the slot of hash, 0 for none.
func (t table) newest(hash int32) int32 {
	n := t.i32(t.slotAt(hash))
	if n < 0 || n >= t.next() {
		return 0
	}
	return n
}

// find walks the chain from entry n on for at most so many steps. It appends the
// messages with this hash that may have been stored within [begin, end] to
// found, newest first, until it has most of them, and returns the entry to go on
// from, 0 at the end.
func (t table) find(found []mq.LogOffset, hash, n int32, most, steps int, begin, end int64) ([]mq.LogOffset, int32) {
	for ; n > 0 && steps > 0; steps-- {
		e := t.entryAt(n)
		stored := t.entryTime(n)
		if stored+999 < begin {
			return found, 0 // older ones are further back
		}
		if t.i32(e) == hash && stored <= end {
			at := mq.LogOffset(t.i64(e + atEntryOffset))
			if len(found) == 0 || found[len(found)-1] != at {
				if len(found) == most {
					return found, 0
				}
				found = append(found, at)
			}
		}
		older := t.i32(e + atEntryOlder)
		if older >= n {
			return found, 0 // damaged: a chain leads to ever smaller numbers
		}
		n = older
	}
	return found, max(n, 0)
}

func (t table) entryOffset(n int32) mq.LogOffset {
	return mq.LogOffset(t.i64(t.entryAt(n) + atEntryOffset))
}

// firstBehind is the number of the first entry at or behind a log offset.
func (t table) firstBehind(at mq.LogOffset) int32 {
	low, high := int32(1), t.next()
	for low < high {
		if mid := low + (high-low)/2; t.entryOffset(mid) < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// rewind makes next, at least 2, the next entry again and ends the file at
// endTime. Slots and header are made from the entries before it; an error says
// that those are not what they must be, and leaves a table to be thrown away.
func (t table) rewind(next int32, endTime int64) error {
	clear(t.b[headerSize:t.entryAt(0)])
	used := int32(0)
	last := t.i64(atBeginOffset)
	for n := int32(1); n < next; n++ {
		e := t.entryAt(n)
		hash, at := t.i32(e), t.i64(e+atEntryOffset)
		if hash < 0 || at < last {
			return fmt.Errorf("entry %d: hash %d, log offset %d behind %d", n, hash, at, last)
		}
		last = at
		slot := t.slotAt(hash)
		older := t.i32(slot)
		if got := t.i32(e + atEntryOlder); got != older {
			return fmt.Errorf("entry %d: next older is %d, not %d", n, got, older)
		}
		if older == 0 {
			used++
		}
		t.put32(slot, n)
	}
	t.put64(atEndTime, endTime)
	t.put64(atEndOffset, last)
	t.put32(atUsedSlots, used)
	t.put32(atNext, next)
	return nil
}

// overlaps reports whether the file may hold messages of [begin, end].
func (t table) overlaps(begin, end int64) bool {
	from, to := t.i64(atBeginTime), t.i64(atEndTime)
	if to < from { // the clock was set back meanwhile
		from, to = to, from
	}
	return from <= end && to >= begin
}

// check compares the header with what a file of this size can hold.
func (t table) check() error {
	if n := t.i32(atNext); n < 0 || n > t.limit {
		return fmt.Errorf("next entry is number %d in a file of %d entries", n, t.limit)
	}
	if used := t.i32(atUsedSlots); used < 0 || used > t.slots {
		return fmt.Errorf("%d slots in use of %d", used, t.slots)
	}
	for _, at := range []int{atBeginTime, atEndTime} {
		if ms := t.i64(at); ms < 0 || ms >= 1<<53 {
			return fmt.Errorf("a store time of %d ms", ms)
		}
	}
	if b, e := t.i64(atBeginOffset), t.i64(atEndOffset); b < 0 || e < b {
		return fmt.Errorf("log offsets from %d to %d", b, e)
	}
	return nil
}

// checkAll visits every entry and slot.
func (t table) checkAll() error {
	next := t.next()
	begin, end := t.i64(atBeginOffset), t.i64(atEndOffset)
	used := int32(0)
	newest := make(map[int32]int32)
	for n := int32(1); n < next; n++ {
		e := t.entryAt(n)
		hash := t.i32(e)
		if hash < 0 {
			return fmt.Errorf("entry %d: hash %d", n, hash)
		}
		if at := t.i64(e + atEntryOffset); at < begin || at > end {
			return fmt.Errorf("entry %d: log offset %d is not within %d to %d", n, at, begin, end)
		}
		slot := hash % t.slots
		older := t.i32(e + atEntryOlder)
		if older != newest[slot] {
			return fmt.Errorf("entry %d: next older is %d, not %d", n, older, newest[slot])
		}
		if older == 0 {
			used++
		}
		newest[slot] = n
	}
	for slot := range t.slots {
		if got := t.i32(headerSize + int(slot)*slotSize); got != newest[slot] {
			return fmt.Errorf("slot %d: newest entry is %d, not %d", slot, got, newest[slot])
		}
	}
	if got := t.i32(atUsedSlots); got != used {
		return fmt.Errorf("%d slots in use, counted %d", got, used)
	}
	return nil
}
