package node

import (
	"net/netip"
	"testing"
)

func TestN01AddressTold(t *testing.T) {
	t.Parallel()
	addrs := func(list ...string) (out []netip.Addr) {
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	own := addrs("127.0.0.1", "::1", "fe80::1", "2001:db8::7", "169.254.3.4", "192.168.1.5", "10.0.0.9")
	for _, c := range []struct {
		name, said, bind string
		own              []netip.Addr
		want             string
	}{
		{"said is told", "203.0.113.9", "127.0.0.1", own, "203.0.113.9"},
		{"said as IPv6", "2001:db8::1", "", own, "2001:db8::1"},
		{"bound to loopback", "", "127.0.0.1", own, "127.0.0.1"},
		{"bound to one", "", "10.0.0.9", own, "10.0.0.9"},
		{"bound to all: the first that others can reach", "", "0.0.0.0", own, "192.168.1.5"},
		{"bound to all, IPv6 spelling", "", "::", own, "192.168.1.5"},
		{"bound to nothing in particular", "", "", own, "192.168.1.5"},
		{"only IPv6", "", "::", addrs("::1", "fe80::1", "2001:db8::7"), "2001:db8::7"},
		{"no network", "", "0.0.0.0", addrs("127.0.0.1"), "127.0.0.1"},
	} {
		got, err := advertised(c.said, c.bind, c.own)
		if err != nil || got.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, got, err, c.want)
		}
	}
	if _, err := advertised("not an address", "", own); err == nil {
		t.Error("brokerIP1 that is no address was taken")
	}
}

func TestRolesAreRead(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]Roles{"namesrv,broker": NameServer | Broker, "broker": Broker, " namesrv ": NameServer} {
		if got, err := ParseRoles(list); err != nil || got != want {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	if _, err := ParseRoles("broker,king"); err == nil {
		t.Error("an unknown role was taken")
	}
	if s := (NameServer | Broker).String(); s != "namesrv,broker" {
		t.Errorf("roles are written %q", s)
	}
}

func TestConfigComplaints(t *testing.T) {
	t.Parallel()
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	c.ShiftPorts(100)
	if c.NameServer.Port != 9976 || c.Broker.Port != 11011 || c.Broker.FastPort != 11009 {
		t.Errorf("shifted ports: %d %d %d", c.NameServer.Port, c.Broker.Port, c.Broker.FastPort)
	}
	c.Broker.FastPort = c.Broker.Port
	c.Broker.Name = ""
	c.Broker.IgnorePending = []string{"everything"}
	if err := c.Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 3 {
		t.Errorf("three mistakes: %v", err)
	}
}
