package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// decider answers local execution and checks by message body.
type decider struct {
	mu      sync.Mutex
	local   func(body string) primitive.LocalTransactionState
	asked   func(body string, times int) primitive.LocalTransactionState
	checks  map[string]int
	checked []primitive.MessageExt
}

func (d *decider) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return d.local(string(m.Body))
}

func (d *decider) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.checks == nil {
		d.checks = map[string]int{}
	}
	d.checks[string(m.Body)]++
	d.checked = append(d.checked, *m)
	return d.asked(string(m.Body), d.checks[string(m.Body)])
}

func (d *decider) times(body string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.checks[body]
}

func (n *node) transactional(group string, d *decider) rocketmq.TransactionProducer {
	n.t.Helper()
	p, err := rocketmq.NewTransactionProducer(d, producer.WithNsResolver(n.resolver()), producer.WithGroupName(group), producer.WithInstanceName(instance()))
	if err != nil {
		n.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = p.Shutdown() })
	return p
}

// A producer commits, rolls back, and is asked about what it left open.
func TestTransactions(t *testing.T) {
	t.Parallel()
	n := start(t, "--set", "transactionTimeOut=1000", "--set", "transactionCheckInterval=1000")
	topic := n.topic(2)
	got := newInbox()
	n.consume("g-"+topic, topic, "", got)
	d := &decider{
		local: func(body string) primitive.LocalTransactionState {
			switch body {
			case "commit":
				return primitive.CommitMessageState
			case "rollback":
				return primitive.RollbackMessageState
			}
			return primitive.UnkonwnState
		},
		asked: func(body string, times int) primitive.LocalTransactionState {
			switch {
			case body == "asked, commit" && times == 2:
				return primitive.CommitMessageState
			case body == "asked, rollback":
				return primitive.RollbackMessageState
			}
			return primitive.UnkonwnState
		},
	}
	p := n.transactional("p-"+topic, d)
	for _, body := range []string{"commit", "rollback", "asked, commit", "asked, rollback"} {
		began := time.Now()
		res, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(topic, []byte(body)))
		if err != nil || res.Status != primitive.SendOK {
			t.Fatalf("send %q: %v %v", body, res, err)
		}
		t.Logf("%q took %v", body, time.Since(began))
	}
	exactlyOnce(t, got.wait(t, 2, 20*time.Second), []string{"commit", "asked, commit"})
	got.quiet(t, 2, 4*time.Second)
	for body, want := range map[string]int{"commit": 0, "rollback": 0, "asked, commit": 2, "asked, rollback": 1} {
		if times := d.times(body); times != want {
			t.Errorf("%q was asked about %d times, want %d", body, times, want)
		}
	}
	for _, m := range d.checked {
		if m.GetProperty("TRANSACTION_CHECK_TIMES") == "" || m.Topic != topic {
			t.Errorf("the check says %s %v", m.Topic, m.GetProperties())
		}
	}
}
