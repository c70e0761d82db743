package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// finding is what one check of the cluster's health said.
type finding struct {
	Level string `json:"level"` // ok, warning, problem
	Check string `json:"check"`
	Where string `json:"where"`
	Text  string `json:"text"`
}

// Levels of findings.
const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelProblem = "problem"
)

// health is one run of "cluster health".
type health struct {
	*admin
	lag      int64 // from which on a group is behind
	disk     float64
	findings []finding
}

func clusterHealthCommand(a *admin) *cobra.Command {
	h := health{admin: a}
	var all bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Look a cluster over and say what is wrong",
		Long: `Checks that every name server answers and that they agree, that every broker answers,
takes and gives messages, has room on its disk and keeps up with its work; that groups
keep up, that their members agree on what they subscribe to, that nobody waits for a
message that nobody may read, and that there are no dead letters nobody looked at.
Exit code 0 when there is no problem (warnings may be), otherwise 1.`,
		Example: `  sundial admin cluster health
  sundial admin cluster health --all --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := h.run(cmd.Context()); err != nil {
				return err
			}
			return h.tell(all)
		},
	}
	cmd.Flags().Int64Var(&h.lag, "lag", 10_000, "a group that is this many messages behind is warned of")
	cmd.Flags().Float64Var(&h.disk, "disk", 0.75, "a disk this full is warned of; from 0.9 on it is a problem")
	cmd.Flags().BoolVar(&all, "all", false, "also show what is well")
	return describe(cmd, []finding{})
}

func (h *health) say(level, check, where, format string, args ...any) {
	h.findings = append(h.findings, finding{level, check, where, fmt.Sprintf(format, args...)})
}

// tell shows the findings, the worst first.
func (h *health) tell(all bool) error {
	order := []string{levelProblem, levelWarning, levelOK}
	slices.SortStableFunc(h.findings, func(x, y finding) int { return slices.Index(order, x.Level) - slices.Index(order, y.Level) })
	counts := map[string]int{}
	var rows []table.Row
	for _, f := range h.findings {
		if counts[f.Level]++; all || f.Level != levelOK {
			rows = append(rows, table.Row{f.Level, f.Check, f.Where, folded(f.Text)})
		}
	}
	var err error
	if h.json {
		err = h.document(h.findings)
	} else if len(rows) > 0 {
		err = h.show(nil, table.Row{"", "check", "where", "finding"}, rows)
	}
	h.done("%d problems, %d warnings, %d checks were well", counts[levelProblem], counts[levelWarning], counts[levelOK])
	if err == nil && counts[levelProblem] > 0 {
		return exitCode(1)
	}
	return err
}

func (h *health) run(ctx context.Context) error {
	if err := h.nameCheck(ctx); err != nil {
		return err
	}
	all, err := h.members(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		h.say(levelProblem, "brokers", h.namesrv, "no broker is registered")
	}
	masters := map[string]bool{}
	for _, m := range all {
		masters[m.Name] = masters[m.Name] || m.ID == 0
	}
	for _, m := range all {
		if !masters[m.Name] {
			h.say(levelProblem, "master", m.Name, "has no master: only id %d at %s is registered, nothing can be sent there", m.ID, m.Addr)
		}
		if !h.brokerCheck(ctx, m) || m.ID != 0 {
			continue
		}
		h.consumers(ctx, m)
		h.deadLetters(ctx, m)
	}
	return nil
}

// nameCheck checks that the name servers answer and know the same brokers.
func (h *health) nameCheck(ctx context.Context) error {
	addrs, err := h.nameServers()
	if err != nil {
		return err
	}
	known := map[string]string{}
	var failed []error
	for _, addr := range addrs {
		var c protocol.Cluster
		if err := h.askBody(ctx, addr, protocol.GetBrokerClusterInfo, nil, &c); err != nil {
			failed = append(failed, err)
			h.say(levelProblem, "name server", addr, "does not answer: %v", err)
			continue
		}
		var parts []string
		for name, b := range c.Brokers {
			for id, at := range b.Addrs {
				parts = append(parts, fmt.Sprintf("%s %d at %s", name, id, at))
			}
		}
		slices.Sort(parts)
		known[addr] = strings.Join(parts, ", ")
		h.say(levelOK, "name server", addr, "answers and knows %d brokers", len(parts))
	}
	if len(failed) == len(addrs) {
		return h.unreachable(failed)
	}
	for _, addr := range sortedKeys(known) {
		if first := sortedKeys(known)[0]; known[addr] != known[first] {
			h.say(levelProblem, "name servers agree", addr, "it knows %s; %s knows %s", orNone(known[addr]), first, orNone(known[first]))
		}
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "no broker"
	}
	return s
}

// brokerCheck checks one broker, and reports whether it answers.
func (h *health) brokerCheck(ctx context.Context, m member) bool {
	var info protocol.KVTable
	if err := h.askBody(ctx, m.Addr, protocol.GetBrokerRuntimeInfo, nil, &info); err != nil {
		h.say(levelProblem, "broker", m.Name, "is registered and does not answer: %v", err)
		return false
	}
	t := info.Table
	h.say(levelOK, "broker", m.Name, "answers at %s: %s", m.Addr, strings.TrimSpace(t["product"]+" "+t["brokerVersionDesc"]))
	if t["brokerActive"] == "false" {
		h.say(levelProblem, "broker", m.Name, "says that it is not active")
	}
	for _, key := range sortedKeys(t) {
		if ratio, err := strconv.ParseFloat(t[key], 64); strings.Contains(key, "DiskRatio") && err == nil {
			h.say(above(ratio, h.disk, 0.9), "disk", m.Name, "%s is %.0f %% full", strings.TrimSuffix(key, "DiskRatio"), 100*ratio)
		}
	}
	for _, c := range []struct {
		key              string
		warning, problem float64
		text             string
	}{
		{"dispatchBehindBytes", 16 << 20, 1 << 30, "bytes of the log are not in the queues yet"},
		{"pageCacheLockTimeMills", 300, 1000, "ms an append has been going on"},
		{"sendThreadPoolQueueHeadWaitTimeMills", 200, 1000, "ms the next send has been waiting"},
		{"pullThreadPoolQueueHeadWaitTimeMills", 500, 5000, "ms the next pull has been waiting"},
		{"putMessageFailedTimes", 1, 1 << 62, "sends have failed since the start"},
		{"delayParked", 1, 1 << 62, "destinations take no delayed messages"},
		{"delaySetAside", 1, 1 << 62, "delayed messages were given up"},
	} {
		if n, err := strconv.ParseFloat(t[c.key], 64); err == nil {
			h.say(above(n, c.warning, c.problem), "broker", m.Name, "%s: %.0f %s", c.key, n, c.text)
		}
	}
	if config, err := h.brokerConfig(ctx, m); err != nil {
		h.say(levelWarning, "settings", m.Name, "cannot be read: %v", err)
	} else if p, err := strconv.Atoi(config["brokerPermission"]); err == nil && m.ID == 0 {
		level := levelOK
		if perm := mq.Perm(p); !perm.Readable() || !perm.Writable() {
			level = levelWarning
		}
		h.say(level, "permission", m.Name, "clients may: %s (brokerPermission)", permText(mq.Perm(p)))
	}
	return true
}

// above is how bad a number is.
func above(n, warning, problem float64) string {
	switch {
	case n >= problem:
		return levelProblem
	case n >= warning:
		return levelWarning
	}
	return levelOK
}

// consumers checks the groups of one broker.
func (h *health) consumers(ctx context.Context, m member) {
	t, err := h.groupTable(ctx, m)
	if err != nil {
		h.say(levelProblem, "groups", m.Name, "cannot be listed: %v", err)
		return
	}
	behind := 0
	for _, name := range sortedKeys(t.Groups) {
		if mq.SystemGroup(name) {
			continue
		}
		e, err := h.groupEntry(ctx, m, t.Groups[name])
		if err != nil {
			h.say(levelWarning, "group", m.Name, "%s: %v", name, err)
			continue
		}
		if int64(e.Lag) >= h.lag {
			behind++
			h.say(levelWarning, "lag", m.Name, "group %s is %d messages behind, %d members are online", name, e.Lag, e.Members)
		}
		if e.Members > 0 && !e.ConsumeEnable {
			h.say(levelWarning, "group", m.Name, "group %s has %d members and may not consume", name, e.Members)
		}
		if e.Members > 1 {
			h.agreement(ctx, m, name)
		}
	}
	if behind == 0 {
		h.say(levelOK, "lag", m.Name, "no group is %d messages behind", h.lag)
	}
}

// agreement checks that all members of a group subscribe to the same: otherwise
// each gets queues whose messages it does not want, and they are passed over.
func (h *health) agreement(ctx context.Context, m member, group string) {
	conns, err := h.connections(ctx, m, group)
	if err != nil {
		return
	}
	said := map[string]string{}
	for _, c := range conns.Connections {
		var info struct {
			Subscriptions protocol.Set[protocol.Subscription] `json:"subscriptionSet"`
		}
		if err := h.askBody(ctx, m.Addr, protocol.GetConsumerRunningInfo, &protocol.RunningInfoHeader{ConsumerGroup: group, ClientID: c.ClientID}, &info); err != nil {
			h.say(levelWarning, "member", m.Name, "%s of group %s does not say what it does: %v", c.ClientID, group, err)
			continue
		}
		var parts []string
		for _, s := range info.Subscriptions {
			if !mq.IsRetryTopic(s.Topic) {
				parts = append(parts, s.Topic+" "+s.Expression)
			}
		}
		slices.Sort(parts)
		said[c.ClientID] = strings.Join(parts, ", ")
	}
	ids := sortedKeys(said)
	for _, id := range ids {
		if said[id] != said[ids[0]] {
			h.say(levelProblem, "subscriptions", m.Name, "members of group %s disagree: %s wants %s, %s wants %s; messages are passed over", group, ids[0], said[ids[0]], id, said[id])
			return
		}
	}
}

func (h *health) deadLetters(ctx context.Context, m member) {
	all, err := h.deadQueues(ctx, m, func(string) bool { return true }, false)
	if err != nil {
		h.say(levelWarning, "dead letters", m.Name, "cannot be counted: %v", err)
		return
	}
	for _, q := range all {
		h.say(levelWarning, "dead letters", m.Name, "group %s has %d, the newest since %s (dlq show %s)", q.Group, q.Letters, stamp(q.Newest), q.Group)
	}
	if len(all) == 0 {
		h.say(levelOK, "dead letters", m.Name, "there are none")
	}
}
