package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// There are two addresses: the one a listener binds to, and the one that is told
// to clients, who dial it from elsewhere. RocketMQ's bindAddress is the first,
// brokerIP1 the second.

// advertised is the address to tell clients: the one said, else the one bound
// to, else (bound to all) the first of the machine's own that is not loopback,
// IPv4 before IPv6.
func advertised(said, bind string, own []netip.Addr) (netip.Addr, error) {
	if said != "" {
		a, err := netip.ParseAddr(said)
		if err != nil {
			if found, lookErr := net.LookupIP(said); lookErr == nil && len(found) > 0 {
				a, _ = netip.AddrFromSlice(found[0])
				return a.Unmap(), nil
			}
			return netip.Addr{}, fmt.Errorf("brokerIP1 is %q, which is neither an IP address nor a name that resolves", said)
		}
		return a.Unmap().WithZone(""), nil
	}
	b, err := bindAddr(bind)
	if err != nil {
		return netip.Addr{}, err
	}
	if !b.IsUnspecified() {
		return b, nil
	}
	var v6 netip.Addr
	for _, a := range own {
		a = a.Unmap()
		switch {
		case a.IsLoopback(), a.IsLinkLocalUnicast(), a.IsMulticast(), !a.IsValid():
		case a.Is4():
			return a, nil
		case !v6.IsValid():
			v6 = a
		}
	}
	if v6.IsValid() {
		return v6.WithZone(""), nil
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
}

// bindAddr reads an address to listen on; nothing means all.
func bindAddr(bind string) (netip.Addr, error) {
	if bind == "" {
		return netip.IPv4Unspecified(), nil
	}
	a, err := netip.ParseAddr(strings.Trim(bind, "[]"))
	if err == nil {
		return a.Unmap(), nil
	}
	found, err := net.LookupIP(bind)
	if err != nil || len(found) == 0 {
		return netip.Addr{}, fmt.Errorf("address to listen on is %q, which is neither an IP address nor a name that resolves", bind)
	}
	a, _ = netip.AddrFromSlice(found[0])
	return a.Unmap(), nil
}

// ownAddrs are the addresses of this machine.
func ownAddrs() []netip.Addr {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var own []netip.Addr
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, ip.Unmap())
			}
		}
	}
	return own
}

// listen opens a port. key is the setting that would change it.
func listen(what, bind string, port int, key string) (net.Listener, error) {
	at := net.JoinHostPort(strings.Trim(bind, "[]"), strconv.Itoa(port))
	ln, err := net.Listen("tcp", at)
	if err == nil {
		return ln, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: port %d is in use by another program: stop that one, or choose another port with %s (or shift all ports with --port-offset N): %w", what, port, key, err)
	}
	return nil, fmt.Errorf("%s: listen on %s (address and port are set by bindAddress and %s): %w", what, at, key, err)
}

func port(ln net.Listener) uint16 {
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		return uint16(a.Port)
	}
	return 0
}
