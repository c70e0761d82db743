package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func offsetCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "offset", Short: "Show and reset the progress of consumer groups"}
	cmd.AddCommand(offsetShowCommand(a), offsetResetCommand(a))
	return cmd
}

func offsetShowCommand(a *admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show GROUP [TOPIC]",
		Short: "Show how far a group is",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			topic := ""
			if len(args) == 2 {
				topic = args[1]
			}
			doc := []queueProgress{}
			var rows []table.Row
			var lag mq.QueueOffset
			err = each(masters, func(m member) error {
				queues, err := a.progress(cmd.Context(), m, args[0], topic)
				doc = append(doc, queues...)
				for _, q := range queues {
					lag += q.Lag
					rows = append(rows, table.Row{m.Name, q.Topic, q.Queue, q.End, cellOffset(q.Committed), q.Lag, stamp(q.LastTime)})
				}
				return err
			})
			if len(rows) == 0 && err == nil && !a.json {
				a.done("group %s has consumed nothing yet", args[0])
				return nil
			}
			err = a.showUnless(err, doc, table.Row{"broker", "topic", "queue", "end", "committed", "lag", "last consumed"}, rows)
			if len(rows) > 0 {
				a.done("lag %d", lag)
			}
			return err
		},
	}
}

func offsetResetCommand(a *admin) *cobra.Command {
	var to string
	var queue int32
	cmd := &cobra.Command{
		Use:   "reset GROUP TOPIC",
		Short: "Have a group go on elsewhere, whether its consumers run or not",
		Example: `  sundial admin offset reset billing Orders --to earliest
  sundial admin offset reset billing Orders --to 2025-01-31T12:00:00+01:00
  sundial admin offset reset billing Orders --to offset:4711 --queue 3`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			h := &protocol.ResetOffsetHeader{Group: args[0], Topic: args[1]}
			force := true
			h.Force = &force
			if queue >= 0 {
				h.QueueID = &queue
			}
			if err := parseTarget(to, h); err != nil {
				return err
			}
			masters, err := a.mastersOf(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			type entry struct {
				Broker string         `json:"broker"`
				Queue  mq.QueueID     `json:"queue"`
				Offset mq.QueueOffset `json:"offset"`
			}
			doc := []entry{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				var body protocol.ResetOffsetBody
				err := a.askBody(cmd.Context(), m.Addr, protocol.InvokeBrokerToResetOffset, h, &body)
				if errors.Is(err, mq.ErrNoGroup) {
					return notFound("%s has no group %s", m.Name, args[0])
				}
				if err != nil {
					return err
				}
				for _, k := range slices.SortedFunc(maps.Keys(body.Offsets), protocol.MessageQueue.Compare) {
					doc = append(doc, entry{m.Name, k.QueueID, body.Offsets[k]})
					rows = append(rows, table.Row{m.Name, k.QueueID, body.Offsets[k]})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"broker", "queue", "goes on at"}, rows)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "earliest, latest, a time (RFC 3339 or ms since 1970), or offset:N with --queue")
	cmd.Flags().Int32Var(&queue, "queue", -1, "this queue only")
	_ = cmd.MarkFlagRequired("to") // fails only for a flag that is not there
	return cmd
}

func parseTarget(to string, h *protocol.ResetOffsetHeader) error {
	var off int64
	if n, err := fmt.Sscanf(to, "offset:%d", &off); n == 1 && err == nil {
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
	if ms, err := strconv.ParseInt(to, 10, 64); err == nil {
		h.Timestamp = ms
		return nil
	}
	t, err := time.Parse(time.RFC3339, to)
	if err != nil {
		return &usageError{fmt.Errorf("--to is %q, it must be earliest, latest, a time such as %s or in ms, or offset:N", to, time.Now().Format(time.RFC3339))}
	}
	h.Timestamp = t.UnixMilli()
	return nil
}
