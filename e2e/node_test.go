package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// binary is the server under test, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	rlog.SetLogLevel("fatal")
	if os.Getenv(txnChild) != "" {
		runTxnChild()
	}
	dir, err := os.MkdirTemp("", "sundial-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if binary = os.Getenv("SUNDIAL_BINARY"); binary == "" {
		binary = filepath.Join(dir, "sundial")
		build := exec.Command("go", "build", "-o", binary, "./cmd/sundial")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the server: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// smallFiles keeps a node's disk use low.
var smallFiles = []string{"--set", "mappedFileSizeCommitLog=16777216", "--set", "maxHashSlotNum=10000", "--set", "maxIndexNum=40000"}

// node is a running server, or a cluster that somebody else runs.
type node struct {
	t       *testing.T
	dir     string
	offset  int
	args    []string
	namesrv string
	broker  string

	cmd *exec.Cmd
	out *syncBuffer
}

// nextOffset hands out port offsets, so that nodes of parallel tests do not meet.
var nextOffset atomic.Int32

func freeOffset(t *testing.T) int {
	t.Helper()
	for range 200 {
		offset := 12000 + 20*int(nextOffset.Add(1)) + os.Getpid()%97*100
		free := true
		for _, base := range []int{9876, 10909, 10911, 10912} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+offset))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return offset
		}
	}
	t.Fatal("no free ports for a node")
	return 0
}

// start runs a node of its own for this test; args are added to `sundial serve`.
func start(t *testing.T, args ...string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), offset: freeOffset(t), args: append(append([]string(nil), smallFiles...), args...)}
	n.namesrv, n.broker = fmt.Sprintf("127.0.0.1:%d", 9876+n.offset), fmt.Sprintf("127.0.0.1:%d", 10911+n.offset)
	n.up()
	t.Cleanup(func() {
		if n.cmd != nil {
			n.stop()
		}
		if t.Failed() {
			t.Logf("what the server said:\n%s", n.out.tail(6000))
		}
	})
	return n
}

// shared is a node that many tests use together, or the external cluster.
func shared(t *testing.T) *node {
	t.Helper()
	if ns := os.Getenv("E2E_NAMESRV"); ns != "" {
		return &node{t: t, namesrv: ns, broker: os.Getenv("E2E_BROKER")}
	}
	return start(t)
}

// up starts the process and waits until it accepts connections.
func (n *node) up() {
	n.t.Helper()
	if n.out == nil {
		n.out = &syncBuffer{}
	}
	args := append([]string{"serve", "--data", n.dir, "--port-offset", fmt.Sprint(n.offset)}, n.args...)
	n.cmd = exec.Command(binary, args...)
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.out
	if err := n.cmd.Start(); err != nil {
		n.t.Fatalf("start the server: %v", err)
	}
	exited := make(chan error, 1)
	cmd := n.cmd
	go func() { exited <- cmd.Wait() }()
	deadline := time.Now().Add(20 * time.Second)
	for {
		select {
		case err := <-exited:
			n.t.Fatalf("the server ended at start: %v\n%s", err, n.out.tail(4000))
		default:
		}
		if c, err := net.DialTimeout("tcp", n.broker, time.Second); err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("the server does not listen on %s\n%s", n.broker, n.out.tail(4000))
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.cmd.Cancel = func() error { <-exited; return nil }
}

// stop ends the server as an operator does and fails the test if it does not go cleanly.
func (n *node) stop() {
	n.t.Helper()
	n.end(syscall.SIGTERM)
}

// kill ends the server as a crash does.
func (n *node) kill() { n.end(syscall.SIGKILL) }

func (n *node) end(sig syscall.Signal) {
	if n.cmd == nil {
		return
	}
	if err := n.cmd.Process.Signal(sig); err != nil {
		n.t.Errorf("signal the server: %v", err)
	}
	done := make(chan struct{})
	go func() { n.cmd.Cancel(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		n.t.Errorf("the server did not end within 30 s of signal %v\n%s", sig, n.out.tail(4000))
		n.cmd.Process.Kill()
		<-done
	}
	if sig == syscall.SIGTERM && n.cmd.ProcessState != nil && n.cmd.ProcessState.ExitCode() != 0 {
		n.t.Errorf("the server ended with %v after SIGTERM\n%s", n.cmd.ProcessState, n.out.tail(4000))
	}
	n.cmd = nil
}

// resolver finds this node's name server.
func (n *node) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{n.namesrv})
}

// topic makes a topic with the given number of queues, named after the test.
func (n *node) topic(queues int) string {
	n.t.Helper()
	name := strings.NewReplacer("/", "-", "#", "-").Replace(n.t.Name()) + "-" + fmt.Sprint(time.Now().UnixNano()%1e9)
	n.makeTopic(name, queues, n.broker)
	return name
}

func (n *node) makeTopic(name string, queues int, brokers ...string) {
	n.t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(n.resolver()))
	if err != nil {
		n.t.Fatalf("admin client: %v", err)
	}
	defer a.Close()
	for _, broker := range brokers {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err = a.CreateTopic(ctx, admin.WithTopicCreate(name), admin.WithBrokerAddrCreate(broker),
			admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
		cancel()
		if err != nil {
			n.t.Fatalf("create topic %s: %v", name, err)
		}
	}
}

// awaitRoute waits until the name server knows a topic: the Go client's consumers
// do not start without.
func (n *node) awaitRoute(topic string) {
	n.t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(n.resolver()))
	if err != nil {
		n.t.Fatalf("admin client: %v", err)
	}
	defer a.Close()
	for deadline := time.Now().Add(20 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := a.FetchPublishMessageQueues(ctx, topic)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("the name server does not know topic %s: %v", topic, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// syncBuffer collects a process's output.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) tail(n int) string {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.b.String()
	if len(text) > n {
		text = "…" + text[len(text)-n:]
	}
	return text
}
