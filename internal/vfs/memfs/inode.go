package memfs

import (
	"encoding/binary"
	"io/fs"
	"math/bits"
	"sync"
	"time"
)

const pageSize = 4096

// inode is a file: its two contents and what is known to differ between them.
//
// The live bytes are data; mappings are slices of it. While there are mappings
// the array must not move: pin is then the mapped part of the array, and when
// the file outgrows it, data moves on and pin stays the truth for its range.
type inode struct {
	place               // guarded by FS.mu
	unlinked  bool      // guarded by FS.mu
	modTime   time.Time // guarded by FS.mu
	room      bitset    // pages that take room on the disk; guarded by FS.mu
	roomCount int64

	mu struct {
		sync.Mutex
		data []byte // live content; its length is the live size
		pin  []byte // the array under the mappings, nil when there are none
		maps int    // mappings not unmapped

		durable     map[int64][]byte // durable pages; one that is missing is zeros
		durableSize int64
		dirty       map[int64]bool // pages written since the last sync
		stored      int64          // pages below this end may have been stored to through a mapping
		storing     int            // writable mappings not unmapped
	}
}

func (n *inode) setModTime(t time.Time) { n.modTime = t }
func (n *inode) used() int64            { return n.roomCount * pageSize }

func (n *inode) info(name string) fs.FileInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fileInfo{name: name, size: int64(len(n.mu.data)), mode: 0o644, modTime: n.modTime}
}

// live calls f with the live bytes of [off, off+k), in at most two pieces. The
// range must be within the size.
func (n *inode) liveLocked(off, k int64, f func(b []byte, at int64)) {
	if split := int64(len(n.mu.pin)); off < split {
		part := min(k, split-off)
		f(n.mu.pin[off:off+part], off)
		off, k = off+part, k-part
	}
	if k > 0 {
		f(n.mu.data[off:off+k], off)
	}
}

func (n *inode) touchLocked(off, k int64) {
	if k <= 0 {
		return
	}
	if n.mu.dirty == nil {
		n.mu.dirty = make(map[int64]bool)
	}
	for p := off / pageSize; p <= (off+k-1)/pageSize; p++ {
		n.mu.dirty[p] = true
	}
}

// resizeLocked sets the live size; what is new reads as zeros.
func (n *inode) resizeLocked(size int64) {
	have := int64(len(n.mu.data))
	switch {
	case size < have:
		// What is cut must be zeros if the file grows again.
		n.liveLocked(size, have-size, func(b []byte, _ int64) { clear(b) })
		n.touchLocked(size, have-size)
		n.mu.data = n.mu.data[:size]
	case size <= int64(cap(n.mu.data)):
		n.mu.data = n.mu.data[:size]
	default:
		grown := make([]byte, size, max(size, min(2*have, have+1<<20)))
		// What is under mappings stays the pin's, and may be stored to right now.
		if pinned := int64(len(n.mu.pin)); pinned < have {
			copy(grown[pinned:], n.mu.data[pinned:])
		}
		n.mu.data = grown
	}
}

// sync makes the live content durable.
func (n *inode) sync() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.suspectsLocked() {
		n.setDurableLocked(p, n.livePageLocked(p))
	}
	n.mu.durableSize = int64(len(n.mu.data))
	n.mu.dirty = nil
	if n.mu.storing == 0 {
		n.mu.stored = 0
	}
}

// suspectsLocked are the pages whose contents may differ, in order.
func (n *inode) suspectsLocked() []int64 {
	var list []int64
	stored := (min(n.mu.stored, int64(len(n.mu.data))) + pageSize - 1) / pageSize
	for p := range stored {
		list = append(list, p)
	}
	for _, p := range sortedPages(n.mu.dirty) {
		if p >= stored {
			list = append(list, p)
		}
	}
	return list
}

func (n *inode) setDurableLocked(p int64, content []byte) {
	if content == nil {
		delete(n.mu.durable, p)
		return
	}
	if n.mu.durable == nil {
		n.mu.durable = make(map[int64][]byte)
	}
	if old := n.mu.durable[p]; old == nil || !equalPages(old, content) {
		n.mu.durable[p] = content
	}
}

// livePageLocked is a copy of a live page, nil when it is all zeros.
func (n *inode) livePageLocked(p int64) []byte {
	size := int64(len(n.mu.data))
	if p*pageSize >= size {
		return nil
	}
	zeros := true
	page := make([]byte, pageSize)
	n.liveLocked(p*pageSize, min(pageSize, size-p*pageSize), func(b []byte, at int64) {
		if copyUnwatched(page[at-p*pageSize:], b) {
			zeros = false
		}
	})
	if zeros {
		return nil
	}
	return page
}

// copyUnwatched copies src to dst and reports whether any byte is not zero. It
// reads memory that a mapping's owner may be storing to at this very moment, as
// a disk does; the race detector need not know.
//
//go:norace
func copyUnwatched(dst, src []byte) (any bool) {
	var seen uint64
	i := 0
	for ; i+8 <= len(src); i += 8 {
		v := binary.LittleEndian.Uint64(src[i : i+8])
		binary.LittleEndian.PutUint64(dst[i:i+8], v)
		seen |= v
	}
	for ; i < len(src); i++ {
		dst[i] = src[i]
		seen |= uint64(src[i])
	}
	return seen != 0
}

func equalPages(a, b []byte) bool { return string(a) == string(b) }

// bitset is a set of page numbers.
type bitset []uint64

func (s bitset) has(i int64) bool { return i>>6 < int64(len(s)) && s[i>>6]>>(i&63)&1 != 0 }

func (s *bitset) add(i int64) {
	for int64(len(*s)) <= i>>6 {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// cut removes all from i on and returns how many those were.
func (s *bitset) cut(i int64) (n int64) {
	for w := i >> 6; w < int64(len(*s)); w++ {
		mask := ^uint64(0)
		if w == i>>6 {
			mask <<= i & 63
		}
		n += int64(bits.OnesCount64((*s)[w] & mask))
		(*s)[w] &^= mask
	}
	return n
}
