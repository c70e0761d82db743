package remoting

import (
	"encoding/binary"

	"github.com/sundial-mq/sundial/internal/bin"
)

// The binary header, which RocketMQ calls ROCKETMQ. All integers are big endian.
//
//	offset        bytes  field
//	0             2      code
//	2             1      language
//	3             2      version
//	5             4      opaque
//	9             4      flag: 1 answer, 2 one-way
//	13            4+r    remark length, remark
//	17+r          4+e    length of all fields, fields
//
// A field of it:
//
//	offset        bytes  field
//	0             2+k    key length, key
//	2+k           4+v    value length, value
//
// Code and version have 16 bits: the codes of POP do not fit, so POP needs the
// JSON header.

const binaryFixed = 21 // without remark and fields

func decodeBinary(h []byte, c *Command) error {
	if len(h) < binaryFixed {
		return malformed("binary header of %d bytes, the least is %d", len(h), binaryFixed)
	}
	c.Code = int32(int16(binary.BigEndian.Uint16(h)))
	c.Language = Language(h[2])
	c.Version = int32(int16(binary.BigEndian.Uint16(h[3:])))
	c.Opaque = int32(binary.BigEndian.Uint32(h[5:]))
	c.Flag = int32(binary.BigEndian.Uint32(h[9:]))
	n := int(int32(binary.BigEndian.Uint32(h[13:])))
	if n < 0 || n > len(h)-binaryFixed {
		return malformed("binary header: remark of %d bytes", n)
	}
	c.Remark = bin.String(h[17 : 17+n])
	h = h[17+n:]
	n = int(int32(binary.BigEndian.Uint32(h)))
	h = h[4:]
	if n < 0 || n > len(h) {
		return malformed("binary header: %d bytes of fields where %d are left", n, len(h))
	}
	// Bytes behind the fields are passed over: a later release may put
	// something there.
	h = h[:n]
	for len(h) > 0 {
		if len(c.Fields) == MaxFields {
			return malformed("more than %d header fields", MaxFields)
		}
		if len(h) < 2 {
			return malformed("binary header: field cut short")
		}
		k := int(int16(binary.BigEndian.Uint16(h)))
		if k < 0 || k > len(h)-6 {
			return malformed("binary header: key of %d bytes where %d are left", k, len(h)-2)
		}
		key := h[2 : 2+k]
		h = h[2+k:]
		v := int(int32(binary.BigEndian.Uint32(h)))
		if v < 0 || v > len(h)-4 {
			return malformed("binary header: value of %d bytes where %d are left", v, len(h)-4)
		}
		c.Fields = append(c.Fields, Field{bin.String(key), bin.String(h[4 : 4+v])})
		h = h[4+v:]
	}
	return nil
}

func appendBinary(dst []byte, c *Command) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range c.Fields {
		f := &c.Fields[i]
		if len(f.Key) > 1<<15-1 {
			continue // it has no place on the wire
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Value)))
		dst = append(dst, f.Value...)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}
