package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/protocol"
)

// Timed messages are listed, found, counted, plotted, moved, fired and cancelled; what
// is not there, already done or not agreed to has its own exit code.
func TestTimedMessagesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	a, _ := dlqBroker(t)
	send := func(topic, key, due string) string {
		var sent sentMessage
		a.json(&sent, fmt.Sprintf("message send %s --body %s --keys %s --due %s", topic, key, key, due))
		return sent.UniqueKey
	}
	one, two, three := send("T", "a", "2h"), send("T", "b", "3h"), send("Other", "a", "100h")
	a.run(0, "message send T --body l --level 18 --keys l")

	var state delayHistogram
	until := time.Now().Add(10 * time.Second)
	for a.json(&state, "delay histogram"); state.Brokers[0].Pending < 3 && time.Now().Before(until); a.json(&state, "delay histogram") {
	}
	b := state.Brokers[0]
	if b.Pending != 3 || b.Levels != 1 || b.First == nil || b.First.Unique != one && b.First.Unique != two || len(b.Topics) != 2 || b.Topics[0] != (protocol.DelayTopic{Topic: "T", Pending: 2}) {
		t.Errorf("state %+v", b)
	}
	timed, levels := int64(0), int64(0)
	for _, bar := range state.Bars {
		timed, levels = timed+bar.Timed, levels+bar.Levels
	}
	last := state.Bars[len(state.Bars)-1]
	if timed != 3 || levels != 1 || last.Timed != 1 || len(state.Bars) != 26 {
		t.Errorf("%d timed, %d of levels, %+v", timed, levels, state.Bars)
	}
	plot := a.run(0, "delay histogram --by day --bars 7")
	for _, s := range []string{"overdue", "later", "█", "░", "busiest topics", "p50"} {
		if !strings.Contains(plot, s) {
			t.Errorf("the plot lacks %q:\n%s", s, plot)
		}
	}

	var list []pendingMessage
	for line, want := range map[string]string{
		"delay list":                     "2h 2h 3h 100h",
		"delay list --timed":             "2h 3h 100h",
		"delay list --timed --max 1":     "2h",
		"delay list --level 18":          "2h",
		"delay list --topic Other":       "100h",
		"delay list --since 150m":        "3h 100h",
		"delay list --until 150m":        "2h 2h",
		"delay find T a":                 "2h",
		"delay find Other " + three:      "100h",
		"delay list --timed --until 10m": "",
	} {
		a.json(&list, line)
		var got []string
		for _, p := range list {
			got = append(got, strings.TrimSuffix(time.Until(time.UnixMilli(p.Due)).Round(time.Hour).String(), "0m0s"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
	if out := a.run(0, "delay show T "+one); !strings.Contains(out, "SUNDIAL_DUE") || !strings.Contains(out, "due ") {
		t.Errorf("show: %s", out)
	}
	var counts []pendingCount
	if a.json(&counts, "delay count --since 1h --until 150m"); counts[0].Timed != 1 || counts[0].Levels != 1 {
		t.Errorf("count in a window: %+v", counts)
	}

	a.run(exitRefused, "delay cancel T "+one) // nobody is there to be asked
	if out := a.run(0, "delay cancel T "+one+" --dry-run"); !strings.Contains(out, one) {
		t.Errorf("dry run: %s", out)
	}
	a.run(0, "delay cancel T "+one+" --yes")
	if out := a.run(exitRefused, "delay cancel T "+one+" --yes"); !strings.Contains(out, "already done") {
		t.Errorf("cancelled twice: %s", out)
	}
	a.run(exitNotFound, "delay cancel T nobody --yes")
	a.run(exitNotFound, "delay find T a")
	a.run(exitNotFound, "delay show T a")
	a.run(exitNotFound, "delay cancel T --key a --yes")
	a.run(2, "delay cancel T --yes")
	a.run(2, "delay reschedule T "+two+" --to yesterday")
	a.run(2, "delay histogram --by week")
	a.run(2, "delay list --since 2h --until 1h")

	a.run(0, "delay reschedule T "+two+" --to 50h")
	if a.json(&list, "delay find T b"); len(list) != 1 || time.Until(time.UnixMilli(list[0].Due)) < 49*time.Hour {
		t.Errorf("moved: %+v", list)
	}
	a.run(0, fmt.Sprintf("delay fire T --seq %d", list[0].Seq))
	if out := a.run(0, "message find --topic T --key b"); !strings.Contains(out, `"b"`) {
		t.Errorf("fired: %s", out)
	}
	if a.json(&counts, "delay count"); counts[0].Timed != 1 {
		t.Errorf("left: %+v", counts)
	}
	if out := a.run(0, "delay aside"); !strings.Contains(out, "none") {
		t.Errorf("aside: %s", out)
	}
}
