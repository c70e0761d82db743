package mq

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
)

const upperHex = "0123456789ABCDEF"

// MessageID is the offset message id of a stored message: store host, 4-byte
// port and log offset in upper-case hex, 32 characters for IPv4, 56 for IPv6.
func MessageID(host netip.AddrPort, at LogOffset) string {
	var raw [28]byte
	b := AppendHost(raw[:0], host)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	var text [56]byte
	for i, c := range b {
		text[2*i], text[2*i+1] = upperHex[c>>4], upperHex[c&15]
	}
	return string(text[:2*len(b)])
}

// AppendHost appends a host as records hold it: 4 or 16 address bytes, then the
// port in 4 bytes. An IPv4-mapped IPv6 address counts as IPv4.
func AppendHost(dst []byte, host netip.AddrPort) []byte {
	addr := host.Addr().Unmap()
	switch {
	case !addr.IsValid():
		dst = append(dst, 0, 0, 0, 0)
	case addr.Is4():
		a := addr.As4()
		dst = append(dst, a[:]...)
	default:
		a := addr.As16()
		dst = append(dst, a[:]...)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(host.Port()))
}

// ParseMessageID reads an offset message id in either case of letters.
func ParseMessageID(id string) (host netip.AddrPort, at LogOffset, err error) {
	if len(id) != 32 && len(id) != 56 {
		return host, 0, fmt.Errorf("%w: message id %q has %d characters, an offset message id has 32 or 56", ErrInvalid, id, len(id))
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return host, 0, fmt.Errorf("%w: message id %q: %v", ErrInvalid, id, err)
	}
	n := len(raw) - 12
	addr, _ := netip.AddrFromSlice(raw[:n])
	port := binary.BigEndian.Uint32(raw[n:])
	if port > 65535 {
		return host, 0, fmt.Errorf("%w: message id %q names port %d", ErrInvalid, id, port)
	}
	if at = LogOffset(binary.BigEndian.Uint64(raw[n+4:])); at < 0 {
		return host, 0, fmt.Errorf("%w: message id %q names log offset %d", ErrInvalid, id, at)
	}
	return netip.AddrPortFrom(addr, uint16(port)), at, nil
}
