package server

import "sync"

const (
	smallSize = 2 << 10  // read buffer of an idle connection
	bigSize   = 64 << 10 // read buffer of a busy one, and of a batch of answers
	keepUpTo  = 256 << 10
)

// buffer is lent to connections while they are busy.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, bigSize)} }}

// takeBuffer returns an empty buffer with room for bigSize bytes or more.
func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// give ends the use of a buffer. A grown one is left to the collector.
func (b *buffer) give() {
	if cap(b.b) <= keepUpTo {
		b.b = b.b[:0]
		buffers.Put(b)
	}
}
