package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// soonChecked has the broker ask early what became of a transaction.
var soonChecked = []string{"--set", "transactionTimeOut=1000", "--set", "transactionCheckInterval=1000", "--set", "transactionCheckMax=200"}

// decider answers for a transaction by the body of its message: "commit", "rollback"
// and "unknown" at once; "later commit" and "later rollback" when asked, and
// "hesitant commit" when asked for the second time.
type decider struct {
	mu      sync.Mutex
	checked map[string]int
}

func (d *decider) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch word, _, _ := strings.Cut(string(m.Body), " "); word {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (d *decider) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	body := string(m.Body)
	d.checked[body]++
	switch {
	case strings.HasPrefix(body, "unknown"):
		return primitive.UnkonwnState
	case strings.HasPrefix(body, "hesitant") && d.checked[body] < 2:
		return primitive.UnkonwnState
	case strings.Contains(body, "rollback"):
		return primitive.RollbackMessageState
	}
	return primitive.CommitMessageState
}

func (d *decider) checks(body string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.checked[body]
}

func (n *node) transactions(group string, l primitive.TransactionListener) rocketmq.TransactionProducer {
	n.t.Helper()
	p, err := rocketmq.NewTransactionProducer(l, producer.WithNsResolver(n.resolver()), producer.WithInstanceName(instance()),
		producer.WithGroupName(group), producer.WithRetry(0), producer.WithSendMsgTimeout(3*time.Second))
	if err != nil {
		n.t.Fatalf("transactional producer: %v", err)
	}
	if err := p.Start(); err != nil {
		n.t.Fatalf("start transactional producer: %v", err)
	}
	n.t.Cleanup(func() { p.Shutdown() })
	return p
}

func TestTransactionsEndAsAnswered(t *testing.T) {
	t.Parallel()
	n := start(t, soonChecked...)
	topic := n.topic(3)
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	d := &decider{checked: map[string]int{}}
	p := n.transactions("tx-"+topic, d)
	var want []string
	kinds := []string{"commit", "rollback", "later commit", "later rollback", "hesitant commit", "unknown"}
	for i := range 30 {
		body := fmt.Sprint(kinds[i%len(kinds)], " ", i)
		m := primitive.NewMessage(topic, []byte(body)).WithTag("t").WithKeys([]string{fmt.Sprint("k", i)})
		m.WithProperty("color", "rot")
		r, err := p.SendMessageInTransaction(t.Context(), m)
		if err != nil || r.Status != primitive.SendOK {
			t.Fatalf("%s: %v %v", body, r, err)
		}
		if strings.Contains(body, "commit") {
			want = append(want, body)
		}
	}
	for _, m := range b.wait(t, len(want), 90*time.Second) {
		if m.Topic != topic || m.GetProperty("color") != "rot" || m.GetTags() != "t" || m.GetKeys() == "" {
			t.Errorf("%s came as topic %s with %v", m.Body, m.Topic, m.GetProperties())
		}
	}
	eventually(t, 60*time.Second, "several checks of what stays unknown", func() bool { return d.checks("unknown 5") >= 3 })
	b.quiet(t, len(want), time.Second)
	exactlyOnce(t, b.all(), want)
	for body, least := range map[string]int{"commit 0": 0, "rollback 1": 0, "later commit 2": 1, "later rollback 3": 1, "hesitant commit 4": 2} {
		if got := d.checks(body); got < least || least == 0 && got > 0 {
			t.Errorf("%s was asked about %d times, want %d", body, got, least)
		}
	}
	if got := n.stored(topic); len(got) != len(want) {
		t.Errorf("the topic holds %d messages, %d were committed", len(got), len(want))
	}
}

// txnChild is the child process of the next test: a producer that sends and never
// says how its transactions ended.
const txnChild = "E2E_TXN_CHILD"

type silent struct{ sent chan<- string }

func (s *silent) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	s.sent <- string(m.Body)
	select {}
}

func (s *silent) CheckLocalTransaction(*primitive.MessageExt) primitive.LocalTransactionState {
	select {}
}

// runTxnChild is main of the child: name server, topic and group are in its
// environment. It writes each body whose message is stored.
func runTxnChild() {
	args := strings.Fields(os.Getenv(txnChild))
	sent := make(chan string)
	p, err := rocketmq.NewTransactionProducer(&silent{sent}, producer.WithNsResolver(primitive.NewPassthroughResolver(args[:1])),
		producer.WithGroupName(args[2]), producer.WithRetry(0), producer.WithSendMsgTimeout(10*time.Second))
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := range 20 {
		body := fmt.Sprint([]string{"later commit ", "later rollback "}[i%2], i)
		go func() {
			if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(args[1], []byte(body))); err != nil {
				fmt.Fprintln(os.Stderr, body, err)
				os.Exit(1)
			}
		}()
	}
	for body := range sent {
		fmt.Println(body)
	}
}

// When a producer dies in the middle of its transactions, another one of its group
// is asked how they ended.
func TestTransactionsOfAKilledProducer(t *testing.T) {
	t.Parallel()
	n := start(t, soonChecked...)
	topic := n.topic(2)
	group := "tx-" + topic
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), txnChild+"="+strings.Join([]string{n.namesrv, topic, group}, " "))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var want []string
	lines := bufio.NewScanner(out)
	for stored := 0; stored < 20 && lines.Scan(); stored++ {
		if strings.Contains(lines.Text(), "commit") {
			want = append(want, lines.Text())
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if len(want) != 10 {
		t.Fatalf("the child stored %v", want)
	}
	b.quiet(t, 0, 2*time.Second) // nobody is there who could say
	d := &decider{checked: map[string]int{}}
	heir := n.transactions(group, d)
	// A producer tells the brokers that it knows of itself, and knows those that it
	// has sent to.
	if r, err := heir.SendMessageInTransaction(t.Context(), primitive.NewMessage(topic, []byte("commit mine"))); err != nil || r.Status != primitive.SendOK {
		t.Fatalf("%v %v", r, err)
	}
	want = append(want, "commit mine")
	b.wait(t, len(want), 120*time.Second)
	eventually(t, 60*time.Second, "every rollback asked about", func() bool {
		for i := 1; i < 20; i += 2 {
			if d.checks(fmt.Sprint("later rollback ", i)) == 0 {
				return false
			}
		}
		return true
	})
	b.quiet(t, len(want), time.Second)
	exactlyOnce(t, b.all(), want)
}

func TestTransactionsSurviveKillsUnderSyncFlush(t *testing.T) { killUnderTransactions(t, "SYNC_FLUSH") }

func TestTransactionsSurviveKillsUnderAsyncFlush(t *testing.T) {
	killUnderTransactions(t, "ASYNC_FLUSH")
}

// killUnderTransactions kills the server again and again under transactions of each
// kind. At the end every committed message is in its topic exactly once and none
// that was rolled back.
func killUnderTransactions(t *testing.T, flush string) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs a server of its own")
	}
	n := start(t, append([]string{"--set", "flushDiskType=" + flush}, soonChecked...)...)
	topic := n.topic(4)
	p := n.transactions("tx-"+topic, &decider{checked: map[string]int{}})
	total := max(rounds(t)/10, 3)
	var mu sync.Mutex
	committed := map[string]bool{} // bodies that were stored and are to be committed
	for round := range total {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		var stored atomic.Int32
		for s := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					body := fmt.Sprint([]string{"commit", "rollback", "later commit", "later rollback", "commit"}[i%5], " r", round, " s", s, " m", i)
					sctx, done := context.WithTimeout(ctx, 2*time.Second)
					r, err := p.SendMessageInTransaction(sctx, primitive.NewMessage(topic, []byte(body)))
					done()
					if err != nil || r.Status != primitive.SendOK {
						select {
						case <-ctx.Done():
						case <-time.After(20 * time.Millisecond):
						}
						continue
					}
					if stored.Add(1); strings.Contains(body, "commit") {
						mu.Lock()
						committed[body] = true
						mu.Unlock()
					}
				}
			})
		}
		eventually(t, 30*time.Second, fmt.Sprintf("round %d: 100 stored transactions", round), func() bool { return stored.Load() >= 100 })
		n.kill()
		cancel()
		wg.Wait()
		n.up()
	}
	n.awaitRoute(topic)
	var all []message
	// The producer is known again with its next heartbeat, and then asked.
	eventually(t, 150*time.Second, "every committed message", func() bool {
		all = n.stored(topic)
		have := map[string]bool{}
		for _, m := range all {
			have[m.Body] = true
		}
		missing := 0
		for body := range committed {
			if !have[body] {
				missing++
			}
		}
		if missing > 0 {
			time.Sleep(time.Second)
		}
		return missing == 0
	})
	time.Sleep(3 * time.Second) // what is to be checked still would be, and come twice
	count := map[string]int{}
	for _, m := range n.stored(topic) {
		if count[m.Body]++; count[m.Body] > 1 {
			t.Errorf("%s is there %d times", m.Body, count[m.Body])
		}
		if strings.Contains(m.Body, "rollback") {
			t.Errorf("%s was rolled back and is there", m.Body)
		}
	}
	t.Logf("%s: %d kills, %d committed, each once", flush, total, len(committed))
}
