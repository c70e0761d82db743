package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func ask(t *testing.T, n *Node, code protocol.Code, header any, body []byte) *remoting.Command {
	t.Helper()
	req := remoting.NewRequest(int32(code))
	if header != nil {
		req.Fields = protocol.EncodeFields(header)
	}
	req.Body = body
	resp := call(t, n.Addresses().Broker, req)
	if resp.Code != 0 {
		t.Fatalf("%s: %d %s", protocol.RequestName(code), resp.Code, resp.Remark)
	}
	return resp
}

func commit(t *testing.T, n *Node, off int64) {
	t.Helper()
	ask(t, n, protocol.UpdateAndCreateSubscriptionGroup, nil, []byte(`{"groupName":"g"}`))
	ask(t, n, protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T", CommitOffset: off}, nil)
}

func committed(t *testing.T, n *Node) int64 {
	t.Helper()
	resp := ask(t, n, protocol.QueryConsumerOffset, &protocol.QueryConsumerOffsetHeader{ConsumerGroup: "g", Topic: "T"}, nil)
	var h protocol.OffsetResponse
	if err := protocol.DecodeFields(resp.Fields, &h); err != nil {
		t.Fatal(err)
	}
	return h.Offset
}

// S01: a file of ours that a power cut left empty, cut off or full of zeros does
// not stop the start: the one before it counts, or the log, and it is said.
func TestS01DamagedFilesDoNotStopTheStart(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	run := func(disk *memfs.FS, log *slog.Logger, do func(n *Node)) {
		t.Helper()
		cfg := small("/data")
		cfg.FS, cfg.Log = disk, log
		n, err := Start(t.Context(), cfg)
		if err != nil {
			t.Errorf("start: %v", err)
			return
		}
		do(n)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range int64(3) { // so that there are generations
		run(disk, nil, func(n *Node) {
			send(t, n, "m")
			commit(t, n, i+1)
			ask(t, n, protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{Topic: fmt.Sprint("Other", i), ReadQueues: 1, WriteQueues: 1, Perm: 6}, nil)
			ask(t, n, protocol.UpdateAndCreateSubscriptionGroup, nil, fmt.Appendf(nil, `{"groupName":"other%d"}`, i))
		})
	}
	var files []string
	for _, dir := range []string{"/data/config", "/data/sundial", "/data"} {
		entries, err := disk.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := filepath.Join(dir, e.Name()); !e.IsDir() && !strings.HasSuffix(name, ".bak") && e.Name() != "lock" {
				files = append(files, name)
			}
		}
	}
	for _, want := range []string{"/data/config/topics.json", "/data/config/consumerOffset.json", "/data/config/subscriptionGroup.json", "/data/sundial/state", "/data/checkpoint"} {
		if !slices.Contains(files, want) {
			t.Errorf("%s is not there; there are %s", want, files)
		}
	}
	for _, file := range files {
		for name, damage := range map[string]func(b []byte) []byte{
			"empty":   func([]byte) []byte { return nil },
			"cut off": func(b []byte) []byte { return b[:len(b)/2] },
			"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		} {
			after := disk.KillClone()
			b, err := after.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 0 {
				continue
			}
			f, err := after.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(damage(bytes.Clone(b)), 0); err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
			var log bytes.Buffer
			run(after, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), func(n *Node) {
				if got := len(received(t, n)); got != 3 {
					t.Errorf("%s, %s: %d messages", file, name, got)
				}
				// The one before may be a generation back.
				if off := committed(t, n); off < 2 || off > 3 {
					t.Errorf("%s, %s: the group is at %d", file, name, off)
				}
				send(t, n, "goes on")
			})
			if strings.HasSuffix(file, ".json") && !strings.Contains(log.String(), filepath.Base(file)) {
				t.Errorf("%s, %s: nothing is said of it: %s", file, name, log.String())
			}
			if t.Failed() {
				return
			}
		}
	}
}

// C02: whenever a consumer asks around a restart where it was, it is told what it
// committed, or nothing at all: never the beginning.
func TestC02TheCommittedPlaceIsToldAfterARestart(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	for i := range int64(5) {
		cfg := small("/data")
		cfg.FS = disk
		n := start(t, cfg)
		if i > 0 {
			if off := committed(t, n); off != i {
				t.Errorf("restart %d: told %d", i, off)
			}
		}
		send(t, n, "m")
		commit(t, n, i+1)
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// N10: the id of a message holds the address the broker had then; under another
// address the message is found all the same, by its place and by its key.
func TestN10IDsOfAFormerAddressAreFound(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	var at int64
	for i, ip := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::3"} {
		cfg := small("/data")
		cfg.FS, cfg.Bind, cfg.Broker.Advertise = disk, "127.0.0.1", ip
		cfg.Roles = Broker
		n := start(t, cfg)
		look := func(code protocol.Code, header any) *remoting.Command {
			t.Helper()
			req := remoting.NewRequest(int32(code), protocol.EncodeFields(header)...)
			resp := call(t, n.Addresses().Listen, req)
			if resp.Code != 0 {
				t.Fatalf("%s under %s: %d %s", protocol.RequestName(code), ip, resp.Code, resp.Remark)
			}
			return resp
		}
		if i == 0 {
			h := protocol.SendHeader{ProducerGroup: "p", Topic: "T", DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 1, Properties: "UNIQ_KEY\x01U\x02"}
			req := remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...)
			req.Body = []byte("old")
			resp := call(t, n.Addresses().Listen, req)
			var sent protocol.SendResponse
			if err := protocol.DecodeSendResponse(resp, &sent); err != nil || resp.Code != 0 {
				t.Fatal(resp, err)
			}
			host, off, err := mq.ParseMessageID(sent.MsgID)
			if err != nil || host.Addr().String() != ip {
				t.Fatalf("id %s: %v %v", sent.MsgID, host, err)
			}
			at = int64(off)
		}
		byID := look(protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: at, Topic: "T"})
		byKey := look(protocol.QueryMessage, &protocol.QueryMessageHeader{Topic: "T", Key: "U", Max: 1, End: 1 << 60, Unique: true})
		if !bytes.Contains(byID.Body, []byte("old")) || !bytes.Equal(byID.Body, byKey.Body) {
			t.Errorf("under %s: by id %q, by key %q", ip, byID.Body, byKey.Body)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// N11: a node that is bound to an IPv6 address is found, sent to and read from.
func TestN11NodeOnIPv6(t *testing.T) {
	t.Parallel()
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	probe.Close()
	disk := memfs.New(1)
	for i := range 2 {
		cfg := small("/data")
		cfg.FS, cfg.Bind = disk, "::1"
		n := start(t, cfg)
		send(t, n, "over six")
		if got := received(t, n); len(got) != i+1 {
			t.Errorf("received %q", got)
		}
		resp := call(t, n.Addresses().NameServer, remoting.NewRequest(int32(protocol.GetRouteInfoByTopic), protocol.EncodeFields(&protocol.TopicHeader{Topic: "T"})...))
		if want := `"[::1]:`; resp.Code != 0 || !strings.Contains(string(resp.Body), want) {
			t.Errorf("route: %d %s %s; want an address %s", resp.Code, resp.Remark, resp.Body, want)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
