package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

func echoTable() Table {
	return Table{codeEcho: {Name: "ECHO", Class: NewInline("echo", nil), Handle: echo}}
}

func newClass(t *testing.T, cfg ClassConfig) *Class {
	t.Helper()
	c, err := NewClass(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswersInTheAskersForm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		for _, form := range []remoting.Serialize{remoting.JSON, remoting.Binary} {
			resp := p.ask(&remoting.Command{Code: codeEcho, Serialize: form, Body: []byte("body"), Fields: []remoting.Field{{Key: "k", Value: "v"}}})
			if resp.Serialize != form || resp.Code != 0 || string(resp.Body) != "body" || resp.Fields[0].Value != "v" || resp.Version != remoting.Version {
				t.Errorf("%v: %+v", form, resp)
			}
		}
	})
}

func TestAnswersWhatItCannotHandle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := echoTable()
		table[codeBad] = Route{Name: "BAD", Class: NewInline("bad", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { panic("ouch") }}
		table[codeSlow] = Route{Name: "SLOW", Class: newClass(t, ClassConfig{Name: "slow", Workers: 1}), Handle: table[codeBad].Handle}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		for _, c := range []struct {
			code, want int32
			text       string
		}{
			{9999, codeNotSupported, "request code 9999 is not supported"},
			{-1, codeNotSupported, "request code -1 is not supported"},
			{codeBad, codeSystemError, "BAD: ouch"},
			{codeSlow, codeSystemError, "SLOW: ouch"},
			{codeEcho, 0, ""},
		} {
			if resp := p.ask(&remoting.Command{Code: c.code}); resp.Code != c.want || !strings.Contains(resp.Remark, c.text) {
				t.Errorf("code %d: answer %d %q", c.code, resp.Code, resp.Remark)
			}
		}
		if n := s.m.panics.Value(); n != 2 {
			t.Errorf("%d panics counted, want 2", n)
		}
	})
}

func TestOnewayIsNeverAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := 0
		table := echoTable()
		table[codeLate] = Route{Class: NewInline("late", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			return &remoting.Command{Chunks: [][]byte{[]byte("x")}, Release: func() { released++ }}
		}}
		table[codeBad] = Route{Class: NewInline("bad", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { panic("ouch") }}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		one := func(code int32) *remoting.Command {
			return &remoting.Command{Code: code, Flag: remoting.FlagOneway}
		}
		ids := p.send(one(codeEcho), one(9999), one(codeLate), one(codeBad), &remoting.Command{Code: codeEcho})
		if resp := p.mustReceive(); resp.Opaque != ids[4] {
			t.Errorf("a one-way request was answered: %+v", resp)
		}
		if released != 1 {
			t.Errorf("Release was called %d times", released)
		}
	})
}

func TestInlineKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen []int32
		s := start(t, Table{codeEcho: {Class: NewInline("x", nil), Handle: func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			seen = append(seen, req.Opaque)
			return echo(ctx, c, req)
		}}}, nil)
		defer s.stop()
		p := s.connect()
		var all []*remoting.Command
		for range 100 {
			all = append(all, &remoting.Command{Code: codeEcho, Body: make([]byte, 3000)})
		}
		go p.send(all...)
		for i := range all {
			if resp := p.mustReceive(); resp.Opaque != int32(i+1) || len(resp.Body) != 3000 {
				t.Fatalf("answer %d has opaque %d", i, resp.Opaque)
			}
		}
		for i, o := range seen {
			if o != int32(i+1) {
				t.Fatalf("request %d was handled as number %d", o, i+1)
			}
		}
	})
}

// What comes together is read together, whatever buffer the connection had.
func TestReadsTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, echoTable(), nil)
		defer s.stop()
		p := s.connect()
		for range 3 {
			var all []*remoting.Command
			for range 30 {
				all = append(all, sendRequest(1024, remoting.JSON))
			}
			go p.send(all...)
			for range all {
				p.mustReceive()
			}
		}
		if n := s.m.reads.Value(); n > 5 {
			t.Errorf("three times 30 requests took %d reads", n)
		}
	})
}

func TestLaterAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := Table{codeLate: {Class: NewInline("late", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			l, text := c.Later(req), string(req.Body)
			time.AfterFunc(time.Second, func() { l.Reply(l.Response(7, text)) })
			return nil
		}}}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		begin := time.Now()
		ids := p.send(&remoting.Command{Code: codeLate, Body: []byte("a")}, &remoting.Command{Code: codeLate, Body: []byte("b"), Serialize: remoting.Binary})
		for range ids {
			resp := p.mustReceive()
			if want := string('a' + rune(resp.Opaque-ids[0])); resp.Remark != want || resp.Code != 7 {
				t.Errorf("%+v", resp)
			}
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("answered after %v", d)
		}
	})
}

func TestFullClassSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		table := echoTable()
		table[codeSlow] = Route{Class: newClass(t, ClassConfig{Name: "admin", Workers: 2, Queue: 3}), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			<-gate
			return remoting.NewResponse(req, 0, "done")
		}}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		slow := func() *remoting.Command { return &remoting.Command{Code: codeSlow} }
		p.send(slow(), slow())
		synctest.Wait()
		p.send(slow(), slow(), slow())
		synctest.Wait()
		<-time.After(1500 * time.Millisecond)
		resp := p.ask(slow())
		for _, part := range []string{"class admin", "3 requests wait (limit 3)", "oldest for 1.5s", "2 of 2 workers"} {
			if resp.Code != codeBusy || !strings.Contains(resp.Remark, part) {
				t.Errorf("answer %d %q lacks %q", resp.Code, resp.Remark, part)
			}
		}
		// Others are served meanwhile, on the same connection.
		if resp := p.ask(&remoting.Command{Code: codeEcho}); resp.Code != 0 {
			t.Errorf("echo: %+v", resp)
		}
		close(gate)
		for range 5 {
			if resp := p.mustReceive(); resp.Code != 0 {
				t.Errorf("%+v", resp)
			}
		}
	})
}

func TestWaitedTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := Table{codeSlow: {Class: newClass(t, ClassConfig{Name: "x", Workers: 1, Queue: 10, MaxWait: time.Second}), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			<-time.After(2 * time.Second)
			return remoting.NewResponse(req, 0, "")
		}}}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		p.send(&remoting.Command{Code: codeSlow}, &remoting.Command{Code: codeSlow})
		if a := p.mustReceive(); a.Code != 0 {
			t.Errorf("%+v", a)
		}
		if b := p.mustReceive(); b.Code != codeBusy || !strings.Contains(b.Remark, "waited 2s (limit 1s)") {
			t.Errorf("%+v", b)
		}
	})
}

func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held []Later
		table := echoTable()
		table[codeLate] = Route{Class: NewInline("late", nil), Handle: func(_ context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			held = append(held, c.Later(req))
			return nil
		}}
		s := start(t, table, func(c *Config) { c.MaxInFlight = 2 })
		defer s.stop()
		p := s.connect()
		p.send(&remoting.Command{Code: codeLate}, &remoting.Command{Code: codeLate})
		if resp := p.ask(&remoting.Command{Code: codeLate}); resp.Code != codeBusy || !strings.Contains(resp.Remark, "limit 2") {
			t.Errorf("%+v", resp)
		}
		for _, l := range held {
			go l.Reply(l.Response(0, ""))
			p.mustReceive()
		}
		if resp := p.ask(&remoting.Command{Code: codeEcho}); resp.Code != 0 {
			t.Errorf("%+v", resp)
		}
	})
}

func TestNoAnswerCountsNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := echoTable()
		table[codeLate] = Route{Class: NewInline("late", nil), Handle: func(context.Context, *Conn, *remoting.Command) *remoting.Command { return NoAnswer }}
		s := start(t, table, func(c *Config) { c.MaxInFlight = 1 })
		defer s.stop()
		p := s.connect()
		for range 5 {
			p.send(&remoting.Command{Code: codeLate})
		}
		if resp := p.ask(&remoting.Command{Code: codeEcho}); resp.Code != 0 {
			t.Errorf("%+v", resp)
		}
	})
}

func TestCallsToTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		table := Table{codeEcho: {Class: NewInline("x", nil), Handle: func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			conn = c
			return echo(ctx, c, req)
		}}}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		p.ask(&remoting.Command{Code: codeEcho})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()

		go func() { // the client: answers with a number that its own requests use too
			req := p.mustReceive()
			resp := remoting.NewResponse(req, 0, "")
			resp.Body = []byte(fmt.Sprintf("answer to %d", req.Code))
			p.write(remoting.AppendCommand(nil, resp))
		}()
		resp, err := conn.Call(ctx, remoting.NewRequest(307))
		if err != nil || string(resp.Body) != "answer to 307" {
			t.Errorf("%+v, %v", resp, err)
		}

		go func() { p.mustReceive() }()
		if _, err := conn.Call(ctx, remoting.NewRequest(307)); err == nil || !strings.Contains(err.Error(), "client did not answer in time") {
			t.Errorf("silent client: %v", err)
		}
		p.write(remoting.AppendCommand(nil, &remoting.Command{Flag: remoting.FlagResponse, Opaque: 2})) // too late
		synctest.Wait()
		if n := s.m.strays.Value(); n != 1 {
			t.Errorf("%d answers that nobody waits for, want 1", n)
		}

		go func() {
			if req := p.mustReceive(); !req.IsOneway() || req.Code != 40 {
				t.Errorf("%+v", req)
			}
			p.Close()
		}()
		if err := conn.Oneway(remoting.NewRequest(40)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, err := conn.Call(t.Context(), remoting.NewRequest(307)); err == nil {
			t.Error("a call to a closed connection succeeded")
		}
		if err := conn.Oneway(remoting.NewRequest(40)); err == nil {
			t.Error("a one-way call to a closed connection succeeded")
		}
	})
}

func TestOnClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		called := 0
		table := Table{codeEcho: {Class: NewInline("x", nil), Handle: func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command {
			conn = c
			c.Attach("me")
			c.OnClose(func() { called++; panic("must not matter") })
			return echo(ctx, c, req)
		}}}
		s := start(t, table, nil)
		defer s.stop()
		p := s.connect()
		p.ask(&remoting.Command{Code: codeEcho})
		if conn.Attached() != "me" || conn.Closed() {
			t.Error("attached value is lost")
		}
		p.Close()
		synctest.Wait()
		if called != 1 || !conn.Closed() {
			t.Errorf("called %d times", called)
		}
		conn.OnClose(func() { called++ })
		if called != 2 {
			t.Error("a function given after the close was not called")
		}
	})
}
