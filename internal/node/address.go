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
		return nil, fmt.Errorf("%s: port %d is in use by another program: stop that one, or choose another port with %s (or shift all default ports with --port-offset N): %w", what, port, key, err)
	}
	return nil, fmt.Errorf("%s: listen on %s (address and port are set by bindAddress and %s): %w", what, at, key, err)
}

// door is a port between the start, which finds out whether it is free, and the
// time when somebody serves it. In between nobody listens there: a client that
// comes while the store recovers is refused at once and goes elsewhere, where it
// would otherwise wait for an answer in vain. Only a door whose number the system
// chose stays open, as it would get another one.
type door struct {
	what, bind, key string
	addr            netip.AddrPort // of the listener
	ln              net.Listener   // nil while nobody listens
}

func newDoor(what, bind string, port int, key string) (*door, error) {
	ln, err := listen(what, bind, port, key)
	if err != nil {
		return nil, err
	}
	d := &door{what: what, bind: bind, key: key, addr: localAddr(ln), ln: ln}
	if port != 0 {
		d.ln = nil
		return d, ln.Close()
	}
	return d, nil
}

// open listens, if nobody does.
func (d *door) open() (err error) {
	if d.ln == nil {
		d.ln, err = listen(d.what, d.bind, int(d.addr.Port()), d.key)
	}
	return err
}

func (d *door) close() error {
	if d.ln == nil {
		return nil
	}
	return d.ln.Close()
}

func localAddr(ln net.Listener) netip.AddrPort {
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}
