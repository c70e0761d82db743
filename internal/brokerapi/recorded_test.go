package brokerapi

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

var updateRecorded = flag.Bool("update", false, "rewrite the table of differences in docs/COMPATIBILITY.md")

// exchange is a request by hand and what a RocketMQ 5.5.0 broker answered.
type exchange struct {
	Case    string            `json:"case"`
	Request string            `json:"request"` // the frame in hex
	Code    int32             `json:"code"`
	Remark  string            `json:"remark"`
	Ext     map[string]string `json:"ext"`
}

// differs are the exchanges that we answer otherwise on purpose. The table of
// docs/COMPATIBILITY.md is made from them.
var differs = map[string]struct {
	code protocol.Code
	why  string
}{
	"create topic, no perm":                   {protocol.InvalidParameter, "a Java exception there; the missing field is named"},
	"send, topic without write permission":    {protocol.NoPermission, "a topic that must not be written is not written"},
	"send, wheel topic":                       {protocol.NoPermission, "what lies in that topic is trusted, so only the broker writes there"},
	"send, empty body":                        {protocol.MessageIllegal, "a Java exception there"},
	"send, missing mandatory field":           {protocol.InvalidParameter, "a Java exception there; the field is named"},
	"send, not a number":                      {protocol.InvalidParameter, "a Java exception there; field and value are named"},
	"send, DELAY=abc":                         {protocol.MessageIllegal, "a Java exception there"},
	"send, timer too far":                     {protocol.Success, "the limit is ten years, three days there (timerMaxDelaySec)"},
	"send, prepared sysFlag without TRAN_MSG": {protocol.MessageIllegal, "RocketMQ stores it where nobody ever sees it"},
	"batch with TRAN_MSG":                     {protocol.MessageIllegal, "a batch can't be transactional; RocketMQ stores it as if the property were not there"},
	"batch, broken body":                      {protocol.MessageIllegal, "a Java exception there"},
	"batch, empty body":                       {protocol.MessageIllegal, "a Java exception there"},
	"pull, bad SQL":                           {protocol.SubscriptionParseFailed, "a filter that cannot be read is not the same as none"},
	"update offset, unknown queue":            {protocol.InvalidParameter, "a queue that does not exist has no progress"},
	"query offset, none":                      {protocol.QueryNotFound, "a new group begins where it asked to; RocketMQ sends it to 0 while the queue's first message is in memory (`youngQueueBytes` brings that back)"},
	"offset, unknown topic":                   {protocol.TopicNotExist, "0 is an offset, not the lack of one"},
	"heartbeat, no body":                      {protocol.InvalidParameter, "a Java exception there"},
}

// follows are fields that differ because an exchange before did, or that say
// the same in another way.
var follows = map[string]string{
	"send, timed":                  "queueOffset",   // more timed messages came before there
	"batch without the batch flag": "queueOffset",   // the batch with TRAN_MSG is not there
	"send, transaction":            "queueOffset",   // that of the half topic, which was in use there
	"heartbeat, V2 fingerprint":    "IS_SUB_CHANGE", // the subscriptions came with it, they need not come again
	"heartbeat, V2 withoutSub":     "IS_SUB_CHANGE", // they are not known and have to come
}

// The recorded exchanges, in their order, against our broker: the same answers,
// field for field, but where differs says otherwise.
func TestRecordedExchanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	var p *peer // one for each case
	last := ""
	ours := map[int64]int64{} // log offsets: there, here
	used := map[string]bool{}
	for n, e := range readExchanges(t) {
		frame, err := hex.DecodeString(e.Request)
		if err != nil {
			t.Fatal(err)
		}
		var req remoting.Command
		if err := remoting.Decode(frame, &req); err != nil {
			t.Fatalf("%s: %v", e.Case, err)
		}
		translate(&req, ours)
		if e.Case != last || e.Case == "admin" {
			if last = e.Case; p != nil {
				p.nc.Close()
				eventually(t, "the connection is forgotten", func() bool { conns, _, _ := b.parts.Clients.Count(); return conns == 0 })
			}
			p = b.connect()
		}
		resp := p.ask(req.Clone())
		name := nameOf(&e, &req)
		want, deliberate := e.Code, false
		if d, ok := differs[name]; ok && int32(d.code) != e.Code {
			want, deliberate, used[name] = int32(d.code), true, true
		}
		if resp.Code != want {
			t.Errorf("%d %s: %s %v %s\n answered %d %q\n RocketMQ %d %q", n, name, protocol.RequestName(protocol.Code(req.Code)), req.Fields, req.Body, resp.Code, resp.Remark, e.Code, e.Remark)
			continue
		}
		if deliberate {
			continue
		}
		got := map[string]string{}
		for _, f := range resp.Fields {
			got[f.Key] = f.Value
		}
		if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(e.Ext)); !slices.Equal(g, w) {
			t.Errorf("%d %s: fields %v, RocketMQ has %v", n, name, g, w)
			continue
		}
		for key, value := range e.Ext {
			if stable[key] && got[key] != value && follows[name] != key {
				t.Errorf("%d %s: field %s is %q, RocketMQ has %q", n, name, key, got[key], value)
			}
		}
		learn(t, e.Ext["msgId"], got["msgId"], ours)
		if strings.HasPrefix(name, "pull") && e.Code != int32(protocol.TopicNotExist) && strings.ToUpper(e.Remark) == e.Remark && remark(resp.Remark) != remark(e.Remark) {
			t.Errorf("%d %s: remark %q, RocketMQ has %q", n, name, resp.Remark, e.Remark)
		}
	}
	for name := range differs {
		if !used[name] {
			t.Errorf("%q differs from nothing that was recorded", name)
		}
	}
}

// stable are the fields whose values depend on neither clock nor place.
var stable = map[string]bool{
	"queueId": true, "TRACE_ON": true, "MSG_REGION": true, "queueOffset": true, "nextBeginOffset": true, "minOffset": true,
	"suggestWhichBrokerId": true, "groupSysFlag": true, "topicSysFlag": true, "forbiddenType": true, "offset": true,
	"IS_SUPPORT_HEART_BEAT_V2": true, "IS_SUB_CHANGE": true,
}

// nameOf tells the many cases named "admin" apart.
func nameOf(e *exchange, req *remoting.Command) string {
	if e.Case != "admin" {
		return e.Case
	}
	name := fmt.Sprintf("admin %d", req.Code)
	for _, key := range []string{"group", "topic", "groupName", "consumerGroup"} {
		if v, _ := req.Get(key); strings.Contains(v, "nosuch") {
			return name + " of an unknown group"
		} else if strings.Contains(v, "unknown") {
			return name + " of an unknown topic"
		}
	}
	return name
}

// remark takes the two names for a queue without messages as one: RocketMQ makes
// a queue when somebody asks for it.
func remark(s string) string {
	return strings.Replace(s, "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE", 1)
}

// translate turns log offsets of that broker into ours.
func translate(req *remoting.Command, ours map[int64]int64) {
	if code := protocol.Code(req.Code); code != protocol.ViewMessageByID && code != protocol.ConsumerSendMsgBack {
		return
	}
	if v, ok := req.Get("offset"); ok {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			if here, ok := ours[n]; ok {
				req.Set("offset", strconv.FormatInt(here, 10))
			}
		}
	}
}

func learn(t *testing.T, theirs, here string, ours map[int64]int64) {
	if theirs == "" {
		return
	}
	a, b := strings.Split(theirs, ","), strings.Split(here, ",")
	if len(a) != len(b) {
		t.Errorf("message ids %s, RocketMQ has %s", here, theirs)
		return
	}
	for i := range a {
		_, x, err1 := mq.ParseMessageID(a[i])
		_, y, err2 := mq.ParseMessageID(b[i])
		if err1 != nil || err2 != nil {
			t.Errorf("message id %s: %v, %v", b[i], err1, err2)
		}
		ours[int64(x)] = int64(y)
	}
}

func readExchanges(t *testing.T) []exchange {
	t.Helper()
	f, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []exchange
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var e exchange
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// docs/COMPATIBILITY.md holds the differences as they are tested here.
func TestDifferencesAreWrittenDown(t *testing.T) {
	t.Parallel()
	const path = "../../docs/COMPATIBILITY.md"
	const begin, end = "<!-- answers: begin -->\n", "<!-- answers: end -->\n"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(doc), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table of answers between %q and %q", path, begin, end)
	}
	var b strings.Builder
	b.WriteString("| asked | RocketMQ 5.5.0 answers | Sundial answers | why |\n|---|---|---|---|\n")
	seen := map[string]bool{}
	for _, e := range readExchanges(t) {
		frame, err := hex.DecodeString(e.Request)
		if err != nil {
			t.Fatal(err)
		}
		var req remoting.Command
		if err := remoting.Decode(frame, &req); err != nil {
			t.Fatal(err)
		}
		name := nameOf(&e, &req)
		d, ok := differs[name]
		if key := name + fmt.Sprint(req.Code); ok && !seen[key] {
			seen[key] = true
			fmt.Fprintf(&b, "| %s (%d): %s | %d %s | %d %s | %s |\n", protocol.RequestName(protocol.Code(req.Code)), req.Code, name,
				e.Code, protocol.ResponseName(protocol.Code(e.Code)), d.code, protocol.ResponseName(d.code), d.why)
		}
	}
	want := head + begin + b.String() + end + tail
	if *updateRecorded {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(doc) != want {
		t.Errorf("docs/COMPATIBILITY.md does not say what is tested: go test ./internal/brokerapi -run Written -update")
	}
}
