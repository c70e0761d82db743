package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/node"
)

// command runs one command line and returns what it wrote and its exit code.
func command(t *testing.T, args ...string) (string, int) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintln(&out, err)
	}
	return out.String(), codeOf(err)
}

// broker runs a small node.
func broker(t *testing.T) node.Addresses {
	t.Helper()
	n, err := node.Start(t.Context(), smallNode(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n.Addresses()
}

func smallNode(dir string) node.Config {
	cfg := node.DefaultConfig()
	cfg.Dir = dir
	cfg.NameServer.Port, cfg.Broker.Port, cfg.Broker.FastPort = 0, 0, -1
	s := &cfg.Broker.Store
	s.LogFileSize, s.QueueFileSize, s.IndexSlots, s.IndexEntries, s.Prefault, s.Reserve = 8<<20, 20_000, 100, 400, 0, 0
	return cfg
}

func TestAdminCommands(t *testing.T) {
	t.Parallel()
	at := broker(t)
	ns := at.NameServer.String()
	for _, c := range []struct {
		args string
		code int
		says []string // what the answer must hold
	}{
		{"cluster", 0, []string{"DefaultCluster", "broker-a", at.Broker.String()}},
		{"cluster -v", 0, []string{"commitLogMaxOffset"}},
		{"topic list", 0, []string{"none"}},
		{"topic list --all", 0, []string{"TBW102", "SCHEDULE_TOPIC_XXXX"}},
		{"topic create Orders --queues 2", 0, []string{"Orders", "2 queues"}},
		{"topic create Orders --perm x", 2, []string{"--perm"}},
		{"topic create Later --attr +message.type=DELAY", 0, nil},
		{"topic update Later --attr +message.type=LATER", exitRefused, []string{"LATER"}},
		{"topic list", 0, []string{"Orders", "message.type=DELAY"}},
		{"topic create Orders --queues 2", 0, []string{"as asked for"}},
		{"topic create Orders --queues 3", exitRefused, []string{"2 queues"}},
		{"message send Orders --body first --keys k1 --tags a --queue 0", 0, []string{"stored as"}},
		{"message send Orders --body second --keys k2 --queue 0", 0, nil},
		{"message send Orders --body later --keys k3 --level 5", 0, nil},
		{"message send Made --body x", 0, nil},
		{"topic show Orders", 0, []string{"broker-a"}},
		{"topic show Nothing", exitNotFound, []string{"no broker has topic Nothing"}},
		{"message list Orders", 0, []string{"first", "second"}},
		{"message list Orders --max 1", 0, []string{"second"}},
		{"message find --topic Orders --key k2", 0, []string{"second"}},
		{"message find --topic Orders --key nobody", exitNotFound, []string{"nobody"}},
		{"message find --topic Orders", 2, []string{"key"}},
		{"message get 12", 2, []string{"--topic"}},
		{"message get 7F000001000000010000000000000001", exitUnreachable, []string{"--topic"}},
		{"message list Orders --queue 0 --from 1", 0, []string{"second"}},
		{"message list Orders --from 1", 2, []string{"--queue"}},
		{"message list Orders --queue 0 --from 9", exitNotFound, []string{"0 up to 1"}},
		{"message list Orders --queue 9", exitNotFound, []string{"no queue 9"}},
		{"topic create Orders --queues 0", 2, []string{"--queues"}},
		{"topic show Orders", 0, []string{"messages 2"}},
		{"delay", 0, []string{"1m", "pending 1"}},
		{"delay list", 0, []string{"Orders", "k3"}},
		{"group create billing --retries 3", 0, []string{"retries 3"}},
		{"group list", 0, []string{"billing"}},
		{"group show billing", 0, []string{"retries 3"}},
		{"group show nobody", exitNotFound, []string{"nobody"}},
		{"group progress billing", 0, []string{"nothing yet"}},
		{"group show billing", 0, []string{"no consumer is connected", "nothing was consumed yet"}},
		{"group reset billing Orders --to earliest --yes", 0, []string{"broker-a"}},
		{"group progress billing", 0, []string{"lag 2"}},
		{"group reset billing Orders --to latest -y", 0, nil},
		{"group progress billing", 0, []string{"lag 0"}},
		{"group reset billing Orders --to offset:1 --queue 0 -y", 0, nil},
		{"group progress billing", 0, []string{"lag 1"}},
		{"group reset billing Orders --to offset:1", 2, []string{"--queue"}},
		{"group reset billing Orders --to yesterday", 2, []string{"yesterday"}},
		{"group reset billing Nothing --to latest", exitNotFound, nil},
		{"group reset nobody Orders --to latest", exitNotFound, []string{"no group nobody"}},
		{"group delete billing", exitRefused, nil},
		{"group delete billing --yes", 0, []string{"deleted"}},
		{"group delete billing", exitNotFound, []string{"billing"}},
		{"delay list --level 19", exitNotFound, []string{"it has 18"}},
		{"topic show", 2, []string{"topic show TOPIC; given was nothing"}},
		{"topic delete Orders", exitRefused, []string{"2 queues, 2 messages", "--yes"}},
		{"topic delete Orders --dry-run", 0, []string{"2 queues, 2 messages"}},
		{"topic delete Orders --yes", 0, []string{"deleted"}},
		{"topic show Orders", exitNotFound, nil},
		{"topic list --broker nobody", exitNotFound, []string{"nobody"}},
		{"topic list --broker " + at.Broker.String(), 0, []string{"Made"}},
		{"topic", 0, []string{"Available Commands"}},
		{"topic make", 2, []string{"create"}},
		{"topic list some extra", 2, nil},
		{"nonsense", 2, []string{"nonsense"}},
	} {
		out, code := command(t, append([]string{"admin", "-n", ns}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("admin %s: exit code %d, want %d; it wrote\n%s", c.args, code, c.code, out)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("admin %s: %q is not in\n%s", c.args, s, out)
			}
		}
	}
}

func TestAdminWritesJSON(t *testing.T) {
	t.Parallel()
	ns := broker(t).NameServer.String()
	if out, code := command(t, "admin", "-n", ns, "message", "send", "T", "--body", "hello", "--keys", "k", "--json"); code != 0 {
		t.Fatal(out)
	}
	for _, args := range []string{"cluster", "topic list", "topic show T", "message list T", "message find --topic T --key k", "delay", "delay list", "group list"} {
		out, code := command(t, append([]string{"admin", "-n", ns, "--json"}, strings.Fields(args)...)...)
		if code != 0 || !json.Valid([]byte(out)) {
			t.Errorf("admin --json %s: exit code %d, wrote\n%s", args, code, out)
		}
	}
}

func TestAdminWithoutAServer(t *testing.T) {
	t.Parallel()
	out, code := command(t, "admin", "-n", "127.0.0.1:1", "topic", "list")
	if code != exitUnreachable || !strings.Contains(out, "127.0.0.1:1") || !strings.Contains(out, "--namesrv") {
		t.Errorf("exit code %d, wrote\n%s", code, out)
	}
}

func TestStoreCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), smallNode(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if out, code := command(t, "admin", "-n", n.Addresses().NameServer.String(), "message", "send", "T", "--body", fmt.Sprint("body ", i), "--keys", "k"); code != 0 {
			t.Fatal(out)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	out, code := command(t, "store", "verify", dir, "--index-slots", "100", "--index-entries", "400")
	if code != 0 || !strings.Contains(out, "5 entries") || !strings.Contains(out, "in order") {
		t.Errorf("verify: exit code %d, wrote\n%s", code, out)
	}
	if out, code := command(t, "store", "verify", dir, "--json"); code != 0 || !strings.Contains(out, `"queueEntries": 5`) || !strings.Contains(out, "key index is left out") {
		t.Errorf("verify --json: exit code %d, wrote\n%s", code, out)
	}
	out, code = command(t, "store", "dump", dir)
	if code != 0 || strings.Count(out, "\n") != 5 {
		t.Errorf("dump: exit code %d, wrote\n%s", code, out)
	}
	out, code = command(t, "store", "dump", dir, "--json", "--max", "2", "--topic", "T")
	if code != 0 || strings.Count(out, `"body":"body `) != 2 {
		t.Errorf("dump --json: exit code %d, wrote\n%s", code, out)
	}
	if out, code := command(t, "store", "dump", dir, "--queues"); code != 0 || !strings.Contains(out, "T") {
		t.Errorf("dump --queues: exit code %d, wrote\n%s", code, out)
	}
	// A flipped byte of a body is found, and where.
	log := filepath.Join(dir, "commitlog", strings.Repeat("0", 20))
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("body 3"))]++
	if err := os.WriteFile(log, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, "store", "verify", dir); code != 1 || !strings.Contains(out, "body CRC") {
		t.Errorf("verify of a damaged store: exit code %d, wrote\n%s", code, out)
	}
	for _, none := range []string{filepath.Join(dir, "nothing"), t.TempDir(), filepath.Join(dir, "commitlog")} {
		if out, code := command(t, "store", "verify", none); code != 1 || strings.Contains(out, "in order") {
			t.Errorf("verify of %s: exit code %d, wrote\n%s", none, code, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "topics.json"), []byte("{garbage"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, "store", "verify", dir); code != 1 || !strings.Contains(out, "topics.json") {
		t.Errorf("verify with a damaged document: exit code %d, wrote\n%s", code, out)
	}
}

// syncWriter may be read while it is written.
type syncWriter struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *syncWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func TestQuickstartShowsEveryMessage(t *testing.T) {
	t.Parallel()
	var out syncWriter
	q := quickstart{dir: t.TempDir(), parcels: []load{{0, 3}, {1, 2}}, out: &out}
	if err := q.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, s := range []string{"5 messages sent, 5 received", "delay 1s", "late"} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("%q is not in\n%s", s, out.String())
		}
	}
	var size int64
	err := filepath.Walk(q.dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil || size > 100<<20 {
		t.Errorf("it left %d bytes, %v", size, err)
	}
}

func TestVerdictFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	good := arrival{now.Add(time.Millisecond), "b"}
	for _, c := range []struct {
		name     string
		arrivals []arrival
		says     string
	}{
		{"lost", nil, "did not arrive"},
		{"doubled", []arrival{good, good}, "2 times"},
		{"changed", []arrival{{good.at, "x"}}, `"x"`},
		{"early", []arrival{{now.Add(-time.Millisecond), "b"}}, "early"},
		{"good", []arrival{good}, ""},
	} {
		s := newShow(io.Discard)
		s.mu.rows = []*row{{parcel: parcel{number: 1, level: 1, body: "b", due: now}, arrivals: c.arrivals}}
		err := s.verdict()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestServeUntilStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var out syncWriter
	s := settings{data: t.TempDir(), roles: "namesrv,broker", portOffset: 3100, set: []string{"mappedFileSizeCommitLog=8388608"}}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, &s, &out, io.Discard) }()
	for !strings.Contains(out.String(), "Next:") {
		select {
		case err := <-ended:
			if node.PortInUse(err) {
				t.Skip(err)
			}
			t.Fatalf("%v\n%s", err, out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"127.0.0.1:12976", "127.0.0.1:14011", "127.0.0.1:14009", s.data, "--listen", "stopped clean"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// Nobody is told of a name server that does not know the broker.
func TestBannerNamesWhoKnowsTheBroker(t *testing.T) {
	t.Parallel()
	both, alone := node.DefaultConfig(), node.DefaultConfig()
	both.Broker.NameServers = []string{"10.0.0.5:9876"}
	alone.Roles = node.Broker
	at := node.Addresses{NameServer: netip.MustParseAddrPort("127.0.0.1:9976"), Listen: netip.MustParseAddrPort("127.0.0.1:11011"), Broker: netip.MustParseAddrPort("127.0.0.1:11011")}
	elsewhere, nowhere := at, at
	elsewhere.NameServers = both.Broker.NameServers
	nowhere.NameServer = netip.AddrPort{}
	for _, c := range []struct {
		cfg   node.Config
		at    node.Addresses
		says  []string
		never string
	}{
		{both, elsewhere, []string{"clients at the name server 10.0.0.5:9876", "leave that out with --roles broker"}, "admin cluster -n 127.0.0.1:9976"},
		{alone, nowhere, []string{"no name server, so no client", "-b 127.0.0.1:11011"}, "clients at the name server"},
	} {
		w := addressWarnings(c.cfg, c.at)
		var out bytes.Buffer
		next(&out, c.cfg, c.at)
		text := strings.Join(w, "\n") + out.String()
		for _, s := range c.says {
			if !strings.Contains(text, s) {
				t.Errorf("%q is not in\n%s", s, text)
			}
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%q is in\n%s", c.never, text)
		}
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serve", "--nothing"}, {"serve", "--roles", "king"}, {"serve", "extra"}, {"nonsense"}, {"serve", "--set", "fileReservedTim=3"}, {"serve", "--port-offset", "60000"}} {
		if out, code := command(t, args...); code != 2 {
			t.Errorf("%v: exit code %d, wrote\n%s", args, code, out)
		}
	}
	if out, code := command(t, "version"); code != 0 || !strings.Contains(out, "Sundial") {
		t.Errorf("version: %d, %s", code, out)
	}
	if codeOf(nil) != 0 || codeOf(errors.New("x")) != 1 || codeOf(exitCode(7)) != 7 {
		t.Error("exit codes")
	}
}
