package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// prepare sends a half message of group P and returns its transaction id.
func (a adminOn) prepare(r *remote, topic, name string) string {
	a.Helper()
	h := protocol.SendHeader{
		ProducerGroup: "P", Topic: topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 1, SysFlag: mq.SysTxPrepared, BornTime: time.Now().UnixMilli(),
		Properties: "TRAN_MSG\x01true\x02PGROUP\x01P\x02UNIQ_KEY\x01id-" + name + "\x02KEYS\x01" + name + "\x02",
	}
	if _, err := r.send(a.Context(), a.at.Broker.String(), remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), []byte("body of "+name)); err != nil {
		a.Fatal(err)
	}
	return "id-" + name
}

// Transactions are listed, shown and decided, once.
func TestAdminTransactions(t *testing.T) {
	t.Parallel()
	a, r := dlqBroker(t)
	for _, name := range []string{"one", "two", "three", "four"} {
		a.prepare(r, "T", name)
	}
	other := a.prepare(r, "U", "other")

	var list []brokerTransaction
	a.json(&list, "txn list --topic T")
	if len(list) != 4 || list[0].ID != "id-one" || list[0].Group != "P" || list[0].State != "open" || list[0].Broker == "" || list[0].Keys != "one" {
		t.Errorf("listed are %+v", list)
	}
	a.json(&list, "txn list --older-than 1h")
	if len(list) != 0 {
		t.Errorf("of an hour ago are %+v", list)
	}
	if out := a.run(0, "txn list --max 2"); !strings.Contains(out, "there are more") {
		t.Errorf("a part is listed as\n%s", out)
	}
	var shown txnShown
	a.json(&shown, "txn show id-two")
	if shown.ID != "id-two" || shown.Message.Body != "body of two" || shown.Message.Properties[mq.PropRealTopic] != "T" {
		t.Errorf("shown is %+v", shown)
	}
	a.json(&shown, fmt.Sprintf("txn show --offset %d --broker %s", list0(a, "U").Offset, list0(a, "U").Broker))
	if shown.ID != other {
		t.Errorf("shown is %+v", shown)
	}

	a.run(exitRefused, "txn resolve id-one --as commit") // nobody can be asked
	if out := a.run(0, "txn resolve id-one --as commit --dry-run"); !strings.Contains(out, "commit transaction id-one of group P to topic T, open") {
		t.Errorf("would be done:\n%s", out)
	}
	var report changeReport
	a.json(&report, "txn resolve id-one --as commit --yes")
	if len(report.Steps) != 1 || !report.Steps[0].Done || report.Steps[0].Result != "transaction id-one is committed" {
		t.Errorf("done is %+v", report)
	}
	a.run(exitNotFound, "txn resolve id-one --as rollback --yes")
	a.run(0, "txn resolve id-two --as resume")
	a.run(0, "txn resolve --all --topic T --as rollback --yes")
	a.json(&list, "txn list")
	if len(list) != 1 || list[0].ID != other {
		t.Errorf("left are %+v", list)
	}
	a.run(exitNotFound, "txn show id-nowhere")
	a.run(exitNotFound, "txn resolve --all --topic T --as rollback --yes")
	for _, line := range []string{
		"txn show", "txn show id-two --offset 1", "txn show --offset 1", "txn resolve id-two", "txn resolve id-two --as nothing", "txn resolve id-two --all --as commit", "txn list --resolved", "txn list --max 0",
	} {
		a.run(2, line)
	}
	if out := a.run(0, "message list T"); !strings.Contains(out, "id-one") && !strings.Contains(out, "one") {
		t.Errorf("the topic holds\n%s", out)
	}
}

func list0(a adminOn, topic string) brokerTransaction {
	a.Helper()
	var list []brokerTransaction
	a.json(&list, "txn list --topic "+topic)
	if len(list) == 0 {
		a.Fatal("nothing is listed")
	}
	return list[0]
}
