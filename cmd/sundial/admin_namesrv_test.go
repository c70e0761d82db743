package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/node"
)

// nameServerOnly runs a name server without a broker.
func nameServerOnly(t *testing.T) string {
	t.Helper()
	cfg := smallNode(t.TempDir())
	cfg.Roles = node.NameServer
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n.Addresses().NameServer.String()
}

func TestAdminOfNameServers(t *testing.T) {
	t.Parallel()
	at := broker(t)
	one, two := at.NameServer.String(), nameServerOnly(t)
	const nobody = "127.0.0.1:1"
	both := one + ";" + two
	for _, c := range []struct {
		names, args string
		code        int
		says        []string
	}{
		{both, "topic create Orders --queues 2", 0, nil},
		{both, "list", 0, []string{one, two, "broker-a[0]"}},
		{both + ";" + nobody, "list", exitPartial, []string{one, nobody, "2 of 3"}},
		{nobody, "list", exitUnreachable, []string{nobody}},
		{one, "route Orders", 0, []string{at.Broker.String(), "rw"}},
		{both, "route Orders", exitPartial, []string{at.Broker.String(), two}},
		{both, "route Nothing", exitNotFound, []string{"Nothing"}},
		{both, "topics", 0, []string{"Orders"}},
		{both, "topics --kind system", 0, []string{"broker-a"}},
		{both, "topics --kind unit", 0, []string{"none"}},
		{both, "topics --kind rare", 2, []string{"rare", "unit-sub"}},
		{both, "topics -c DefaultCluster", 0, []string{"Orders"}},
		{both, "topics -c DefaultCluster --kind unit", 2, []string{"--kind"}},

		{both, "kv list ns", exitNotFound, []string{"ns"}},
		{both, "kv put ns k v --dry-run", 0, []string{one, two, "set k of ns to v"}},
		{both, "kv get ns k", exitNotFound, nil},
		{one, "kv put ns k v", 0, []string{"k is v"}},
		{both, "kv get ns k", 0, []string{one, "v"}},
		{both, "kv list ns", 0, []string{"k", "v"}},
		{both + ";" + nobody, "kv put ns k2 v2", exitPartial, []string{"2 of 3"}},
		{both, "kv delete ns k", exitRefused, []string{one + ": delete k of ns, which is v", "--yes"}},
		{both + ";" + nobody, "kv delete ns k --yes", exitPartial, nil},
		{both, "kv get ns k", 0, nil}, // one could not be asked, so none was changed
		{both, "kv delete ns k --yes", 0, []string{"deleted"}},
		{both, "kv delete ns k --yes", exitNotFound, nil},

		{both, "order show", 0, []string{"none"}},
		{both, "order show Orders", exitNotFound, []string{"Orders"}},
		{both, "order set Orders broker-a:2;broker-b", 2, []string{"broker-b"}},
		{both, "order set Orders broker-a:2;broker-b:4", 0, []string{"Orders is broker-a:2;broker-b:4"}},
		{both, "order show Orders", 0, []string{one, two, "broker-a:2;broker-b:4"}},
		{one, "route Orders", 0, nil},
		{both, "config set orderMessageEnable=true waitSecondsForService=1", 0, []string{one, two}},
		{one, "route Orders", 0, []string{"broker-a:2;broker-b:4"}},
		{both, "order delete Orders --yes", 0, nil},
		{both, "config get orderMessageEnable nothing", 0, []string{one, two, "true"}},
		{both, "config get", 0, []string{"scanNotActiveBrokerInterval", "kvConfigPath"}},
		{both, "config get nothing", exitNotFound, []string{"nothing"}},
		{both, "config set serverChannelMaxIdleTimeSeconds=5", exitRefused, []string{"restart"}},
		{both, "config set orderMessageEnable", 2, []string{"KEY=VALUE"}},
		{both, "config set nonsense=1", exitRefused, []string{"nonsense"}},

		{one, "write-perm wipe broker-a", exitRefused, []string{"--yes"}},
		{one, "write-perm wipe broker-a --yes", 0, []string{"topics of broker broker-a"}},
		{one, "route Orders", 0, []string{" r "}},
		{both, "write-perm add broker-a", exitPartial, []string{"topics of broker broker-a"}},
		{one, "route Orders", 0, []string{" rw "}},
		{both, "write-perm wipe broker-b --yes", exitNotFound, []string{"did you mean broker-a"}},

		{one, "forget Orders", exitRefused, []string{"--yes"}},
		{one, "forget Orders --yes", 0, []string{"forgotten"}},
		{one, "route Orders", exitNotFound, nil},
	} {
		args := strings.Fields(c.args)
		if args[0] != "topic" {
			args = append([]string{"namesrv"}, args...)
		}
		out, code := command(t, append([]string{"admin", "-n", c.names}, args...)...)
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d; it wrote\n%s", c.args, code, c.code, out)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: %q is not in\n%s", c.args, s, out)
			}
		}
	}
	for _, args := range []string{"list", "topics", "config get", "order show", "kv list ns", "kv put ns a b", "forget Nothing --yes"} {
		out, code := command(t, append([]string{"admin", "-n", one, "--json", "namesrv"}, strings.Fields(args)...)...)
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("--json %s: exit code %d, wrote\n%s", args, code, out)
		}
	}
}

// A topic that is deleted goes from every name server, also from one that keeps
// topics until it is told.
func TestDeletedTopicsAreForgotten(t *testing.T) {
	t.Parallel()
	at := broker(t)
	both := at.NameServer.String() + ";" + nameServerOnly(t)
	if out, code := command(t, "admin", "-n", both, "topic", "create", "T"); code != 0 {
		t.Fatal(out)
	}
	out, code := command(t, "admin", "-n", both, "topic", "delete", "T", "--yes")
	if code != 0 || strings.Count(out, "topic T is forgotten") != 2 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := command(t, "admin", "-n", both, "namesrv", "route", "T"); code != exitNotFound {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := command(t, "admin", "-n", both, "topic", "create", "U"); code != 0 {
		t.Fatal(out)
	}
	if out, code := command(t, "admin", "-n", both, "-b", "broker-a", "topic", "delete", "U", "--dry-run"); code != 0 || strings.Contains(out, "forget") {
		t.Errorf("of one broker only: %d %s", code, out)
	}
}
