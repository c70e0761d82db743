package bin

import (
	"errors"
	"fmt"
)

// ErrShort says that the bytes ended before what was to be read.
var ErrShort = errors.New("bytes end too early")

// Reader reads numbers and byte runs one after the other. The first read that
// does not fit sets the error; from then on every read gives zero and moves
// nothing. The zero Reader is empty. A Reader is for one goroutine.
type Reader struct {
	b   []byte
	pos int
	err error
}

// NewReader reads from b, which must not change while it is read.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is the first error, an [ErrShort] or what [Reader.Fail] was given.
func (r *Reader) Err() error { return r.err }

// Fail makes err the reader's error unless it has one already: for decoders
// that find something wrong with a value.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Pos is the number of bytes read.
func (r *Reader) Pos() int { return r.pos }

// Len is the number of bytes not yet read; after an error it is zero.
func (r *Reader) Len() int {
	if r.err != nil {
		return 0
	}
	return len(r.b) - r.pos
}

// Bytes reads n bytes. The result aliases what the Reader reads from.
func (r *Reader) Bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b)-r.pos {
		r.err = fmt.Errorf("%w: %d wanted at byte %d of %d", ErrShort, n, r.pos, len(r.b))
		return nil
	}
	b := r.b[r.pos : r.pos+n : r.pos+n]
	r.pos += n
	return b
}

// Rest reads all that is left.
func (r *Reader) Rest() []byte { return r.Bytes(r.Len()) }

// Skip passes over n bytes.
func (r *Reader) Skip(n int) { r.Bytes(n) }

// String reads n bytes into a string of its own.
func (r *Reader) String(n int) string { return string(r.Bytes(n)) }

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Int8 reads one byte.
func (r *Reader) Int8() int8 { return int8(r.Uint8()) }

// Uint16 reads two bytes.
func (r *Reader) Uint16() uint16 {
	if b := r.Bytes(2); b != nil {
		return Uint16(b)
	}
	return 0
}

// Int16 reads two bytes.
func (r *Reader) Int16() int16 { return int16(r.Uint16()) }

// Uint32 reads four bytes.
func (r *Reader) Uint32() uint32 {
	if b := r.Bytes(4); b != nil {
		return Uint32(b)
	}
	return 0
}

// Int32 reads four bytes.
func (r *Reader) Int32() int32 { return int32(r.Uint32()) }

// Uint64 reads eight bytes.
func (r *Reader) Uint64() uint64 {
	if b := r.Bytes(8); b != nil {
		return Uint64(b)
	}
	return 0
}

// Int64 reads eight bytes.
func (r *Reader) Int64() int64 { return int64(r.Uint64()) }
