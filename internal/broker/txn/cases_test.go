package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
)

// A commit shows the message at once and as RocketMQ would; a rollback never.
func TestVerdicts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		a, b := w.send("commit", "own", "1"), w.send("rollback")
		for _, s := range []struct {
			req  *EndRequest
			want error
		}{
			{a.as(VerdictUnknown), nil}, {a.as(VerdictCommit), nil}, {b.as(VerdictRollback), nil},
		} {
			if err := w.end(s.req); !errors.Is(err, s.want) {
				t.Errorf("%+v: %v", s.req, err)
			}
		}
		w.wantVisible("commit")
		m := w.all("T")[0].View
		if m.SysFlag().Tx() != mq.SysTxCommit || m.PreparedOffset() != a.Log || m.Flag() != 7 {
			t.Errorf("flag %d, system flag %#x, prepared at %d", m.Flag(), m.SysFlag(), m.PreparedOffset())
		}
		for name, want := range map[string]string{
			mq.PropTransaction: "true", mq.PropProducerGroup: "P", mq.PropTransactionID: "K-commit", "own": "1", mq.PropTags: "tag",
			mq.PropRealTopic: "", mq.PropRealQueueID: "", mq.PropTxClient: "",
		} {
			if value, _ := m.Property(name); string(value) != want {
				t.Errorf("property %s is %q, want %q", name, value, want)
			}
		}
		if w.open() != 0 {
			t.Errorf("%d open", w.open())
		}
	})
}

// What a verdict names must be the half message of that group.
func TestVerdictsAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		a, b := w.send("a"), w.send("b")
		c := w.send("c")
		if err := w.end(c.as(VerdictCommit)); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(r *EndRequest){
			"group":           func(r *EndRequest) { r.Group = "other" },
			"queue offset":    func(r *EndRequest) { r.Offset = b.Offset },
			"log offset":      func(r *EndRequest) { r.Log = b.Log },
			"no such offset":  func(r *EndRequest) { r.Offset, r.Log = 999, 1<<40 },
			"below 0":         func(r *EndRequest) { r.Offset, r.Log = -1, -1 },
			"a real message":  func(r *EndRequest) { r.Offset, r.Log = 77, w.all("T")[0].Log },
			"ended, by other": func(r *EndRequest) { *r = c.EndRequest; r.Verdict, r.Group = VerdictCommit, "other" },
		} {
			req := a.as(VerdictCommit)
			change(req)
			if err := w.end(req); !errors.Is(err, mq.ErrSystem) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := w.end(a.as(5)); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("verdict 5: %v", err)
		}
		w.wantVisible("c")
		if w.open() != 2 {
			t.Errorf("%d open", w.open())
		}
	})
}

// T01: the commit wins the moment it arrives, after checks that said nothing.
func TestT01LateCommitWins(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Timeout = 2 * time.Second }
		w.start()
		w.join("P", "conn")
		w.answers(VerdictUnknown)
		s := w.send("slow")
		w.pass(10 * time.Second)
		if n := len(w.checks("slow")); n < 7 || n > 9 {
			t.Errorf("%d checks in 10 s", n)
		}
		if err := w.end(s.as(VerdictCommit)); err != nil {
			t.Fatal(err)
		}
		w.wantVisible("slow")
		before := len(w.checks(""))
		w.pass(time.Minute)
		if n := len(w.checks("")); n != before {
			t.Errorf("%d checks after the commit", n-before)
		}
		w.wantVisible("slow")
	})
}

// T02: only checks that were sent count; the first is not before its time; as many
// as allowed are seen.
func TestT02OnlyRealChecksCount(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.MaxChecks = 5 }
		w.start()
		w.answers(VerdictUnknown)
		s := w.send("immune", mq.PropCheckImmunity, "60")
		began := time.Now().UnixMilli()
		w.pass(65 * time.Second)
		if n := len(w.checks("")); n != 0 {
			t.Fatalf("%d checks without a producer", n)
		}
		w.pass(time.Hour)
		h, _, err := w.flow.Show(context.Background(), Ref{Offset: s.Offset})
		if err != nil || h.Tries != 0 || !h.Waiting {
			t.Fatalf("%+v, %v", h, err)
		}
		w.join("P", "conn")
		w.pass(time.Minute)
		list := w.checks("immune")
		if len(list) != 5 {
			t.Fatalf("%d checks, want 5", len(list))
		}
		if list[0].at-began < 60_000 {
			t.Errorf("the first check came after %d ms", list[0].at-began)
		}
		if w.open() != 0 || len(w.all(mq.TopicTransDiscard)) != 1 {
			t.Errorf("%d open, %d given up", w.open(), len(w.all(mq.TopicTransDiscard)))
		}
	})
}

// A check is sent in the millisecond when it is due.
func TestChecksAreOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.join("P", "conn")
		w.answers(VerdictUnknown)
		began := time.Now().UnixMilli()
		w.send("a")
		w.send("b", mq.PropCheckImmunity, "3")
		w.pass(10 * time.Second)
		for body, first := range map[string]int64{"a": 1000, "b": 3000} {
			for i, a := range w.checks(body) {
				if want := first + int64(i)*1000; a.at-began != want {
					t.Errorf("check %d of %q after %d ms, want %d", i, body, a.at-began, want)
				}
			}
		}
	})
}

// T04: what is committed at once is never asked about, and is there at once.
func TestT04CommittedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.join("P", "conn")
		var want []string
		for i := range 1000 {
			s := w.send(body("m", i))
			if err := w.end(s.as(VerdictCommit)); err != nil {
				t.Fatal(err)
			}
			want = append(want, s.body)
		}
		for _, g := range w.all("T") {
			if late := g.At - g.View.BornTime(); late > 0 {
				t.Fatalf("%q is visible after %d ms", g.Body, late)
			}
		}
		w.wantVisible(want...)
		w.pass(time.Minute)
		if n := len(w.checks("")); n != 0 {
			t.Errorf("%d checks", n)
		}
		if n := len(w.all(mq.TopicTransOp)); n > 20 {
			t.Errorf("%d marks for 1000 commits", n)
		}
	})
}

// T07: compressed bodies are neither unpacked nor repacked by checks or when they
// are stored again.
func TestT07CompressedBodies(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		expireFast(w)
		w.tune = func(c *Config) { c.MaxChecks = 10_000 }
		w.start()
		w.join("P", "conn")
		m := message("T", strings.Repeat("\x78\x9c packed", 1000), mq.PropTransaction, "true", mq.PropUniqueKey, "K")
		m.SysFlag = mq.SysCompressed | 0x300
		want := string(m.Body)
		s, err := w.trySend(m, "P", "conn")
		if err != nil {
			t.Fatal(err)
		}
		w.pass(2500 * time.Millisecond)
		w.moveLogOn()
		list := w.checks("")
		if len(list) < 2 {
			t.Fatalf("%d checks", len(list))
		}
		for _, a := range list {
			v, _, err := record.Next(a.check.Body)
			if err != nil || string(v.Body()) != want || v.SysFlag()&0x701 != 0x301 || string(v.Topic()) != "T" {
				t.Errorf("a check says %#x, %d bytes, %v", v.SysFlag(), len(v.Body()), err)
			}
		}
		if err := w.end(s.as(VerdictCommit)); err != nil {
			t.Fatal(err)
		}
		g := w.all("T")
		if len(g) != 1 || g[0].Body != want || g[0].View.SysFlag() != mq.SysCompressed|0x300|mq.SysTxCommit {
			t.Errorf("committed: %d messages", len(g))
		}
	})
}

// expireFast has log files expire after a minute.
func expireFast(w *world) {
	w.tuneStore = func(c *storage.Config) {
		c.Expiry.Reserved, c.Expiry.Hours, c.Expiry.FilePause = time.Minute, nil, 0
		c.MaxMessage = 16 << 10
	}
}

// moveLogOn fills log files with other messages and lets them expire.
func (w *world) moveLogOn() {
	w.t.Helper()
	for range 3 {
		for range 20 {
			if _, err := w.store.Append(message("filler", strings.Repeat("x", 8<<10))); err != nil {
				w.t.Fatal(err)
			}
		}
		w.pass(2 * time.Minute)
		for range 6 {
			if _, err := w.store.ExpireNow(context.Background()); err != nil {
				w.t.Fatal(err)
			}
			w.pass(time.Second)
		}
	}
}

// Open halves outlive the log files that they were stored in, any number of times,
// and are stored again once per retention period.
func TestOpenHalvesSurviveRetention(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		expireFast(w)
		w.tune = func(c *Config) { c.Timeout = 100 * time.Hour }
		w.start()
		a, b := w.send("a"), w.send("b")
		first := w.store.MinLog()
		for range 3 {
			w.moveLogOn()
			w.restart()
		}
		if w.store.MinLog() == first {
			t.Fatal("no file went")
		}
		if w.open() != 2 {
			t.Fatalf("%d open", w.open())
		}
		if copies := len(w.all(mq.TopicTransHalf)); copies > 6 {
			t.Errorf("%d copies of two halves are in the log", copies)
		}
		h, _, err := w.flow.Show(context.Background(), Ref{ID: "K-a"})
		if err != nil || time.UnixMilli(h.NextCheck).Sub(time.UnixMilli(h.Born)) != 100*time.Hour {
			t.Errorf("the check of a moved: %+v, %v", h, err)
		}
		// The producer knows the first copy only.
		if err := w.end(a.as(VerdictCommit)); err != nil {
			t.Errorf("commit: %v", err)
		}
		if err := w.end(b.as(VerdictRollback)); err != nil {
			t.Errorf("rollback: %v", err)
		}
		if w.open() != 0 {
			t.Errorf("%d open", w.open())
		}
		if got := w.visible(); got["a"] != 1 || got["b"] != 0 {
			t.Errorf("a %d times, b %d times", got["a"], got["b"])
		}
	})
}

// T08: every size that is accepted can be checked, stored again and committed.
func TestT08LargestMessages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		expireFast(w)
		w.tuneStore = func(c *storage.Config) {
			c.Expiry.Reserved, c.Expiry.Hours, c.Expiry.FilePause, c.MaxMessage = time.Minute, nil, 0, 3000
		}
		w.start()
		w.join("P", "conn")
		var all []sent
		for n := 2950; n <= 3010; n += 5 {
			m := message("T", strings.Repeat("b", n), mq.PropTransaction, "true", mq.PropUniqueKey, fmt.Sprint("K", n))
			s, err := w.trySend(m, "P", "conn")
			if (err == nil) != (n <= 3000) {
				t.Fatalf("%d bytes: %v", n, err)
			}
			if err == nil {
				all = append(all, s)
			}
		}
		// Properties as long as they may be.
		m := message("T", "x", mq.PropTransaction, "true", mq.PropUniqueKey, "KX", "p", strings.Repeat("p", record.MaxProperties-1024))
		s, err := w.trySend(m, "P", "conn")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
		w.pass(3 * time.Second)
		for _, s := range all {
			if n := len(w.checks(s.body)); n < 2 {
				t.Errorf("%d checks of %d bytes", n, len(s.body))
			}
		}
		w.tuneStore = nil
		for i := range 40 {
			if _, err := w.store.Append(message("filler", strings.Repeat("x", 2900+i))); err != nil {
				t.Fatal(err)
			}
		}
		w.pass(2 * time.Minute)
		for range 4 {
			if _, err := w.store.ExpireNow(context.Background()); err != nil {
				t.Fatal(err)
			}
			w.pass(time.Second)
		}
		if w.store.MinLog() == 0 {
			t.Error("the oldest file is still there")
		}
		for _, s := range all {
			if err := w.end(s.as(VerdictCommit)); err != nil && !errors.Is(err, mq.ErrIllegalOperation) {
				t.Errorf("commit of %d bytes: %v", len(s.body), err)
			}
		}
	})
}

// T10: many open halves and a slow producer: the disk does not grow with checks.
func TestT10ChecksCostNoDisk(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.Window, c.MaxChecks = 100, 60000 }
		w.start()
		w.join("P", "conn")
		for i := range 2000 {
			w.send(body("m", i))
		}
		w.pass(2 * time.Second)
		log := w.store.MaxLog()
		free := make(chan struct{}, 1)
		w.mu.Lock()
		w.answer = func(a ask) { // one at a time, 100 ms each
			free <- struct{}{}
			<-time.After(100 * time.Millisecond)
			<-free
			_ = w.endOf(a, VerdictUnknown)
		}
		w.mu.Unlock()
		w.pass(10 * time.Minute)
		if grown := w.store.MaxLog() - log; grown != 0 {
			t.Errorf("the log grew by %d bytes", grown)
		}
		n := len(w.checks(""))
		if n < 1000 || n > 22_000 {
			t.Errorf("%d checks in ten minutes to a producer that answers ten a second and is asked 32 at a time", n)
		}
		if size := w.size("sundial/txn.journal"); size > 2<<20 {
			t.Errorf("the journal has %d bytes", size)
		}
		if w.open() != 2000 {
			t.Errorf("%d open", w.open())
		}
	})
}

func (w *world) size(name string) int {
	raw, err := w.disk.ReadFile(dir + "/" + name)
	if err != nil {
		w.t.Error(err)
	}
	return len(raw)
}

// T11: the sender is asked first; when it is gone, who sends to that topic; then
// anybody of the group.
func TestT11WhoIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		for _, id := range []string{"a1", "a2", "b1", "idle"} {
			w.join("P", id)
		}
		half := func(conn, topic, body string) sent {
			s, err := w.trySend(message(topic, body, mq.PropTransaction, "true", mq.PropUniqueKey, body), "P", conn)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		half("a2", "T", "other")
		half("b1", "U", "another")
		half("a1", "T", "mine")
		asked := func(d time.Duration) string {
			before := len(w.checks("mine"))
			w.pass(d)
			who := map[string]bool{}
			for _, a := range w.checks("mine")[before:] {
				who[a.client] = true
			}
			return strings.Join(slices.Sorted(maps.Keys(who)), " ")
		}
		if who := asked(3500 * time.Millisecond); who != "a1" {
			t.Errorf("the sender is here, asked %s", who)
		}
		w.leave("P", "a1")
		if who := asked(3 * time.Second); who != "a2" {
			t.Errorf("another producer of that topic is here, asked %s", who)
		}
		w.join("P", "a1") // back, with another connection of the same id
		if who := asked(3 * time.Second); who != "a1" {
			t.Errorf("the sender is back, asked %s", who)
		}
		w.leave("P", "a1")
		w.leave("P", "a2")
		if who := asked(5 * time.Second); who != "b1 idle" {
			t.Errorf("nobody sends to that topic, asked %q", who)
		}
		w.leave("P", "b1")
		w.leave("P", "idle")
		before := len(w.checks("mine"))
		w.pass(time.Minute)
		if n := len(w.checks("mine")); n != before {
			t.Errorf("%d checks to nobody", n-before)
		}
		w.restart() // the id of the sender is in the half message
		w.join("P", "b1")
		w.join("P", "a1")
		w.pass(3 * time.Second)
		list := w.checks("mine")
		if last := list[len(list)-1]; last.client != "a1" {
			t.Errorf("after a restart asked %s", last.client)
		}
	})
}

// T13: what is finished is not asked about after a restart, not even after a kill.
func TestT13FinishedStaysFinished(t *testing.T) {
	for _, how := range []string{"stop", "kill"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				var all []sent
				var want []string
				for i := range 300 {
					all = append(all, w.send(body("m", i)))
				}
				for i, s := range all {
					v := VerdictCommit
					if i%3 == 0 {
						v = VerdictRollback
					} else {
						want = append(want, s.body)
					}
					if err := w.end(s.as(v)); err != nil {
						t.Fatal(err)
					}
				}
				if how == "kill" {
					w.kill()
				} else {
					w.stopClean()
				}
				w.start()
				w.join("P", "conn")
				w.pass(time.Minute)
				if n := len(w.checks("")); n != 0 || w.open() != 0 {
					t.Errorf("%d checks, %d open", n, w.open())
				}
				w.wantVisible(want...)
				// RocketMQ would know, too.
				if low := w.offs[mq.TopicTransHalf]; low != 300 {
					t.Errorf("progress of halves is %d", low)
				}
			})
		})
	}
}

// T14: the first final verdict counts; the same again is done, another one is too
// late; also after a restart, by the log.
func TestT14FirstVerdictCounts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		expireFast(w)
		w.start()
		w.join("P", "conn")
		c, r := w.send("commit first"), w.send("rollback first")
		d := w.send("delayed", mq.PropDelay, "2")
		w.pass(1500 * time.Millisecond)
		if err := w.endOf(w.checks("rollback first")[0], VerdictRollback); err != nil {
			t.Fatal(err)
		}
		for _, s := range []sent{c, d} {
			if err := w.end(s.as(VerdictCommit)); err != nil {
				t.Fatal(err)
			}
		}
		again := func(when string) {
			t.Helper()
			for _, x := range []struct {
				s    sent
				v    Verdict
				want error
			}{
				{c, VerdictCommit, nil}, {c, VerdictRollback, mq.ErrIllegalOperation},
				{r, VerdictRollback, nil}, {r, VerdictCommit, mq.ErrIllegalOperation},
				{d, VerdictCommit, nil}, {d, VerdictRollback, mq.ErrIllegalOperation},
			} {
				if err := w.end(x.s.as(x.v)); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
					t.Errorf("%s, %q, %d: %v", when, x.s.body, x.v, err)
				}
			}
			got := w.visible()
			if got["commit first"] != 1 || got["rollback first"] != 0 || got["delayed"] != 1 {
				t.Errorf("%s: %v", when, got)
			}
		}
		again("at once")
		if !strings.Contains(w.logs.String(), "does not count") {
			t.Error("the second verdict is not logged")
		}
		w.restart()
		w.pass(time.Second)
		w.flow.mu.recent = recents{}
		again("by the log")
	})
}

// T17: transactions that were given up are listed and can be resumed, committed or
// dropped, and that stays known.
func TestT17GivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.MaxChecks = 2 }
		w.start()
		w.join("P", "conn")
		w.answers(VerdictUnknown)
		halves := map[string]sent{}
		for _, b := range []string{"resume", "commit", "drop", "late commit"} {
			halves[b] = w.send(b)
		}
		w.pass(10 * time.Second)
		ctx := context.Background()
		page, err := w.flow.List(ctx, Filter{GivenUp: true, After: -1, Max: 10})
		if err != nil || len(page.Halves) != 4 || page.Total != 4 || page.Next != -1 {
			t.Fatalf("%+v, %v", page, err)
		}
		refs := map[string]Ref{}
		for _, h := range page.Halves {
			if h.Topic != "T" || h.Group != "P" || h.Tries != 2 || h.State != StateGivenUp || h.Born == 0 {
				t.Errorf("listed as %+v", h)
			}
			refs[strings.TrimPrefix(h.ID, "K-")] = Ref{GivenUp: true, Offset: h.Offset}
		}
		for _, v := range w.all(mq.TopicTransDiscard) {
			if times, _ := v.View.Property(mq.PropCheckTimes); string(times) != "2" {
				t.Errorf("%q was tried %s times", v.Body, times)
			}
		}
		act := func(b string, a Action, want State) {
			t.Helper()
			got, err := w.flow.Resolve(ctx, refs[b], a)
			if err != nil || got.State != want {
				t.Errorf("%v %q: %+v, %v", a, b, got, err)
			}
		}
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		before := len(w.checks("resume"))
		act("resume", Resume, StateOpen)
		act("commit", Commit, StateCommitted)
		act("drop", Rollback, StateRolledBack)
		if err := w.end(halves["late commit"].as(VerdictCommit)); err != nil {
			t.Errorf("a commit of one that was given up: %v", err)
		}
		w.wantVisible("commit", "late commit")
		w.pass(500 * time.Millisecond)
		if n := len(w.checks("resume")) - before; n != 1 {
			t.Errorf("%d checks after resume", n)
		}
		w.kill()
		w.start()
		if page, err = w.flow.List(ctx, Filter{GivenUp: true, After: -1, Max: 10}); err != nil || len(page.Halves) != 0 || page.Total != 0 {
			t.Errorf("after a kill: %+v, %v", page, err)
		}
		if page, err = w.flow.List(ctx, Filter{GivenUp: true, Resolved: true, After: -1, Max: 10}); err != nil || len(page.Halves) != 4 {
			t.Errorf("after a kill: %+v, %v", page, err)
		}
		for _, h := range page.Halves {
			want := map[string]State{"resume": StateResumed, "commit": StateCommitted, "drop": StateRolledBack, "late commit": StateCommitted}
			if b := strings.TrimPrefix(h.ID, "K-"); h.State != want[b] || h.Decided == 0 {
				t.Errorf("%q is %v since %d", b, h.State, h.Decided)
			}
		}
		if _, err := w.flow.Resolve(ctx, refs["drop"], Commit); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("commit of a dropped one: %v", err)
		}
		if err := w.end(halves["drop"].as(VerdictCommit)); err == nil {
			t.Error("a dropped one was committed")
		}
		w.wantVisible("commit", "late commit")
	})
}

// Delayed transactions come that long after their commit, once.
func TestDelayBeginsWithTheCommit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		s := w.send("delayed", mq.PropDelay, "2")
		w.pass(3 * time.Second)
		for range 2 {
			if err := w.end(s.as(VerdictCommit)); err != nil {
				t.Fatal(err)
			}
		}
		list := w.all(mq.TopicSchedule)
		if len(list) != 1 {
			t.Fatalf("%d in the schedule topic", len(list))
		}
		v := list[0].View
		if real, _ := v.Property(mq.PropRealTopic); string(real) != "T" || v.QueueID() != 1 || v.SysFlag().Tx() != mq.SysTxCommit {
			t.Errorf("to %s, queue %d", real, v.QueueID())
		}
		w.kill()
		w.start()
		if w.open() != 0 {
			t.Errorf("%d open after a kill", w.open())
		}
	})
}

// A due time is kept from the commit on: what counts from the sending of a message
// counts from its commit, and a point in time that has passed is at once. What waits
// names its half message, so that no second commit makes another one.
func TestDueTimeOfATransaction(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		start := time.Now().UnixMilli()
		after := w.send("after", mq.PropTimerDelayMs, "5000")
		seconds := w.send("seconds", mq.PropTimerDelaySec, "7")
		at := w.send("at", mq.PropTimerDeliverMs, fmt.Sprint(start+60_000))
		past := w.send("past", mq.PropTimerDeliverMs, fmt.Sprint(start+1000))
		w.pass(3 * time.Second)
		for range 2 {
			for _, s := range []sent{after, seconds, at, past} {
				if err := w.end(s.as(VerdictCommit)); err != nil {
					t.Fatal(err)
				}
			}
			w.kill()
			w.start()
		}
		want := map[string]int64{"after": start + 8000, "seconds": start + 10_000, "at": start + 60_000}
		list := w.all(mq.TopicTimer)
		if len(list) != len(want) {
			t.Fatalf("%d wait", len(list))
		}
		for _, g := range list {
			due, _ := number(g.View.Properties(), mq.PropDue)
			r, ok := receiptOf(g.View.Properties())
			real, _ := g.View.Property(mq.PropRealTopic)
			if due != want[g.Body] || !ok || r.Queue != halfQueue || string(real) != "T" || g.View.SysFlag().Tx() != mq.SysTxCommit {
				t.Errorf("%q waits until %d, want %d: %q", g.Body, due-start, want[g.Body]-start, g.View.Properties())
			}
		}
		if list := w.all("T"); len(list) != 1 || list[0].Body != "past" {
			t.Errorf("%d are there at once", len(list))
		}
		w.wantVisible("after", "seconds", "at", "past")
		if err := w.end(after.as(VerdictRollback)); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("a rollback behind the commit: %v", err)
		}
		if w.open() != 0 {
			t.Errorf("%d are open", w.open())
		}
	})
}

// A topic that is gone keeps the transaction open.
func TestCommitWithoutTopic(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		s := w.send("a")
		w.topics["T"] = false
		if err := w.end(s.as(VerdictCommit)); !errors.Is(err, mq.ErrNoTopic) {
			t.Errorf("commit: %v", err)
		}
		w.topics["T"] = true
		if err := w.end(s.as(VerdictCommit)); err != nil {
			t.Errorf("commit: %v", err)
		}
		w.wantVisible("a")
	})
}

// A transaction too old is given up although nobody could be asked.
func TestMaxAge(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.MaxAge = time.Hour }
		w.start()
		w.send("a")
		w.pass(30 * time.Minute)
		w.send("b")
		w.pass(29 * time.Minute)
		if w.open() != 2 {
			t.Fatalf("%d open", w.open())
		}
		w.pass(2 * time.Minute)
		if w.open() != 1 {
			t.Errorf("%d open after an hour", w.open())
		}
		w.pass(30 * time.Minute)
		if w.open() != 0 || len(w.all(mq.TopicTransDiscard)) != 2 {
			t.Errorf("%d open after two", w.open())
		}
	})
}

// Tries and due times survive restarts.
func TestTriesSurviveRestarts(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(c *Config) { c.MaxChecks = 6 }
		w.start()
		w.join("P", "conn")
		w.answers(VerdictUnknown)
		w.send("a")
		for range 5 {
			w.pass(1100 * time.Millisecond)
			w.restart()
		}
		w.pass(10 * time.Second)
		if n := len(w.checks("a")); n != 6 {
			t.Errorf("%d checks, want 6", n)
		}
	})
}
