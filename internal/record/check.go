package record

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/sundial-mq/sundial/internal/mq"
)

// What [Next] found instead of a record. A log ends where one of these is found
// behind everything known durable; before that it is damage.
var (
	// ErrNoRecord says that no record starts here.
	ErrNoRecord = errors.New("no record")
	// ErrShort says that a record starts here and is longer than the bytes given.
	ErrShort = errors.New("record is cut short")
	// ErrBroken says that a record starts here and contradicts itself.
	ErrBroken = errors.New("record is broken")
)

// Next returns the record at the start of b, after checking that its lengths add
// up, or says that a blank stands there (v is nil then). The error wraps
// [ErrNoRecord], [ErrShort] or [ErrBroken].
func Next(b []byte) (v View, blank bool, err error) {
	if len(b) < BlankSize {
		return nil, false, fmt.Errorf("%w: %d bytes left", ErrNoRecord, len(b))
	}
	size, magic := int(int32(be32(b))), be32(b[atMagic:])
	switch magic {
	case MagicV1, MagicV2:
	case MagicBlank:
		return nil, true, nil
	default:
		return nil, false, fmt.Errorf("%w: magic %08X", ErrNoRecord, magic)
	}
	if size < minSize {
		return nil, false, fmt.Errorf("%w: total size %d", ErrBroken, size)
	}
	if size > len(b) {
		return nil, false, fmt.Errorf("%w: total size %d, %d bytes left", ErrShort, size, len(b))
	}
	v = View(b[:size:size])
	if err := v.lengths(magic == MagicV2); err != nil {
		return nil, false, err
	}
	return v, false, nil
}

// lengths walks the variable fields. It knows that the record has minSize bytes.
func (v View) lengths(v2 bool) error {
	at := v.atBody() // at most 24 bytes beyond the end of the shortest record
	if at > len(v) {
		return fmt.Errorf("%w: %d bytes have no room for IPv6 hosts", ErrBroken, len(v))
	}
	body := int(int32(be32(v[at-4:])))
	if body < 0 || body > len(v)-at {
		return fmt.Errorf("%w: body length %d in a record of %d bytes", ErrBroken, body, len(v))
	}
	at += body
	width := 1
	if v2 {
		width = 2
	}
	if len(v)-at < width {
		return fmt.Errorf("%w: no room for a topic behind a body of %d bytes", ErrBroken, body)
	}
	topic := int(int8(v[at]))
	if v2 {
		topic = int(int16(uint16(v[at])<<8 | uint16(v[at+1])))
	}
	at += width
	if topic <= 0 || topic > len(v)-at-2 {
		return fmt.Errorf("%w: topic length %d with %d bytes left", ErrBroken, topic, len(v)-at)
	}
	at += topic
	props := int(int16(uint16(v[at])<<8 | uint16(v[at+1])))
	at += 2
	if props < 0 || at+props != len(v) {
		return fmt.Errorf("%w: property length %d with %d bytes left", ErrBroken, props, len(v)-at)
	}
	return nil
}

// Check compares a record with its place in the log and, if crc, its body with
// its checksum. Beyond what RocketMQ checks it refuses a record that stands
// elsewhere than it says, which an older life of the log may have left there,
// and one with zero bytes in its topic or where a page begins in its
// properties, which is what a page lost with the power looks like: RocketMQ's
// layout guards nothing but the body. The error wraps [ErrBroken].
func Check(v View, at mq.LogOffset, crc bool) error {
	if said := v.LogOffset(); said != at {
		return fmt.Errorf("%w: it says that its log offset is %d and stands at %d", ErrBroken, said, at)
	}
	if !crc {
		return nil
	}
	if got, want := BodyCRC(v.Body()), v.BodyCRC(); got != want {
		return fmt.Errorf("%w: body CRC is %08X, record says %08X", ErrBroken, got, want)
	}
	topic := v.Topic()
	if bytes.IndexByte(topic, 0) >= 0 {
		return fmt.Errorf("%w: topic %q has a zero byte", ErrBroken, topic)
	}
	props := v.Properties()
	if from := len(v) - len(props); lostPage(props, at+mq.LogOffset(from)) {
		return fmt.Errorf("%w: a page of its properties is zero", ErrBroken)
	}
	return nil
}

// lostPage reports whether one of the page parts that make up b, which stands
// at the given log offset, is nothing but zeros.
func lostPage(b []byte, at mq.LogOffset) bool {
	const page = 4096
	for len(b) > 0 {
		part := b[:min(len(b), page-int(at%page))]
		if len(bytes.TrimLeft(part, "\x00")) == 0 {
			return true
		}
		at += mq.LogOffset(len(part))
		b = b[len(part):]
	}
	return false
}

// CheckPropertyCRC compares the record with the checksum at the end of its
// properties, if it has one. The error wraps [ErrBroken]. It is no part of
// [Check]: a broker that ran with the checksum and now runs without copies the
// old one into messages that it delivers later.
func CheckPropertyCRC(v View) (present bool, err error) {
	props := v.Properties()
	if len(props) < crcTailSize {
		return false, nil
	}
	tail := props[len(props)-crcTailSize:]
	if string(tail[:len(mq.PropCRC32)]) != mq.PropCRC32 || tail[len(mq.PropCRC32)] != mq.PropNameEnd || tail[crcTailSize-1] != mq.PropValueEnd {
		return false, nil
	}
	var want [crcTailSize]byte
	putCRCTail(want[:], crc32.ChecksumIEEE(v[:len(v)-crcTailSize]))
	if string(tail) != string(want[:]) {
		return true, fmt.Errorf("%w: property CRC is %s, record says %s", ErrBroken, want[len(mq.PropCRC32)+1:crcTailSize-1], tail[len(mq.PropCRC32)+1:crcTailSize-1])
	}
	return true, nil
}

// putCRCTail writes the property CRC for a checksum whose top bit may be set.
func putCRCTail(dst []byte, crc uint32) {
	n := copy(dst, mq.PropCRC32)
	dst[n] = mq.PropNameEnd
	crc &^= 1 << 31
	for i := range crcDigits {
		dst[n+1+i] = '0' + byte(crc%10)
		crc /= 10
	}
	dst[n+1+crcDigits] = mq.PropValueEnd
}
