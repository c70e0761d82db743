// Package record is the stored message: the bytes that the commit log holds and
// that clients receive unchanged. RocketMQ wrote the layout, so it is not ours
// to alter; everything that knows a byte offset of it is in this package.
//
// A [View] is one whole record in somebody else's bytes; it lives as long as
// they do. [Next] finds the record at the start of some bytes and checks that
// its lengths add up, after which the accessors cannot fail; [Check] compares it
// with its place and its checksum. A [Message] is a record to be written:
// [Message.Encode] puts it into place without allocating.
//
// What a crash leaves: Encode stores the first eight bytes, size and magic,
// last, in one store. A process killed on the way leaves no record there,
// provided that those eight bytes were no record before. After a power loss any
// page may be missing; Next and Check catch a missing page in every field, as
// [Check] says.
//
// The property block is a string of pairs; the functions in properties.go read
// and change it as bytes by the rules of RocketMQ's parser.
package record

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/sundial-mq/sundial/internal/mq"
)

// The record, all numbers big-endian; b and s are 8 for an IPv4 host, 20 for IPv6:
//
//	offset        bytes  field
//	0             4      total size, these four bytes included
//	4             4      magic: DAA320A7 (V1) or DAA320AB (V2)
//	8             4      body CRC: CRC-32/IEEE of the body, top bit cleared
//	12            4      queue id
//	16            4      flag of the application
//	20            8      queue offset
//	28            8      log offset of this record
//	36            4      system flag
//	40            8      born time, ms
//	48            b      born host: address 4 or 16, port 4
//	48+b          8      store time, ms
//	56+b          s      store host: address 4 or 16, port 4
//	56+b+s        4      reconsume times
//	60+b+s        8      prepared transaction offset
//	68+b+s        4+n    body length, body
//	72+b+s+n      1+t    topic length, topic; V2: 2+t
//	73+b+s+n+t    2+p    property length, properties
//
// The blank, which fills a log file to its end; a reader goes on at the next file:
//
//	0             4      bytes left in the file, these included
//	4             4      magic: CBD43194
const (
	MagicV1    uint32 = 0xDAA320A7
	MagicV2    uint32 = 0xDAA320AB
	MagicBlank uint32 = 0xCBD43194

	// BlankSize is the room that every log file keeps for its blank.
	BlankSize = 8
	// MaxProperties is the largest property block: its length is a signed short.
	MaxProperties = 32767
	// MaxTopicV1 is the longest topic that a V1 record can hold.
	MaxTopicV1 = 127

	maxTopicV2 = 32767
	minSize    = fixedSize + 1 // shortest record: V1, IPv4, topic of one byte
	fixedSize  = 91            // all but body, topic and properties of a V1 record with IPv4 hosts
	v6Extra    = 12            // what an IPv6 host takes more than an IPv4 one

	atMagic       = 4
	atBodyCRC     = 8
	atQueueID     = 12
	atFlag        = 16
	atQueueOffset = 20
	atLogOffset   = 28
	atSysFlag     = 36
	atBornTime    = 40
	atBornHost    = 48
)

// A batch on the wire (SEND_BATCH_MESSAGE) is a row of items, each:
//
//	offset  bytes  field
//	0       4      total size, these four bytes included
//	4       4      magic, unused
//	8       4      body CRC, unused
//	12      4      flag of the application
//	16      4+n    body length, body
//	20+n    2+p    property length, properties
const (
	batchFixed  = 22
	batchFlag   = 12
	batchLength = 16
)

// The property CRC is the last property of a record, 20 bytes long: its name,
// 0x01, ten decimal digits with the least significant first, 0x02. Its value is
// the CRC-32/IEEE, top bit cleared, of all bytes of the record before it.
const (
	crcTailSize = len(mq.PropCRC32) + 12
	crcDigits   = 10
)

// BodyCRC is the checksum that a record holds of its body.
func BodyCRC(body []byte) uint32 { return crc32.ChecksumIEEE(body) &^ (1 << 31) }

// PutBlank closes a log file: rest is all that is left of it, at least
// [BlankSize] bytes. Only the first eight are written, in one store.
func PutBlank(rest []byte) { putHead(rest, len(rest), MagicBlank) }

func putHead(b []byte, size int, magic uint32) {
	binary.BigEndian.PutUint64(b, uint64(uint32(size))<<32|uint64(magic))
}

func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
