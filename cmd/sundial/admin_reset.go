package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// reset is one run of "group reset" or "group skip".
type reset struct {
	*admin
	to    string
	queue int32
}

// resetQueue is where a group was in a queue and where it goes on.
type resetQueue struct {
	Broker string         `json:"broker"`
	Queue  mq.QueueID     `json:"queue"`
	Before mq.QueueOffset `json:"before"` // below 0: not known
	After  mq.QueueOffset `json:"after"`
	Lag    mq.QueueOffset `json:"lag"` // afterwards
}

// resetReport is the JSON document of a reset.
type resetReport struct {
	DryRun bool         `json:"dryRun"` // nothing was changed
	Queues []resetQueue `json:"queues"`
}

func groupResetCommand(a *admin) *cobra.Command {
	r := reset{admin: a, queue: -1}
	cmd := &cobra.Command{
		Use:   "reset GROUP TOPIC --to WHERE",
		Short: "Have a group go on elsewhere, whether its consumers run or not",
		Example: `  sundial admin group reset billing Orders --to earliest --dry-run
  sundial admin group reset billing Orders --to 2025-01-31T12:00:00+01:00
  sundial admin group reset billing Orders --to -2h --yes
  sundial admin group reset billing Orders --to offset:4711 --queue 3`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("group", "topic"),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0], args[1]) },
	}
	cmd.Flags().StringVar(&r.to, "to", "", "earliest, latest, a time (RFC 3339, ms since 1970, or how long ago, such as -15m), or offset:N with --queue")
	cmd.Flags().Int32VarP(&r.queue, "queue", "q", -1, "this queue only")
	_ = cmd.MarkFlagRequired("to") // fails only for a flag that is not there
	return describe(a.destroys(cmd), resetReport{})
}

func groupSkipCommand(a *admin) *cobra.Command {
	r := reset{admin: a, queue: -1, to: "latest"}
	cmd := &cobra.Command{
		Use:               "skip GROUP TOPIC",
		Short:             "Have a group leave out everything it has not consumed yet",
		Example:           `  sundial admin group skip billing Orders --dry-run`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("group", "topic"),
		RunE:              func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0], args[1]) },
	}
	cmd.Flags().Int32VarP(&r.queue, "queue", "q", -1, "this queue only")
	return describe(a.destroys(cmd), resetReport{})
}

func (r *reset) run(cmd *cobra.Command, group, topic string) error {
	ctx := cmd.Context()
	force := true
	h := &protocol.ResetOffsetHeader{Group: group, Topic: topic, Force: &force}
	if r.queue >= 0 {
		h.QueueID = &r.queue
	}
	if err := parseTarget(r.to, h); err != nil {
		return err
	}
	masters, err := r.mastersOf(ctx, topic)
	if err != nil {
		return err
	}
	report := resetReport{DryRun: r.dryRun, Queues: []resetQueue{}}
	var steps []step
	for _, m := range masters {
		t, err := r.groupTable(ctx, m)
		if err != nil {
			return err
		}
		if t.Groups[group] == nil {
			return notFound("%s has no group %s%s", m.Name, group, r.meant(ctx, "group", group))
		}
		queues, err := r.plan(ctx, m, h)
		if err != nil {
			return err
		}
		for _, q := range queues {
			steps = append(steps, step{Where: m.Name, What: fmt.Sprintf("queue %d goes from %v to %d", q.Queue, cellOffset(q.Before), q.After)})
		}
		report.Queues = append(report.Queues, queues...)
	}
	if r.dryRun {
		return r.tell(nil, report)
	}
	if err := r.agreed(cmd, fmt.Sprintf("Have group %s go on there?", group), steps); err != nil {
		return err
	}
	err = each(masters, func(m member) error { return r.do(ctx, m, h, report.Queues) })
	return r.tell(err, report)
}

// plan is what a reset would do to the queues of one broker.
func (r *reset) plan(ctx context.Context, m member, h *protocol.ResetOffsetHeader) ([]resetQueue, error) {
	ranges, err := r.ranges(ctx, m, h.Topic, r.queue)
	if err != nil {
		return nil, err
	}
	now, err := r.progress(ctx, m, h.Group, h.Topic)
	if err != nil {
		return nil, err
	}
	var all []resetQueue
	for _, q := range ranges {
		n := resetQueue{Broker: m.Name, Queue: q.id, Before: -1}
		for _, p := range now {
			if p.Queue == q.id {
				n.Before = p.Committed
			}
		}
		switch {
		case h.Offset != nil:
			if n.After = mq.QueueOffset(*h.Offset); n.After < q.min || n.After > q.max {
				return nil, notFound("queue %d of %s on %s has no offset %d, it has %d up to %d", q.id, h.Topic, m.Name, n.After, q.min, q.max)
			}
		case h.Timestamp < 0:
			n.After = q.max
		case h.Timestamp == 0:
			n.After = q.min
		default:
			var at protocol.OffsetResponse
			if err := r.askFields(ctx, m.Addr, protocol.SearchOffsetByTimestamp, &protocol.SearchOffsetHeader{Topic: h.Topic, QueueID: int32(q.id), Timestamp: h.Timestamp}, &at); err != nil {
				return nil, err
			}
			n.After = mq.QueueOffset(at.Offset)
		}
		n.Lag = max(0, q.max-n.After)
		all = append(all, n)
	}
	return all, nil
}

// do resets on one broker and notes where the group really goes on. A broker that
// leaves resets to clients that are not there is told the new progress itself.
func (r *reset) do(ctx context.Context, m member, h *protocol.ResetOffsetHeader, queues []resetQueue) error {
	var body protocol.ResetOffsetBody
	err := r.askBody(ctx, m.Addr, protocol.InvokeBrokerToResetOffset, h, &body)
	if errors.Is(err, mq.ErrConsumerOffline) {
		for _, q := range queues {
			if q.Broker != m.Name {
				continue
			}
			if _, err := r.ask(ctx, m.Addr, protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{
				ConsumerGroup: h.Group, Topic: h.Topic, QueueID: int32(q.Queue), CommitOffset: int64(q.After),
			}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	for k, off := range body.Offsets {
		for i := range queues {
			if q := &queues[i]; q.Broker == m.Name && q.Queue == k.QueueID {
				q.Lag, q.After = max(0, q.Lag+q.After-off), off
			}
		}
	}
	return nil
}

func (r *reset) tell(err error, report resetReport) error {
	var rows []table.Row
	for _, q := range report.Queues {
		rows = append(rows, table.Row{q.Broker, q.Queue, cellOffset(q.Before), q.After, q.Lag})
	}
	after := "goes on at"
	if report.DryRun {
		after = "would go on at"
	}
	return r.showUnless(err, report, table.Row{"broker", "queue", "was at", after, "lag then"}, rows)
}

func parseTarget(to string, h *protocol.ResetOffsetHeader) error {
	if text, ok := strings.CutPrefix(to, "offset:"); ok {
		var off int64
		if n, err := fmt.Sscanf(text, "%d", &off); n != 1 || err != nil || off < 0 {
			return &usageError{fmt.Errorf("--to is %q, offset: is followed by a number", to)}
		}
		if h.QueueID == nil {
			return &usageError{errors.New("--to offset:N is of one queue: say which with --queue")}
		}
		h.Offset = &off
		return nil
	}
	switch to {
	case "earliest":
		h.Timestamp = 0
		return nil
	case "latest":
		h.Timestamp = -1
		return nil
	}
	ms, err := parseTime("--to", to, time.Now())
	if err != nil {
		return &usageError{fmt.Errorf("%w; or earliest, latest, offset:N", err)}
	}
	h.Timestamp = ms
	return nil
}

func groupCloneCommand(a *admin) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "clone FROM TO",
		Short: "Give a group the progress of another, in one topic or in all",
		Long: `Gives group TO the progress that group FROM has. Members of TO should be stopped: what
they commit afterwards counts.`,
		Example:           `  sundial admin group clone billing billing2 --topic Orders --dry-run`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("group", "group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			masters, err := a.masters(ctx)
			if err != nil {
				return err
			}
			var steps []step
			for _, m := range masters {
				from, err := a.progress(ctx, m, args[0], topic)
				if err != nil {
					return err
				}
				if len(from) == 0 {
					continue
				}
				conns, err := a.connections(ctx, m, args[1])
				if err != nil {
					return err
				}
				what := fmt.Sprintf("progress of %s in %d queues of %s becomes that of %s", args[0], len(from), strings.Join(topicsOf(from), ", "), args[1])
				if n := len(conns.Connections); n > 0 {
					what += fmt.Sprintf(", of which %d members are online", n)
				}
				steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
					_, err := a.ask(ctx, m.Addr, protocol.CloneGroupOffset, &protocol.CloneOffsetHeader{From: args[0], To: args[1], Topic: topic, Offline: true}, nil)
					return what, err
				}})
			}
			if len(steps) == 0 {
				return notFound("group %s has no progress there%s", args[0], a.meant(ctx, "group", args[0]))
			}
			return a.carryOut(cmd, fmt.Sprintf("Replace the progress of group %s?", args[1]), steps)
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "in this topic only")
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
	return a.destroys(cmd)
}

func topicsOf(all []queueProgress) []string {
	seen := map[string]bool{}
	for _, q := range all {
		seen[q.Topic] = true
	}
	return slices.Sorted(maps.Keys(seen))
}
