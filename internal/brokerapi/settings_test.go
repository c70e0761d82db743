package brokerapi

import (
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// Settings that can change while the broker runs do so with the answer and stay
// so; of a body that asks for anything else nothing is done.
func TestSettingsChangeWhileRunning(t *testing.T) {
	t.Parallel()
	properties := [][2]string{
		{"autoCreateSubscriptionGroup", "true"}, {"autoCreateTopicEnable", "true"}, {"brokerPermission", "6"}, {"deleteWhen", "04"},
		{"diskMaxUsedSpaceRatio", "75"}, {"fileReservedTime", "72"}, {"listenPort", "10911"},
	}
	b := newBench(t, options{api: func(c *Config) { c.Properties = properties }})
	p := b.connect()
	var perm mq.Perm
	b.api.p.SetPerm = func(p mq.Perm) { perm = p }
	shown := func(key string) string {
		t.Helper()
		for line := range strings.Lines(string(p.ok(protocol.GetBrokerConfig, nil, nil).Body)) {
			if k, v, _ := strings.Cut(strings.TrimSpace(line), "="); k == key {
				return v
			}
		}
		return ""
	}
	change := func(body string) (protocol.Code, string) {
		t.Helper()
		resp := p.do(protocol.UpdateBrokerConfig, nil, []byte(body))
		return protocol.Code(resp.Code), resp.Remark
	}

	for _, c := range []struct {
		body string
		code protocol.Code
		says string
	}{
		{"", protocol.InvalidParameter, "names no setting"},
		{"fileReservedTime=abc\n", protocol.InvalidParameter, "fileReservedTime: \"abc\" is no whole number from 1 to"},
		{"fileReservedTime=0\n", protocol.InvalidParameter, "fileReservedTime"},
		{"brokerPermission=9\n", protocol.InvalidParameter, "brokerPermission"},
		{"brokerPermission=3\n", protocol.InvalidParameter, "brokerPermission"},
		{"deleteWhen=04;24\n", protocol.InvalidParameter, "deleteWhen"},
		{"diskMaxUsedSpaceRatio=99\n", protocol.InvalidParameter, "diskMaxUsedSpaceRatio"},
		{"autoCreateTopicEnable=maybe\n", protocol.InvalidParameter, "neither true nor false"},
		{"listenPort=1234\n", protocol.RequestCodeNotSupported, "listenPort needs a restart"},
		{"noSuchKey=1\n", protocol.InvalidParameter, "there is no setting \"noSuchKey\""},
		{"brokerConfigPath=/tmp/x\n", protocol.NoPermission, "Can not update config in black list."},
		{"fileReservedTime=5\nlistenPort=1234\n", protocol.RequestCodeNotSupported, "nothing was changed"},
		{"fileReservedTime=5\nbrokerPermission=x\n", protocol.InvalidParameter, "nothing was changed"},
	} {
		if code, remark := change(c.body); code != c.code || !strings.Contains(remark, c.says) {
			t.Errorf("%q: %d %q, want %d and %q", c.body, code, remark, c.code, c.says)
		}
		if got := shown("fileReservedTime"); got != "72" {
			t.Fatalf("%q changed something: files are kept %s hours", c.body, got)
		}
	}
	if code, remark := change("fileReservedTime= 48 \ndeleteWhen=03;15\ndiskMaxUsedSpaceRatio=80\nlistenPort=10911\n"); code != 0 {
		t.Fatalf("a good body: %d %q", code, remark)
	}
	if shown("fileReservedTime") != "48" || shown("deleteWhen") != "03;15" || shown("diskMaxUsedSpaceRatio") != "80" || shown("listenPort") != "10911" {
		t.Errorf("shown %s, %s, %s", shown("fileReservedTime"), shown("deleteWhen"), shown("diskMaxUsedSpaceRatio"))
	}
	if b.api.live.now.Reserved != 48*time.Hour {
		t.Errorf("in force: %+v", b.api.live.now)
	}

	// Read only, and back.
	p.sendOK("T", "x", "")
	before := b.parts.Topics.Version()
	if code, remark := change("brokerPermission=4\n"); code != 0 {
		t.Fatalf("read only: %d %q", code, remark)
	}
	if resp := p.ask(message("T", "y", "")); resp.Code != int32(protocol.NoPermission) || !strings.Contains(resp.Remark, "brokerPermission is 4") {
		t.Errorf("a send to a broker that does not take messages: %d %q", resp.Code, resp.Remark)
	}
	if resp := p.pull(pullOf("g", "T", 0)); resp.Code != 0 {
		t.Errorf("a pull of a broker that gives messages: %d %q", resp.Code, resp.Remark)
	}
	if perm != mq.PermRead || b.parts.Topics.Version() == before {
		t.Errorf("name servers hear of permission %d, the version stepped: %v", perm, b.parts.Topics.Version() != before)
	}
	if code, _ := change("brokerPermission=6\n"); code != 0 {
		t.Error("read and write again")
	}
	p.sendOK("T", "y", "")

	// Topics and groups by themselves, off and on (RocketMQ's need a restart to be on
	// again).
	for _, on := range []bool{false, true} {
		want := map[bool]string{false: "false", true: "true"}[on]
		if code, remark := change("autoCreateTopicEnable=" + want + "\nautoCreateSubscriptionGroup=" + want + "\n"); code != 0 {
			t.Fatalf("%s: %d %q", want, code, remark)
		}
		resp := p.ask(message("New", "x", ""))
		_, err := b.parts.Groups.Ensure("new")
		if made := resp.Code == 0; made != on || (err == nil) != on || (b.parts.Topics.Get(mq.TopicAutoCreate) != nil) != on {
			t.Errorf("topics come by themselves %v: a send says %d %q, a new group %v", on, resp.Code, resp.Remark, err)
		}
	}

	// What was changed stays through a restart and can be seen; what is as configured
	// is forgotten.
	parts := b.api.p
	parts.Metrics = nil // those of the first life are registered
	again, err := New(b.api.cfg, parts)
	if err != nil {
		t.Fatal(err)
	}
	if got := *again.live.now; got.Reserved != 48*time.Hour || got.MaxUsed != 80 || got.Perm != 6 || !got.AutoTopics {
		t.Errorf("after a restart: %+v", got)
	}
	if n := len(again.live.changed); n != 3 {
		t.Errorf("%d settings are kept: %v", n, again.live.changed)
	}
}
