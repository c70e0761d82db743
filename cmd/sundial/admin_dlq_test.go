package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/node"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// adminOn runs admin commands against one node.
type adminOn struct {
	*testing.T
	at node.Addresses
}

func (a adminOn) run(code int, line string) string {
	a.Helper()
	out, got := command(a.T, append([]string{"admin", "-n", a.at.NameServer.String()}, strings.Fields(line)...)...)
	if got != code {
		a.Fatalf("admin %s: exit code %d, want %d; it wrote\n%s", line, got, code, out)
	}
	return out
}

func (a adminOn) json(v any, line string) {
	a.Helper()
	out := a.run(0, line+" --json")
	if err := json.Unmarshal([]byte(out), v); err != nil {
		a.Fatalf("admin %s: %v in\n%s", line, err, out)
	}
}

// bury sends a message and has group g give it up at once.
func (a adminOn) bury(r *remote, topic, body, keys, tag string) {
	a.Helper()
	var sent sentMessage
	a.json(&sent, fmt.Sprintf("message send %s --body %s --keys %s --tags %s", topic, body, keys, tag))
	_, pos, err := mq.ParseMessageID(sent.ID)
	if err != nil {
		a.Fatal(err)
	}
	if _, err := r.ask(a.Context(), a.at.Broker.String(), protocol.ConsumerSendMsgBack, &protocol.SendBackHeader{Offset: int64(pos), Group: "g", DelayLevel: -1, OriginTopic: topic, OriginMsgID: sent.ID}, nil); err != nil {
		a.Fatal(err)
	}
}

func dlqBroker(t *testing.T) (adminOn, *remote) {
	r, err := newRemote()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return adminOn{t, broker(t)}, r
}

// R05: dead letters can be looked at and put back, one, some or all, with what
// they were, and none twice.
func TestR05DeadLettersArePutBack(t *testing.T) {
	t.Parallel()
	a, r := dlqBroker(t)
	for i := range 4 {
		a.bury(r, "T", fmt.Sprint("body", i), fmt.Sprint("k", i), fmt.Sprint("tag", i%2))
	}
	var queues []deadQueue
	if a.json(&queues, "dlq list"); len(queues) != 1 || queues[0].Group != "g" || queues[0].Letters != 4 || queues[0].Oldest == 0 || queues[0].Oldest > queues[0].Newest {
		t.Fatalf("dlq list: %+v", queues)
	}
	if out := a.run(0, "dlq list x*"); !strings.Contains(out, "none") {
		t.Errorf("dlq list x*: %s", out)
	}
	var letters []deadLetter
	if a.json(&letters, "dlq show g"); len(letters) != 4 {
		t.Fatalf("%d letters", len(letters))
	}
	for i, l := range letters {
		if l.OriginTopic != "T" || l.OriginID == "" || l.Attempts != 1 || l.Reason == "" || l.Body != fmt.Sprint("body", i) {
			t.Errorf("letter %d: %+v", i, l)
		}
	}
	for filter, want := range map[string]int{"--tag tag1": 2, "--key k2": 1, "--since -1h": 4, "--tag tag1 --max 1": 1, "--id " + letters[3].OriginID: 1} {
		var some []deadLetter
		if a.json(&some, "dlq show g "+filter); len(some) != want {
			t.Errorf("dlq show g %s: %d letters, want %d", filter, len(some), want)
		}
	}
	a.run(exitNotFound, "dlq show g --until -1h")
	a.run(exitNotFound, "dlq show nobody")
	a.run(2, "dlq show g --since tomorrow")
	a.run(2, "dlq show g --since -1h --until -2h")
	if out := a.run(0, "dlq show g --id "+letters[0].ID); !strings.Contains(out, "DLQ_ORIGIN_TOPIC") {
		t.Errorf("one letter whole: %s", out)
	}

	var report redriveReport
	if a.json(&report, "dlq redrive g --all --dry-run"); report.Redriven != 4 || !report.DryRun {
		t.Errorf("dry run: %+v", report)
	}
	for _, c := range []struct {
		args             string
		redriven, before int
	}{
		{"--id " + letters[1].ID, 1, 0},
		{"--id " + letters[1].ID, 0, 1},
		{"--key k2", 1, 0},
		{"--tag tag1", 1, 1},
		{"--all --max 0", 1, 3},
		{"--all", 0, 4},
		{"--all --to retry", 0, 4},
		{"--key k3 --to retry --again", 1, 0},
	} {
		report = redriveReport{}
		if a.json(&report, "dlq redrive g "+c.args); report.Redriven != c.redriven || report.Before != c.before || report.Failed != 0 {
			t.Errorf("redrive %s: %+v, want %d and %d before", c.args, report, c.redriven, c.before)
		}
	}
	for args, want := range map[string]int{"--id " + strings.Repeat("0", 32): exitNotFound, "": 2, "--all --key k1": 2, "--all --to nowhere": 2, "--all --rate -1": 2} {
		a.run(want, "dlq redrive g "+args)
	}
	found := map[string]int{}
	for _, topic := range []string{"T", "%RETRY%g"} {
		for i := range 4 {
			var ms []messageView
			out, code := command(t, "admin", "-n", a.at.NameServer.String(), "--json", "message", "find", "--topic", topic, "--key", fmt.Sprint("k", i))
			if code == exitNotFound {
				continue
			}
			if err := json.Unmarshal([]byte(out), &ms); err != nil {
				t.Fatal(out)
			}
			for _, m := range ms {
				if of := m.Properties[propReplayOf]; of != "" {
					found[topic+" "+m.Body]++
					l := letters[i]
					if of != l.ID || m.Properties["UNIQ_KEY"] != l.Properties["UNIQ_KEY"] || m.Properties["TAGS"] != l.Properties["TAGS"] || m.Born != l.Born ||
						m.Properties["ORIGIN_MESSAGE_ID"] != l.Properties["ORIGIN_MESSAGE_ID"] || m.Properties[propDeadReason] != "" || m.Retries != 0 {
						t.Errorf("replayed: %+v", m)
					}
				}
			}
		}
	}
	if want := map[string]int{"T body0": 1, "T body1": 1, "T body2": 1, "T body3": 1, "%RETRY%g body3": 1}; fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("replayed %v, want %v", found, want)
	}
}

// A message without a unique key of its own is known again too, and an origin topic
// that is gone is not made.
func TestRedriveKnowsItsOwn(t *testing.T) {
	t.Parallel()
	a, r := dlqBroker(t)
	a.bury(r, "Gone", "x", "k", "t")
	h := protocol.SendHeader{ProducerGroup: "p", Topic: mq.DLQTopic("g"), DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, Properties: "RETRY_TOPIC\x01T\x02"}
	if _, err := r.send(t.Context(), a.at.Broker.String(), remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), []byte("bare")); err != nil {
		t.Fatal(err)
	}
	a.run(0, "topic create T")
	a.run(0, "topic delete Gone --yes")
	out := a.run(exitPartial, "dlq redrive g --all")
	if !strings.Contains(out, "topic Gone is gone") || !strings.Contains(out, "1 redriven, 0 redriven before, 1 failed") {
		t.Error(out)
	}
	if out = a.run(exitPartial, "dlq redrive g --all"); !strings.Contains(out, "0 redriven, 1 redriven before, 1 failed") {
		t.Error(out)
	}
	if out = a.run(0, "dlq redrive g --all --to retry"); !strings.Contains(out, "1 redriven, 1 redriven before, 0 failed") {
		t.Error(out)
	}
	a.run(exitRefused, "dlq purge g")
	if out = a.run(0, "dlq purge g --dry-run"); !strings.Contains(out, "2 messages") {
		t.Error(out)
	}
	a.run(0, "dlq purge g --yes")
	a.run(exitNotFound, "dlq purge g --yes")
	a.run(exitNotFound, "dlq show g")
	a.bury(r, "T", "new", "k", "t")
	var letters []deadLetter
	if a.json(&letters, "dlq show g"); len(letters) != 1 || letters[0].Body != "new" {
		t.Errorf("after a purge: %+v", letters)
	}
}
