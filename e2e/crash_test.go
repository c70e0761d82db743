package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// rounds is how often the server is killed: KILL_ROUNDS, by default 50.
func rounds(t *testing.T) int {
	if s := os.Getenv("KILL_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			t.Fatalf("KILL_ROUNDS=%s: want a number of rounds", s)
		}
		return n
	}
	return 50
}

// ledger is what the server said about stored messages.
type ledger struct {
	mu    sync.Mutex
	acked map[string]bool     // bodies acknowledged
	place map[[2]int64]string // queue and queue offset told, to body
}

func (l *ledger) ack(body string, r *primitive.SendResult) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := [2]int64{int64(r.MessageQueue.QueueId), r.QueueOffset}
	if other, taken := l.place[at]; taken {
		return fmt.Errorf("queue %d offset %d was given to %q and then to %q", at[0], at[1], other, body)
	}
	l.place[at], l.acked[body] = body, true
	return nil
}

func TestNothingAcknowledgedIsLostByKillUnderSyncFlush(t *testing.T) {
	killUnderLoad(t, "SYNC_FLUSH")
}

func TestNothingAcknowledgedIsLostByKillUnderAsyncFlush(t *testing.T) {
	killUnderLoad(t, "ASYNC_FLUSH")
}

// killUnderLoad kills the server again and again under senders, then reads
// everything. The mappings of a killed process live on in the page cache, so
// nothing acknowledged may be missing in either flush mode.
func killUnderLoad(t *testing.T, flush string) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs a server of its own")
	}
	n := start(t, "--set", "flushDiskType="+flush)
	topic := n.topic(4)
	const senders = 4
	p := n.producer()
	l := &ledger{acked: map[string]bool{}, place: map[[2]int64]string{}}
	total := rounds(t)
	if flush == "ASYNC_FLUSH" {
		total = max(total/5, 5)
	}
	for round := range total {
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		var stored atomic.Int32
		for s := range senders {
			wg.Go(func() { sendUntil(ctx, t, p, topic, fmt.Sprintf("r%d s%d", round, s), l, &stored) })
		}
		for deadline := time.Now().Add(20 * time.Second); stored.Load() < 200; {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: only %d messages stored in 20 s", round, stored.Load())
			}
			time.Sleep(5 * time.Millisecond)
		}
		n.kill()
		cancel()
		wg.Wait()
		n.up()
	}
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	deadline := time.Now().Add(60 * time.Second)
	missing := func() (count int, one string) {
		have := bodies(b.all())
		for body := range l.acked {
			if have[body] == 0 {
				count, one = count+1, body
			}
		}
		return
	}
	for {
		count, one := missing()
		if count == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d acknowledged messages are missing after %d kills, for example %q", count, len(l.acked), total, one)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, m := range b.all() {
		at := [2]int64{int64(m.Queue.QueueId), m.QueueOffset}
		if told, ok := l.place[at]; ok && told != string(m.Body) {
			t.Errorf("queue %d offset %d was told for %q and holds %q", at[0], at[1], told, m.Body)
		}
	}
	t.Logf("%s: %d kills, %d acknowledged, 0 missing", flush, total, len(l.acked))
}

func sendUntil(ctx context.Context, t *testing.T, p rocketmq.Producer, topic, name string, l *ledger, stored *atomic.Int32) {
	for i := 0; ctx.Err() == nil; i++ {
		body := fmt.Sprint(name, " m", i)
		sctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		r, err := p.SendSync(sctx, primitive.NewMessage(topic, []byte(body)))
		cancel()
		if err != nil || r.Status != primitive.SendOK {
			if err == nil {
				err = errors.New("status not OK")
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		stored.Add(1)
		if err := l.ack(body, r); err != nil {
			t.Error(err)
			return
		}
	}
}

func TestDelayedMessagesSurviveKillsAndComeOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv("E2E_NAMESRV") != "" {
		t.Skip("needs a server of its own")
	}
	n := start(t, "--set", "flushDiskType=SYNC_FLUSH")
	topic := n.topic(2)
	p := n.producer()
	var want []string
	due := map[string]time.Time{}
	for round := range 6 {
		for i := range 150 {
			level := []int{1, 2, 1, 2, 3}[i%5]
			body := fmt.Sprint("round ", round, " level ", level, " number ", i)
			before := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			r, err := p.SendSync(ctx, primitive.NewMessage(topic, []byte(body)).WithDelayTimeLevel(level))
			cancel()
			if err != nil || r.Status != primitive.SendOK {
				t.Logf("send after restart: %v", err)
				time.Sleep(50 * time.Millisecond)
				continue
			}
			want = append(want, body)
			due[body] = before.Add(levels[level-1])
		}
		if round < 5 {
			time.Sleep(time.Duration(300+200*round) * time.Millisecond) // into the deliveries
			n.kill()
			n.up()
		}
	}
	b := newInbox()
	n.consume("g-"+topic, topic, "", b)
	b.wait(t, len(want), 60*time.Second)
	b.quiet(t, len(want), 3*time.Second)
	exactlyOnce(t, b.all(), want)
	for _, m := range b.all() {
		stored := time.UnixMilli(m.StoreTimestamp)
		if early := due[string(m.Body)].Sub(stored); early > time.Millisecond {
			t.Errorf("%s was delivered %v early", m.Body, early)
		}
	}
}
