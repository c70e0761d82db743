package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Message is a record to be written. The IPv6 bits of SysFlag follow the hosts
// whatever the field says, and the magic follows the topic's length.
type Message struct {
	Topic          string
	QueueID        mq.QueueID
	Flag           int32
	SysFlag        mq.SysFlag
	BornTime       int64 // ms
	BornHost       netip.AddrPort
	StoreHost      netip.AddrPort
	ReconsumeTimes int32
	PreparedOffset mq.LogOffset
	Body           []byte
	Properties     []byte // a property block; see AppendProperty

	// Known only when the message gets its place.
	QueueOffset mq.QueueOffset
	LogOffset   mq.LogOffset
	StoreTime   int64 // ms

	// BodyCRC is written as it is: set it with [BodyCRC] before taking the log's lock.
	BodyCRC uint32
}

// Size is how many bytes Encode will write. The error wraps
// [mq.ErrIllegalMessage] and says which length no record can hold.
func (m *Message) Size(crcTail bool) (int, error) {
	props := len(m.Properties)
	if crcTail {
		props = propertiesBeforeCRC(m.Properties) + crcTailSize
	}
	switch {
	case m.Topic == "":
		return 0, fmt.Errorf("%w: no topic", mq.ErrIllegalMessage)
	case len(m.Topic) > maxTopicV2:
		return 0, fmt.Errorf("%w: topic of %d bytes, a record holds at most %d", mq.ErrIllegalMessage, len(m.Topic), maxTopicV2)
	case props > MaxProperties:
		return 0, fmt.Errorf("%w: properties of %d bytes, a record holds at most %d", mq.ErrIllegalMessage, props, MaxProperties)
	case len(m.Body) > math.MaxInt32-1<<17:
		return 0, fmt.Errorf("%w: body of %d bytes", mq.ErrIllegalMessage, len(m.Body))
	}
	size := fixedSize + len(m.Body) + len(m.Topic) + props
	if len(m.Topic) > MaxTopicV1 {
		size++
	}
	if isV6(m.BornHost) {
		size += v6Extra
	}
	if isV6(m.StoreHost) {
		size += v6Extra
	}
	return size, nil
}

// Encode writes the record into the first Size bytes of dst, which are mapped
// memory under the log's lock, and returns their number: no allocation, one copy,
// the first eight bytes last. With crcTail the record ends in a property CRC,
// in place of one that the properties have.
func (m *Message) Encode(dst []byte, crcTail bool) int {
	be := binary.BigEndian
	flag := m.SysFlag &^ (mq.SysBornHostIPv6 | mq.SysStoreIPv6)
	if isV6(m.BornHost) {
		flag |= mq.SysBornHostIPv6
	}
	if isV6(m.StoreHost) {
		flag |= mq.SysStoreIPv6
	}
	be.PutUint32(dst[atBodyCRC:], m.BodyCRC)
	be.PutUint32(dst[atQueueID:], uint32(m.QueueID))
	be.PutUint32(dst[atFlag:], uint32(m.Flag))
	be.PutUint64(dst[atQueueOffset:], uint64(m.QueueOffset))
	be.PutUint64(dst[atLogOffset:], uint64(m.LogOffset))
	be.PutUint32(dst[atSysFlag:], uint32(flag))
	be.PutUint64(dst[atBornTime:], uint64(m.BornTime))
	at := atBornHost
	at += putHost(dst[at:], m.BornHost)
	be.PutUint64(dst[at:], uint64(m.StoreTime))
	at += 8
	at += putHost(dst[at:], m.StoreHost)
	be.PutUint32(dst[at:], uint32(m.ReconsumeTimes))
	be.PutUint64(dst[at+4:], uint64(m.PreparedOffset))
	be.PutUint32(dst[at+12:], uint32(len(m.Body)))
	at += 16
	at += copy(dst[at:at+len(m.Body)], m.Body)

	magic := MagicV1
	if len(m.Topic) <= MaxTopicV1 {
		dst[at] = byte(len(m.Topic))
		at++
	} else {
		magic = MagicV2
		be.PutUint16(dst[at:], uint16(len(m.Topic)))
		at += 2
	}
	at += copy(dst[at:at+len(m.Topic)], m.Topic)

	if !crcTail {
		be.PutUint16(dst[at:], uint16(len(m.Properties)))
		at += 2
		at += copy(dst[at:at+len(m.Properties)], m.Properties)
		putHead(dst, at, magic)
		return at
	}
	n := copyBeforeCRC(dst[at+2:], m.Properties)
	be.PutUint16(dst[at:], uint16(n+crcTailSize))
	at += 2 + n
	// The checksum covers the first eight bytes too; until it is known they wait
	// where it will stand.
	size, head := at+crcTailSize, dst[at:at+BlankSize]
	putHead(head, size, magic)
	crc := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, dst[BlankSize:at])
	putCRCTail(dst[at:], crc)
	putHead(dst, size, magic)
	return size
}

// Append appends the record, for those who write to no mapped memory.
func (m *Message) Append(dst []byte, crcTail bool) ([]byte, error) {
	size, err := m.Size(crcTail)
	if err != nil {
		return dst, err
	}
	n := len(dst)
	dst = append(dst, make([]byte, size)...)
	m.Encode(dst[n:], crcTail)
	return dst, nil
}

func isV6(h netip.AddrPort) bool {
	a := h.Addr()
	return a.Is6() && !a.Is4In6()
}

// putHost writes what [mq.AppendHost] appends.
func putHost(dst []byte, h netip.AddrPort) int {
	a := h.Addr()
	n := 4
	switch {
	case !a.IsValid():
		clear(dst[:4])
	case isV6(h):
		b := a.As16()
		n = copy(dst, b[:])
	default:
		b := a.Unmap().As4()
		copy(dst, b[:])
	}
	binary.BigEndian.PutUint32(dst[n:], uint32(h.Port()))
	return n + 4
}

// propertiesBeforeCRC is how many bytes copyBeforeCRC writes.
func propertiesBeforeCRC(props []byte) int {
	n := 0
	for pair := range pairs(props) {
		if !hasName(pair, mq.PropCRC32) {
			n += len(pair) + 1
		}
	}
	return n
}

// copyBeforeCRC copies all pairs but a property CRC, each with its separator.
func copyBeforeCRC(dst, props []byte) int {
	n := 0
	for pair := range pairs(props) {
		if !hasName(pair, mq.PropCRC32) {
			n += copy(dst[n:], pair)
			dst[n] = mq.PropValueEnd
			n++
		}
	}
	return n
}
