package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The frame. All integers are big endian.
//
//	offset        bytes  field
//	0             4      length of what follows: 4 + h + body, at most 16777212
//	4             1      form of the header: 0 JSON, 1 binary
//	5             3      length of the header, h
//	8             h      header
//	8+h                  body, the rest

const (
	// MaxFrame bounds a whole frame, its length field included. RocketMQ
	// closes the connection on a longer one, in both directions.
	MaxFrame = 16 << 20

	// MaxFields bounds the header fields of one command, so that a frame of
	// empty fields cannot take many times its size in memory.
	MaxFields = 4096

	prefixSize = 8 // length, form, headerLen
	lengthSize = 4
)

// ErrMalformed is wrapped by every decoding error. A connection that brought
// such bytes cannot be followed any further and is closed.
var ErrMalformed = errors.New("malformed frame")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// FrameSize returns the size of the frame that b begins with, its length field
// included, or 0 when b is too short to tell. The frame itself need not be
// there yet.
func FrameSize(b []byte) (int, error) {
	if len(b) < lengthSize {
		return 0, nil
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	if n < prefixSize-lengthSize || n > MaxFrame-lengthSize {
		return 0, malformed("length %d (%q) is not in [%d, %d]", n, b[:lengthSize], prefixSize-lengthSize, MaxFrame-lengthSize)
	}
	return lengthSize + int(n), nil
}

// Decode reads one whole frame into c. Strings and Body of c point into frame;
// see the package comment for how long they last. c.Fields is reused. After an
// error c holds nothing of use.
//
// It allocates at most once, for resolved escapes, and not even then when c
// was used before; nor for fields when c.Fields is large enough.
func Decode(frame []byte, c *Command) error {
	size, err := FrameSize(frame)
	if err != nil {
		return err
	}
	if size != len(frame) || size == 0 {
		return malformed("frame of %d bytes says it has %d", len(frame), size)
	}
	form := Serialize(frame[4])
	headerLen := int(binary.BigEndian.Uint32(frame[4:]) & 0xFFFFFF)
	if headerLen > size-prefixSize {
		return malformed("header of %d bytes in a frame of %d", headerLen, size)
	}
	header := frame[prefixSize : prefixSize+headerLen]
	c.Code, c.Language, c.Version, c.Opaque, c.Flag = 0, Java, 0, 0, 0
	c.Remark, c.Fields, c.Body, c.Serialize = "", c.Fields[:0], nil, form
	switch form {
	case JSON:
		err = decodeJSON(header, c)
	case Binary:
		err = decodeBinary(header, c)
	default:
		err = malformed("unknown header form %d", form)
	}
	if err != nil {
		return err
	}
	if prefixSize+headerLen < size {
		c.Body = frame[prefixSize+headerLen : size : size]
	}
	return nil
}

// AppendCommand appends the whole frame of c to dst.
func AppendCommand(dst []byte, c *Command) []byte {
	return AppendBody(AppendHeader(dst, c, c.BodyLen()), c)
}

// AppendBody appends the body of c to dst.
func AppendBody(dst []byte, c *Command) []byte {
	if c.Chunks == nil {
		return append(dst, c.Body...)
	}
	for _, b := range c.Chunks {
		dst = append(dst, b...)
	}
	return dst
}

// AppendHeader appends the frame of c up to its body, of which bodyLen bytes
// must follow. Whether the frame keeps to [MaxFrame] is for the caller to see
// to: the length stands in the first four bytes.
func AppendHeader(dst []byte, c *Command, bodyLen int) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	if c.Serialize == Binary {
		dst = appendBinary(dst, c)
	} else {
		dst = appendJSON(dst, c)
	}
	headerLen := len(dst) - at - prefixSize
	binary.BigEndian.PutUint32(dst[at:], uint32(headerLen+bodyLen+prefixSize-lengthSize))
	binary.BigEndian.PutUint32(dst[at+4:], uint32(headerLen)&0xFFFFFF|uint32(c.Serialize)<<24)
	return dst
}
