package main

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// garbler is a server that answers every request with the same body.
func garbler(t *testing.T, body string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go garble(c, body)
		}
	}()
	return ln.Addr().String()
}

func garble(c net.Conn, body string) {
	defer c.Close()
	for {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		n := int(frame[2])<<8 | int(frame[3])
		frame = append(frame, make([]byte, n)...)
		var cmd remoting.Command
		if _, err := io.ReadFull(c, frame[4:]); err != nil || remoting.Decode(frame, &cmd) != nil {
			return
		}
		resp := remoting.NewResponse(&cmd, 0, "")
		resp.Body = []byte(body)
		if _, err := c.Write(remoting.AppendCommand(nil, resp)); err != nil {
			return
		}
	}
}

// What a broken broker or something else behind the address says is told, whatever it
// is; nothing panics.
func TestAdminIsToldGarbage(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", "garbage\x00{", "null", "[]", "{}", "5", strings.Repeat("[", 5000),
		`{"topicConfigTable":{"x":null},"subscriptionGroupTable":{"g":null},"table":{"a":null},"offsetTable":null,"connectionSet":[null],"transactions":[null],
		  "brokerAddrTable":{"b":null},"clusterAddrTable":null,"brokerDatas":[null],"queueDatas":[null],"topicList":[null]}`,
	} {
		addr := garbler(t, body)
		for _, args := range [][]string{
			{"topic", "list"}, {"topic", "show", "x"}, {"group", "list"}, {"group", "show", "g"}, {"group", "members", "g"}, {"delay"}, {"delay", "list"}, {"txn", "list"},
			{"broker", "status"}, {"broker", "stats"}, {"broker", "producers"}, {"dlq", "list"}, {"cluster"}, {"export", "-"}, {"message", "find", "--topic", "x", "k"},
		} {
			out, code := command(t, append([]string{"admin", "-n", addr, "-b", addr, "--timeout", "2s"}, args...)...)
			if strings.HasPrefix(body, "{\"topic") && code == 0 && (args[0] == "topic" || args[0] == "group") && args[1] == "list" {
				t.Errorf("%v is content with a table of nothing: %s", args, out)
			}
		}
	}
}
