package node

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/broker/txn"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// half sends a half message and returns what its producer knows.
func half(t *testing.T, n *Node, body string, props ...string) protocol.SendResponse {
	t.Helper()
	block := "TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01K-" + body + "\x02"
	for i := 0; i < len(props); i += 2 {
		block += props[i] + "\x01" + props[i+1] + "\x02"
	}
	h := protocol.SendHeader{
		ProducerGroup: "P", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 1, SysFlag: mq.SysTxPrepared,
		Properties: block,
	}
	req := remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...)
	req.Body = []byte(body)
	resp := call(t, n.Addresses().Broker, req)
	var at protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &at); err != nil {
		t.Fatal(err)
	}
	return at
}

// end brings a verdict and returns the answer's code.
func end(t *testing.T, n *Node, at protocol.SendResponse, v txn.Verdict) protocol.Code {
	t.Helper()
	_, pos, err := mq.ParseMessageID(at.MsgID)
	if err != nil {
		t.Fatal(err)
	}
	resp := call(t, n.Addresses().Broker, remoting.NewRequest(int32(protocol.EndTransaction), protocol.EncodeFields(&protocol.EndTransactionHeader{
		ProducerGroup: "P", QueueOffset: at.QueueOffset, LogOffset: pos, Verdict: int32(v), TransactionID: at.TransactionID, MsgID: at.TransactionID,
	})...))
	return protocol.Code(resp.Code)
}

func transactions(t *testing.T, n *Node, givenUp bool) protocol.TransactionList {
	t.Helper()
	resp := ask(t, n, protocol.ListTransactions, &protocol.ListTransactionsHeader{After: -1, Max: 100, GivenUp: givenUp}, nil)
	var list protocol.TransactionList
	if err := protocol.DecodeBody(resp.Body, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Transactions over the wire: the codes of first, second and contradicting
// verdicts, before a restart and behind it.
func TestTransactionsOverTheWire(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	n := start(t, cfg)
	a, b, c := half(t, n, "a"), half(t, n, "b"), half(t, n, "c")
	delayed := half(t, n, "open")
	for _, x := range []struct {
		at   protocol.SendResponse
		v    txn.Verdict
		want protocol.Code
	}{
		{a, txn.VerdictUnknown, 0}, {a, txn.VerdictCommit, 0}, {a, txn.VerdictCommit, 0}, {a, txn.VerdictRollback, protocol.IllegalOperation},
		{b, txn.VerdictRollback, 0}, {b, txn.VerdictRollback, 0}, {b, txn.VerdictCommit, protocol.IllegalOperation},
		{c, 7, protocol.InvalidParameter},
	} {
		if got := end(t, n, x.at, x.v); got != x.want {
			t.Errorf("verdict %d of %s: %d, want %d", x.v, x.at.TransactionID, got, x.want)
		}
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = start(t, cfg)
	if got := end(t, n, a, txn.VerdictRollback); got != protocol.IllegalOperation {
		t.Errorf("rollback of a committed one after a restart: %d", got)
	}
	if got := end(t, n, c, txn.VerdictCommit); got != 0 {
		t.Errorf("commit after a restart: %d", got)
	}
	var ids []string
	for _, x := range transactions(t, n, false).Transactions {
		ids = append(ids, x.ID)
	}
	if !slices.Equal(ids, []string{delayed.TransactionID}) {
		t.Errorf("open are %v", ids)
	}
	if got := received(t, n); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("received %q", got)
	}
}

// A transaction with a delay or a due time is delivered that long after its commit,
// once; one whose due time cannot be is refused when it is prepared.
func TestDelayedTransactions(t *testing.T) {
	t.Parallel()
	n := start(t, small(t.TempDir()))
	level, timed := half(t, n, "level", "DELAY", "1"), half(t, n, "timed", "TIMER_DELAY_MS", "700")
	recalled := half(t, n, "recalled", "TIMER_DELAY_MS", "1500")
	if at := half(t, n, "never", "TIMER_DELAY_SEC", "-1"); at.MsgID != "" {
		t.Error("a due time below 0 was taken")
	}
	<-time.After(1200 * time.Millisecond)
	if got := received(t, n); len(got) != 0 {
		t.Fatalf("%q before the commit", got)
	}
	committed := time.Now().UnixMilli()
	for _, at := range []protocol.SendResponse{level, timed, timed, level, recalled} {
		if got := end(t, n, at, txn.VerdictCommit); got != 0 {
			t.Errorf("commit: %d", got)
		}
	}
	// What is committed and waits is recalled by its sequence or its key, and committed again it stays so.
	handle := protocol.RecallHandle{Topic: "T", Broker: n.cfg.Broker.Name, Unique: "K-recalled", Seq: 1}
	ask(t, n, protocol.RecallMessage, &protocol.RecallHeader{Topic: "T", Handle: handle.String()}, nil)
	if got := end(t, n, recalled, txn.VerdictCommit); got != 0 {
		t.Errorf("commit again: %d", got)
	}
	var got []string
	for deadline := time.Now().Add(10 * time.Second); len(got) < 2 && time.Now().Before(deadline); got = received(t, n) {
		<-time.After(20 * time.Millisecond)
	}
	if late := time.Now().UnixMilli() - committed; late < 1000 {
		t.Errorf("both are there after %d ms", late)
	}
	<-time.After(300 * time.Millisecond)
	if got = received(t, n); !slices.Equal(got, []string{"timed", "level"}) {
		t.Errorf("received %q", got)
	}
}

// T05: the broker's own topics cannot be deleted, and deleting something else leaves
// finished transactions finished.
func TestT05InternalTopicsStay(t *testing.T) {
	t.Parallel()
	cfg := small(t.TempDir())
	n := start(t, cfg)
	for i := range 50 {
		if got := end(t, n, half(t, n, fmt.Sprint(i)), txn.VerdictCommit); got != 0 {
			t.Fatal(got)
		}
	}
	kept := half(t, n, "open")
	ask(t, n, protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"unrelated"}`))
	ask(t, n, protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: "unrelated", CleanOffset: true}, nil)
	for _, topic := range []string{mq.TopicTransHalf, mq.TopicTransOp, mq.TopicTransDiscard} {
		resp := call(t, n.Addresses().Broker, remoting.NewRequest(int32(protocol.DeleteTopicInBroker), remoting.Field{Key: "topic", Value: topic}))
		if resp.Code == 0 {
			t.Errorf("%s was deleted", topic)
		}
	}
	resp := call(t, n.Addresses().Broker, remoting.NewRequest(int32(protocol.DeleteSubscriptionGroup), protocol.EncodeFields(&protocol.DeleteGroupHeader{Group: mq.GroupTrans, CleanOffset: true})...))
	if resp.Code == 0 {
		t.Error("the group of transactions was deleted")
	}
	// Whatever a client says of that group's progress.
	_ = call(t, n.Addresses().Broker, remoting.NewRequest(int32(protocol.UpdateConsumerOffset), protocol.EncodeFields(&protocol.UpdateConsumerOffsetHeader{
		ConsumerGroup: mq.GroupTrans, Topic: mq.TopicTransHalf, CommitOffset: 51,
	})...))
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = start(t, cfg)
	if list := transactions(t, n, false); len(list.Transactions) != 1 || list.Transactions[0].ID != kept.TransactionID {
		t.Errorf("open are %+v", list)
	}
}

// A store of RocketMQ with open transactions is continued: what is open there is
// open here, with its tries; what RocketMQ asked about although it was committed is
// not.
func TestStoreOfRocketMQWithTransactions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the archives hold names that Windows does not know")
	}
	cfg := small(unpack(t, "transactions"))
	s := &cfg.Broker.Store
	s.LogFileSize, s.QueueFileSize, s.IndexSlots, s.IndexEntries = 65536, 1000, 100, 400
	cfg.Broker.Produce.MaxBody = 32 << 10
	for life := range 2 {
		n, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range transactions(t, n, false).Transactions {
			if x.Topic != "tx" {
				t.Errorf("%+v goes to %s", x, x.Topic)
			}
			name := x.Keys
			if name == "" {
				name = x.ID
			}
			got = append(got, fmt.Sprint(name, " ", x.Tries))
		}
		want := []string{"unknown-check-unknown-pending 9", "immune 9", "late-pending 6", "raw-tx-foreign-group 6"}
		if life == 1 {
			want = want[:3]
		}
		if !slices.Equal(got, want) {
			t.Errorf("life %d: open are %q, want %q", life, got, want)
		}
		if life == 0 {
			ask(t, n, protocol.ResolveTransaction, &protocol.TransactionHeader{ID: "raw-tx-foreign-group", Action: "commit"}, nil)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}
