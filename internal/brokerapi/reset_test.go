package brokerapi

import (
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// as sends a heartbeat of another language and version than do does.
func (p *peer) as(lang remoting.Language, version int32, beat []byte) {
	p.t.Helper()
	if resp := p.ask(&remoting.Command{Code: int32(protocol.HeartBeat), Language: lang, Version: version, Body: beat}); resp.Code != 0 {
		p.t.Fatalf("heartbeat: %d %s", resp.Code, resp.Remark)
	}
}

// toldReset is the next 220 that a client hears.
func (p *peer) toldReset() *remoting.Command {
	p.t.Helper()
	for {
		select {
		case c := <-p.asked:
			if protocol.Code(c.Code) == protocol.ResetConsumerClientOffset {
				return c
			}
		default:
			return nil
		}
	}
}

// Clients that would lose time by a jump are told of a reset: Java before 5.1 and
// Go with object keys, C++ with a list. Those that are newer jump, those that
// are older than 220 do, too.
func TestResetIsPushedToOldClients(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	admin := b.connect()
	for range 3 {
		admin.sendOK("T", "x", "")
	}
	const keyed = `{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:1}}`
	const list = `{"offsetTable":[{"brokerName":"broker-a","offset":1,"queueId":0,"topic":"T"}]}`
	clients := []struct {
		name    string
		lang    remoting.Language
		version int32
		want    string // nothing: not told
	}{
		{"java4", remoting.Java, 409, keyed},
		{"go2", remoting.Go, 317, keyed},
		{"cpp", remoting.CPP, 293, list},
		{"java5", remoting.Java, 513, ""},
		{"stone", remoting.Java, 20, ""},
	}
	peers := map[string]*peer{}
	for _, c := range clients {
		peers[c.name] = b.connect()
		peers[c.name].as(c.lang, c.version, heartbeat(c.name, "g", "T"))
	}
	reset := &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: 7, QueueID: new(int32(0)), Offset: new(int64(1)), Force: new(true)}
	admin.ok(protocol.InvokeBrokerToResetOffset, reset, nil)
	for _, c := range clients {
		p := peers[c.name]
		p.ok(protocol.GetMaxOffset, &protocol.QueueHeader{Topic: "T"}, nil) // what was sent before is read
		told := p.toldReset()
		if c.want == "" {
			if told != nil {
				t.Errorf("%s is told %+v", c.name, told)
			}
			continue
		}
		if told == nil {
			t.Errorf("%s is not told", c.name)
			continue
		}
		h := fields[protocol.ResetOffsetHeader](t, told)
		if string(told.Body) != c.want || h.Topic != "T" || h.Group != "g" || h.Timestamp != 7 || told.Flag&remoting.FlagOneway == 0 {
			t.Errorf("%s is told %+v %s", c.name, h, told.Body)
		}
	}

	// Who was told is not led astray by its old pulls, the new one takes the reset.
	old := peers["java4"]
	if resp := old.pull(pullOf("g", "T", 3)); resp.Code != int32(protocol.PullNotFound) {
		t.Errorf("an old pull of who was told: %d %q", resp.Code, resp.Remark)
	}
	if resp := old.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 3}, nil); !strings.Contains(resp.Remark, "not taken") {
		t.Errorf("an old commit of who was told: %q", resp.Remark)
	}
	if resp := old.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil); resp.Remark != "" {
		t.Errorf("the commit of the new place: %q", resp.Remark)
	}
	if resp := old.pull(pullOf("g", "T", 1)); resp.Code != 0 {
		t.Errorf("the pull from the new place: %d %q", resp.Code, resp.Remark)
	}
	if off, waits := b.parts.Offsets.WaitingReset("g", "T", 0); waits {
		t.Errorf("the reset to %d still waits", off)
	}
	// Another one jumps as ever.
	admin.ok(protocol.InvokeBrokerToResetOffset, reset, nil)
	if resp := peers["java5"].pull(pullOf("g", "T", 3)); resp.Code != int32(protocol.PullOffsetMoved) {
		t.Errorf("a new client: %d %q", resp.Code, resp.Remark)
	}
}

// In a group that broadcasts each client has its own progress: all are told, and
// nothing is left for one of them to take.
func TestResetOfABroadcastingGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	admin := b.connect()
	admin.sendOK("T", "x", "")
	beat := strings.ReplaceAll(string(heartbeat("c@1", "g", "T")), "CLUSTERING", "BROADCASTING")
	one, two := b.connect(), b.connect()
	one.as(remoting.Java, 513, []byte(beat))
	two.as(remoting.Java, 409, []byte(strings.ReplaceAll(beat, "c@1", "c@2")))
	resp := admin.ok(protocol.InvokeBrokerToResetOffset, &protocol.ResetOffsetHeader{Topic: "T", Group: "g", Timestamp: 0}, nil)
	if resp.Remark != "" || len(body[protocol.ResetOffsetBody](t, resp).Offsets) != 4 {
		t.Errorf("answered %q %s", resp.Remark, resp.Body)
	}
	for name, p := range map[string]*peer{"c@1": one, "c@2": two} {
		p.ok(protocol.GetMaxOffset, &protocol.QueueHeader{Topic: "T"}, nil)
		if p.toldReset() == nil {
			t.Errorf("%s is not told", name)
		}
	}
	if _, waits := b.parts.Offsets.WaitingReset("g", "T", 0); waits {
		t.Error("a reset waits for one of many")
	}
}

// Where resets lead at the edges, and what cannot be.
func TestResetTargets(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	p := b.connect()
	for range 5 {
		p.sendOK("T", "x", "")
	}
	p.ok(protocol.HeartBeat, nil, heartbeat("c@1", "g", "T"))
	key := protocol.MessageQueue{BrokerName: "broker-a", Topic: "T"}
	for _, c := range []struct {
		name string
		from mq.QueueOffset // committed before
		h    protocol.ResetOffsetHeader
		want mq.QueueOffset
	}{
		{"to the end", 1, protocol.ResetOffsetHeader{Timestamp: -1}, 5},
		{"before the beginning of time", 1, protocol.ResetOffsetHeader{Timestamp: -2}, 5},
		{"to the beginning", 1, protocol.ResetOffsetHeader{Timestamp: 0}, 0},
		{"to the future", 1, protocol.ResetOffsetHeader{Timestamp: 1 << 50}, 5},
		{"on, without force", 1, protocol.ResetOffsetHeader{Timestamp: -1, Force: new(false)}, 1},
		{"back, without force", 3, protocol.ResetOffsetHeader{Timestamp: 0, Force: new(false)}, 0},
		{"to an offset", 3, protocol.ResetOffsetHeader{QueueID: new(int32(0)), Offset: new(int64(2))}, 2},
		{"to the offset that comes next", 3, protocol.ResetOffsetHeader{QueueID: new(int32(0)), Offset: new(int64(5))}, 5},
		{"all queues named -1", 3, protocol.ResetOffsetHeader{QueueID: new(int32(-1)), Offset: new(int64(-1))}, 0},
	} {
		at, _ := b.parts.Offsets.Query("g", "T", 0)
		p.pull(pullOf("g", "T", at)) // takes what waits
		p.ok(protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: int64(c.from)}, nil)
		c.h.Topic, c.h.Group = "T", "g"
		got := body[protocol.ResetOffsetBody](t, p.ok(protocol.InvokeBrokerToResetOffset, &c.h, nil))
		if got.Offsets[key] != c.want {
			t.Errorf("%s: %v, want %d", c.name, got.Offsets, c.want)
		}
		off, _ := b.parts.Offsets.Query("g", "T", 0)
		if off != c.want {
			t.Errorf("%s: the register says %d, want %d", c.name, off, c.want)
		}
	}
	for _, c := range []struct {
		h    protocol.ResetOffsetHeader
		want string
	}{
		{protocol.ResetOffsetHeader{QueueID: new(int32(0)), Offset: new(int64(6))}, "offset 6 is not within queue 0 of topic T, which has 0 to 5"},
		{protocol.ResetOffsetHeader{QueueID: new(int32(4))}, "queue 4 of topic T does not exist, it has 4 to read"},
		{protocol.ResetOffsetHeader{QueueID: new(int32(-2))}, "queue -2 of topic T"},
		{protocol.ResetOffsetHeader{Offset: new(int64(1))}, "no queueId says which of the 4"},
	} {
		c.h.Topic, c.h.Group = "T", "g"
		if resp := p.do(protocol.InvokeBrokerToResetOffset, &c.h, nil); resp.Code == 0 || !strings.Contains(resp.Remark, c.want) {
			t.Errorf("%+v: %d %q, want it to say %q", c.h, resp.Code, resp.Remark, c.want)
		}
	}
}
