package produce

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"
)

// keys makes unique keys (UNIQ_KEY) for messages that come without one, in the
// form that RocketMQ's clients use and read back: address 4 or 16 bytes,
// process 2, loader 4, milliseconds since the start of the month 4, counter 2;
// in upper-case hex. Process and loader are random here.
type keys struct {
	prefix  []byte
	counter atomic.Uint32
}

func newKeys(host netip.Addr) *keys {
	host = host.Unmap()
	if !host.IsValid() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	prefix := binary.BigEndian.AppendUint64(host.AsSlice(), rand.Uint64())
	return &keys{prefix: prefix[:len(prefix)-2]}
}

const upperHex = "0123456789ABCDEF"

// next appends a new key to dst.
func (k *keys) next(dst []byte, now time.Time) []byte {
	start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	for _, c := range k.prefix {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	var rest [6]byte
	binary.BigEndian.PutUint32(rest[:], uint32(now.Sub(start).Milliseconds()))
	binary.BigEndian.PutUint16(rest[4:], uint16(k.counter.Add(1)))
	for _, c := range rest {
		dst = append(dst, upperHex[c>>4], upperHex[c&15])
	}
	return dst
}
