package nameapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

// change asks for settings, as mqadmin updateNamesrvConfig does.
func change(t *testing.T, c *client.Conn, text string) (protocol.Code, string) {
	t.Helper()
	cmd := remoting.NewRequest(int32(protocol.UpdateNamesrvConfig))
	cmd.Body = []byte(text)
	resp, err := c.Call(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Code(resp.Code), resp.Remark
}

func TestSettingsThatChange(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	cfg := DefaultConfig()
	cfg.Properties = map[string]string{"listenPort": "9876"}
	told := func(t *testing.T, c *client.Conn) string {
		t.Helper()
		return "\n" + string(call(t, c, protocol.GetNamesrvConfig, nil, nil).Body)
	}
	synctest.Test(t, func(t *testing.T) {
		h := start(t, fs, cfg)
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		if code, remark := change(t, c, "# said by hand\nenableTopicList = FALSE\nwaitSecondsForService=7\nlistenPort=9876\nscanNotActiveBrokerInterval=1000"); code != 0 {
			t.Fatalf("%d %s", code, remark)
		}
		for _, want := range []string{"\nenableTopicList=false\n", "\nwaitSecondsForService=7\n", "\nscanNotActiveBrokerInterval=1000\n"} {
			if got := told(t, c); !strings.Contains(got, want) {
				t.Errorf("%q is missing in %s", want, got)
			}
		}
		for _, code := range []protocol.Code{protocol.GetTopicsByCluster, protocol.GetSystemTopicListFromNS, protocol.GetUnitTopicList} {
			resp := call(t, c, code, &protocol.ClusterHeader{Cluster: "C"}, nil)
			if resp.Code != int32(protocol.SystemError) || !strings.Contains(resp.Remark, "disable") {
				t.Errorf("%s: %d %s", protocol.RequestName(code), resp.Code, resp.Remark)
			}
		}
		if resp := call(t, c, protocol.GetAllTopicListFromNameServer, nil, nil); resp.Code != 0 {
			t.Errorf("that list was not switched off: %d %s", resp.Code, resp.Remark)
		}
		for _, x := range []struct {
			text, says string
			code       protocol.Code
		}{
			{"enableTopicList=true\nenableAllTopicList=perhaps", `enableAllTopicList: "perhaps" is neither true nor false`, protocol.InvalidParameter},
			{"enableTopicList=true\nwaitSecondsForService=-1", "from 0 to 86400", protocol.InvalidParameter},
			{"enableTopicList=true\nlistenPort=9877", "edit the configuration and restart", protocol.RequestCodeNotSupported},
			{"enableTopicList=true\ndeleteTopicWithBrokerRegistration=false", "registered last", protocol.RequestCodeNotSupported},
			{"enableTopicList=true\nnonsense=1", `no setting "nonsense"`, protocol.InvalidParameter},
			{"enableTopicList=true\nkvConfigPath=/tmp/x", "Can not update config in black list.", protocol.NoPermission},
			{"", "names no setting", protocol.InvalidParameter},
			{"enableTopicList=\\u12", "no properties text", protocol.InvalidParameter},
		} {
			if code, remark := change(t, c, x.text); code != x.code || !strings.Contains(remark, x.says) {
				t.Errorf("%q: %d %s", x.text, code, remark)
			}
			if got := told(t, c); !strings.Contains(got, "\nenableTopicList=false\n") {
				t.Errorf("%q changed something: %s", x.text, got)
			}
		}
	})
	// They outlive the name server, a power loss too, and go before its configuration.
	synctest.Test(t, func(t *testing.T) {
		h := start(t, fs.Crash(), cfg)
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		if got := told(t, c); !strings.Contains(got, "\nenableTopicList=false\n") || !strings.Contains(got, "\nwaitSecondsForService=7\n") {
			t.Errorf("after a restart: %s", got)
		}
		if code, remark := change(t, c, "enableTopicList=true"); code != 0 {
			t.Errorf("%d %s", code, remark)
		}
		if _, kept := h.api.changed["enableTopicList"]; kept || len(h.api.changed) != 2 {
			t.Errorf("kept is what differs from the configuration: %v", h.api.changed)
		}
	})
}

// Until a change is on disk it is not in force.
func TestChangedSettingsAreDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for cut := int64(1); ; cut++ {
			fs := memfs.New(uint64(cut))
			h := start(t, fs, DefaultConfig())
			c := h.dial()
			fs.StopAfter(cut)
			want, tried := "45", "45" // what was answered with yes last, what was asked for last
			for _, tried = range []string{"1", "2"} {
				if code, _ := change(t, c, "waitSecondsForService="+tried); code != 0 {
					break
				}
				want = tried
			}
			if got := h.api.properties()["waitSecondsForService"]; got != want {
				t.Errorf("cut %d: %s is in force, want %s", cut, got, want)
			}
			stopped := fs.Stopped()
			c.Close()
			<-c.Done()
			h.stop()
			api, err := Open(fs.Crash(), dir, DefaultConfig())
			if err != nil {
				t.Fatalf("cut %d: %v", cut, err)
			}
			if now := api.properties()["waitSecondsForService"]; now != want && now != tried {
				t.Fatalf("cut %d: %s after the power loss, want %s", cut, now, want)
			}
			if !stopped {
				return
			}
		}
	})
}

func TestWaitingIsSwitchedOffAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), DefaultConfig())
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		if code, _ := routeOf(t, c, "t"); code != protocol.SystemError {
			t.Errorf("at the start: %d", code)
		}
		change(t, c, "needWaitForService=false")
		if code, remark := routeOf(t, c, "t"); code != protocol.TopicNotExist || remark != "No topic route info in name server for the topic: t" {
			t.Errorf("not waiting: %d %s", code, remark)
		}
	})
}

// What is asked of routes with queue mappings, zones, order and acting masters.
func TestWhatRoutesCarry(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Settings.ActingMaster, cfg.Settings.OrderMessages = true, true
	synctest.Test(t, func(t *testing.T) {
		h := start(t, memfs.New(1), cfg)
		defer h.stop()
		c := h.dial()
		defer func() { c.Close(); <-c.Done() }()
		acting := true
		for id := range int64(2) {
			head, body := registration("a", fmt.Sprintf("1.1.1.1:%d", id), 1, "t")
			head.BrokerID, head.ActingMaster = id, &acting
			body.Table.MappingInfo = map[string]json.RawMessage{"t": json.RawMessage(`{"bname":"a","currIdMap":{"0":0},"epoch":7,"topic":"t","totalQueues":1}`)}
			cmd := remoting.NewRequest(int32(protocol.RegisterBroker), append(protocol.EncodeFields(head), remoting.Field{Key: "__ZONE_NAME", Value: "east"})...)
			cmd.Body = []byte(strings.Replace(string(protocol.EncodeBody(&protocol.RegisterBrokerBody{Table: body.Table})), `"currIdMap":{"0":0}`, `"currIdMap":{0:0}`, 1))
			if resp, err := c.Call(t.Context(), cmd); err != nil || resp.Code != 0 {
				t.Fatalf("%v %v", resp, err)
			}
		}
		call(t, c, protocol.PutKVConfig, &protocol.KVHeader{Namespace: "ORDER_TOPIC_CONFIG", Key: "t", Value: "a:4"}, nil)
		route := func(fields ...remoting.Field) string {
			cmd := remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), append([]remoting.Field{{Key: "topic", Value: "t"}}, fields...)...)
			resp, err := c.Call(t.Context(), cmd)
			if err != nil {
				t.Fatal(err)
			}
			return string(resp.Body)
		}
		want := `{"brokerDatas":[{"brokerAddrs":{"0":"1.1.1.1:0","1":"1.1.1.1:1"},"brokerName":"a","cluster":"C","enableActingMaster":true,"zoneName":"east"}],` +
			`"filterServerTable":{},"orderTopicConf":"a:4","queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}],` +
			`"topicQueueMappingByBroker":{"a":{"bname":"a","currIdMap":{"0":0},"epoch":7,"topic":"t","totalQueues":1}}}`
		if got := route(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if got := route(remoting.Field{Key: "__ZONE_MODE", Value: "true"}, remoting.Field{Key: "__ZONE_NAME", Value: "WEST"}); !strings.Contains(got, `"brokerDatas":[]`) {
			t.Errorf("of another zone: %s", got)
		}
		call(t, c, protocol.UnregisterBroker, &protocol.UnregisterBrokerHeader{BrokerName: "a", BrokerAddr: "1.1.1.1:0", Cluster: "C"}, nil)
		if got := route(); !strings.Contains(got, `{"0":"1.1.1.1:1"}`) || !strings.Contains(got, `"perm":4`) {
			t.Errorf("of an acting master: %s", got)
		}
		change(t, c, "supportActingMaster=false\norderMessageEnable=false")
		if got := route(); !strings.Contains(got, `{"1":"1.1.1.1:1"}`) || strings.Contains(got, "orderTopicConf") {
			t.Errorf("switched off: %s", got)
		}
	})
}

// Members of a group are told that the lowest id changed.
func TestNoticeOfTheLowestID(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.Settings.NotifyMinID = true
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 8)
		members := newWire()
		srv, err := server.New(server.DefaultConfig(), server.Table{int32(protocol.NotifyMinBrokerIDChange): {
			Name: "notice", Class: server.NewInline("notice", nil),
			Handle: func(_ context.Context, _ *server.Conn, req *remoting.Command) *remoting.Command {
				text := ""
				for _, f := range req.Clone().Fields {
					text += f.Key + "=" + f.Value + " "
				}
				heard <- text
				return remoting.NewResponse(req, 0, "")
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ctx, members) }()
		cfg.Client.Dial = members.dial
		h := start(t, memfs.New(1), cfg)
		c := h.dial()
		for _, id := range []int64{1, 0} {
			head, body := registration("a", fmt.Sprintf("1.1.1.1:%d", id), 1, "t")
			head.BrokerID, head.HAServerAddr = id, fmt.Sprintf("1.1.1.1:%d0", id)
			if resp := call(t, c, protocol.RegisterBroker, head, body); resp.Code != 0 {
				t.Fatalf("%d %s", resp.Code, resp.Remark)
			}
		}
		if got := <-heard; got != "minBrokerId=0 brokerName=a minBrokerAddr=1.1.1.1:0 haBrokerAddr=1.1.1.1:00 " {
			t.Errorf("the master came: %s", got)
		}
		call(t, c, protocol.UnregisterBroker, &protocol.UnregisterBrokerHeader{BrokerName: "a", BrokerAddr: "1.1.1.1:0", Cluster: "C"}, nil)
		if got := <-heard; got != "minBrokerId=1 brokerName=a minBrokerAddr=1.1.1.1:1 offlineBrokerAddr=1.1.1.1:0 " {
			t.Errorf("the master left: %s", got)
		}
		c.Close()
		<-c.Done()
		h.stop()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(heard) != 0 {
			t.Errorf("and %s", <-heard)
		}
	})
}

// Whatever the text: it changes all that it names, or nothing.
func FuzzUpdateConfig(f *testing.F) {
	for _, text := range []string{"enableTopicList=false", "a", "=", "enableTopicList : ${enableTopicList}\n", "waitSecondsForService=7\\\n8", "scanNotActiveBrokerInterval=\\u0031", "# x\n! y"} {
		f.Add([]byte(text))
	}
	api, err := Open(memfs.New(1), dir, DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := fmt.Sprint(api.properties())
		req := remoting.NewRequest(int32(protocol.UpdateNamesrvConfig))
		req.Body = text
		_, err := api.updateConfig(nil, req)
		if after := fmt.Sprint(api.properties()); err != nil && after != before {
			t.Errorf("refused with %v, and changed from %s to %s", err, before, after)
		}
		if err := api.settings().Validate(); err != nil {
			t.Errorf("taken, and wrong: %v", err)
		}
	})
}
