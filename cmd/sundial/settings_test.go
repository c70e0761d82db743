package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/node"
)

// A node that registers with name servers elsewhere starts none of its own,
// unless it is told to.
func TestRolesFollowTheNameServers(t *testing.T) {
	t.Setenv("NAMESRV_ADDR", "")
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "broker.conf")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const both = node.NameServer | node.Broker
	for _, c := range []struct {
		what string
		s    settings
		want node.Roles
	}{
		{"nothing said", settings{}, both},
		{"-n", settings{namesrv: "127.0.0.1:9876"}, node.Broker},
		{"-n and --roles", settings{namesrv: "192.0.2.1:9876", roles: "broker,namesrv"}, both},
		{"--roles", settings{roles: "namesrv"}, node.NameServer},
		{"a file that means this machine", settings{file: file("namesrvAddr=192.0.2.1:9876;localhost:9876")}, both},
		{"a file that means another", settings{file: file("namesrvAddr=192.0.2.1:9876")}, node.Broker},
		{"a file that means another port", settings{file: file("namesrvAddr=127.0.0.1:9876"), portOffset: 10}, node.Broker},
		{"a file with another port", settings{file: file("namesrvAddr=127.0.0.1:9886"), portOffset: 10}, both},
		{"an address server", settings{set: []string{"fetchNamesrvAddrByAddressServer=true", "namesrvAddressServer=list"}}, node.Broker},
		{"--set", settings{set: []string{"namesrvAddr=192.0.2.1:9876"}}, node.Broker},
	} {
		_, got, err := c.s.read()
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.what, got, err, c.want)
		}
	}
	t.Setenv("NAMESRV_ADDR", "192.0.2.1:9876")
	if _, got, err := new(settings).read(); err != nil || got != node.Broker {
		t.Errorf("by the environment: %s, %v", got, err)
	}
}

func TestConfigCheckOfARole(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "namesrv.conf")
	if err := os.WriteFile(name, []byte("listenPort=10909\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, "config", "check", name, "--roles", "namesrv"); code != 0 || !strings.Contains(out, "is good, for a node that is namesrv\n") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := command(t, "config", "check", name); code != 0 || !strings.Contains(out, "namesrv and broker") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := command(t, "config", "check", name, "--roles", "king"); code != 2 || !strings.Contains(out, "king") {
		t.Errorf("%d %s", code, out)
	}
}

// N14: an address that nobody else reaches is told with what to do about it.
func TestN14LoopbackToldWithAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ listen, told, says string }{
		{"0.0.0.0:10911", "127.0.0.1:10911", "set brokerIP1 to an address of this machine"},
		{"127.0.0.1:10911", "127.0.0.1:10911", "open it with --listen 0.0.0.0"},
		{"127.0.0.1:10911", "192.0.2.7:10911", "nobody reaches it there; set --listen"},
		{"0.0.0.0:10911", "172.17.0.2:10911", "those outside of this network will not reach the broker"},
		{"0.0.0.0:10911", "192.0.2.7:10911", ""},
	} {
		at := node.Addresses{NameServer: netip.MustParseAddrPort("127.0.0.1:9876"), Listen: netip.MustParseAddrPort(c.listen), Broker: netip.MustParseAddrPort(c.told), NameServers: []string{"127.0.0.1:9876"}}
		if w := strings.Join(addressWarnings(node.DefaultConfig(), at), "\n"); !strings.Contains(w, c.says) || c.says == "" && w != "" {
			t.Errorf("listens on %s, tells %s: %q, want %q", c.listen, c.told, w, c.says)
		}
	}
}
