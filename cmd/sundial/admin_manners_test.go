package main

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func TestExitCodesSayHowItEnded(t *testing.T) {
	t.Parallel()
	gone := &unreachableError{errors.New("nobody answers")}
	no := protocol.ErrorOf(protocol.NoPermission, "no")
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errors.New("broken"), 1},
		{&usageError{errors.New("what?")}, 2},
		{notFound("nothing"), exitNotFound},
		{fmt.Errorf("ask: %w", protocol.ErrorOf(protocol.TopicNotExist, "")), exitNotFound},
		{fmt.Errorf("ask: %w", no), exitRefused},
		{refused("no"), exitRefused},
		{gone, exitUnreachable},
		{errors.Join(no, gone), exitUnreachable},
		{&partialError{1, 2, gone}, exitPartial},
		{exitCode(7), 7},
	} {
		if got := codeOf(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
	}
	all := []member{{Name: "a"}, {Name: "b"}}
	if err := each(all, func(m member) error {
		if m.Name == "b" {
			return gone
		}
		return nil
	}); codeOf(err) != exitPartial || !strings.Contains(err.Error(), "1 of 2") {
		t.Errorf("one of two: %v", err)
	}
	if err := each(all, func(member) error { return gone }); codeOf(err) != exitUnreachable {
		t.Errorf("none of two: %v", err)
	}
}

// What destroys is asked about: yes does it, anything else does not.
func TestDestroyingAsksFirst(t *testing.T) {
	t.Parallel()
	a, _ := dlqBroker(t)
	a.run(0, "topic create T")
	answer := func(text string) (string, int) {
		root := rootCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetIn(strings.NewReader(text))
		root.SetArgs([]string{"admin", "-n", a.at.NameServer.String(), "topic", "delete", "T"})
		return "", codeOf(root.ExecuteContext(t.Context()))
	}
	for _, no := range []string{"", "\n", "n\n", "no\n", "yesterday\n"} {
		if _, code := answer(no); code != exitRefused {
			t.Errorf("answered %q: exit code %d", no, code)
		}
	}
	a.run(0, "topic show T")
	if _, code := answer("Yes\n"); code != 0 {
		t.Errorf("answered yes: exit code %d", code)
	}
	a.run(exitNotFound, "topic show T")
}

func TestNearestName(t *testing.T) {
	t.Parallel()
	names := []string{"Orders", "Payments", "%DLQ%g"}
	for said, want := range map[string]string{"Ordesr": "Orders", "orders": "Orders", "Payment": "Payments", "Invoices": "", "": ""} {
		if got := nearest(said, names); got != want {
			t.Errorf("nearest to %q is %q, want %q", said, got, want)
		}
	}
	a, _ := dlqBroker(t)
	a.run(0, "topic create Orders")
	if out := a.run(exitNotFound, "topic show Ordesr"); !strings.Contains(out, "did you mean Orders?") {
		t.Error(out)
	}
}

func TestTimesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]int64{
		"-15m": now.Add(-15 * time.Minute).UnixMilli(), "now": now.UnixMilli(), "1748779200000": 1748779200000,
		"2025-06-01T12:00:00Z": now.UnixMilli(), "2025-06-01T14:00:00.5+02:00": now.UnixMilli() + 500,
		"2025-06-01": time.Date(2025, 6, 1, 0, 0, 0, 0, time.Local).UnixMilli(),
	} {
		if got, err := parseTime("--since", said, now); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", said, got, err, want)
		}
	}
	for _, said := range []string{"", "15m", "yesterday", "2025-13-01", "12:00"} {
		if _, err := parseTime("--since", said, now); codeOf(err) != 2 || !strings.Contains(err.Error(), "--since") {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestBodiesOfEveryCompression(t *testing.T) {
	t.Parallel()
	plain := []byte(strings.Repeat("again ", 1000))
	var z, l, s bytes.Buffer
	zw := zlib.NewWriter(&z)
	lw := lz4.NewWriter(&l)
	sw, err := zstd.NewWriter(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{zw, lw, sw} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		flag mq.SysFlag
		body []byte
		how  string
	}{{0, plain, ""}, {1, z.Bytes(), "zlib"}, {0x301, z.Bytes(), "zlib"}, {0x101, l.Bytes(), "lz4"}, {0x201, s.Bytes(), "zstd"}} {
		got, how, err := inflate(c.body, c.flag)
		if err != nil || how != c.how || !bytes.Equal(got, plain) {
			t.Errorf("flag %#x: %d bytes, %s, %v", c.flag, len(got), how, err)
		}
		if c.flag == 0 {
			continue
		}
		if got, _, err := inflate(c.body[:len(c.body)/2], c.flag); err == nil || !bytes.Equal(got, c.body[:len(c.body)/2]) {
			t.Errorf("flag %#x, half of it: %v", c.flag, err)
		}
	}
	if _, _, err := inflate(plain, 0x701); err == nil {
		t.Error("an unknown compression is none")
	}
}

func TestTracesAreRead(t *testing.T) {
	t.Parallel()
	body := strings.ReplaceAll(strings.ReplaceAll("Pub|1700|region|pg|T|id1|tag|k1 k2|10.0.0.1:10911|5|12|0|offsetid|true;"+
		"SubBefore|1800|region|cg|req|id1|2|k1;SubAfter|req|id1|7|false|k1|1|1900|cg;"+
		"EndTransaction|2000|region|pg|T|id1|tag|k1|host|2|tx|COMMIT_MESSAGE|true;Recall|2100|region|pg|T|id1|true;Garbage|;SubAfter;", "|", "\x01"), ";", "\x02")
	got := traceEvents(body, "10.0.0.9:4711")
	want := []traceEvent{
		{What: "send", Time: 1700, Group: "pg", Client: "10.0.0.9:4711", Topic: "T", ID: "id1", Keys: "k1 k2", Tags: "tag", Cost: 12, Success: true, Offset: "offsetid"},
		{What: "consume begins", Time: 1800, Group: "cg", Client: "10.0.0.9:4711", ID: "id1", Keys: "k1", Success: true, Retries: 2, Request: "req"},
		{What: "consumed", Time: 1900, Group: "cg", Client: "10.0.0.9:4711", ID: "id1", Keys: "k1", Cost: 7, Request: "req"},
		{What: "transaction ends", Time: 2000, Group: "pg", Client: "10.0.0.9:4711", Topic: "T", ID: "id1", Keys: "k1", Tags: "tag", Success: true, State: "COMMIT_MESSAGE"},
		{What: "recall", Time: 2100, Group: "pg", Client: "10.0.0.9:4711", Topic: "T", ID: "id1", Success: true},
		{What: "consumed", Client: "10.0.0.9:4711"},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestVersionNames(t *testing.T) {
	t.Parallel()
	for n, want := range map[int32]string{121: "121", 232: "V4_1_0_SNAPSHOT", 273: "V4_3_0", 317: "V4_5_2", 393: "V4_9_0", 409: "V4_9_8", 413: "V5_0_0", 479: "V5_3_3", 513: "V5_5_0"} {
		if got := versionName(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
