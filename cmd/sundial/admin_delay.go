package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func delayCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delay",
		Short: "Show what waits in each delay level; its commands look after timed messages, too",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []levelState{}
			var rows []table.Row
			var sum mq.QueueOffset
			err = each(masters, func(m member) error {
				levels, err := a.levels(cmd.Context(), m)
				doc = append(doc, levels...)
				for _, l := range levels {
					sum += l.Pending
					rows = append(rows, table.Row{m.Name, l.Level, l.Delay, l.Pending, stamp(l.NextDue)})
				}
				return err
			})
			err = a.showUnless(err, doc, table.Row{"broker", "level", "delay", "pending", "next due"}, rows)
			a.done("pending %d", sum)
			return err
		},
	}
	cmd.AddCommand(delayListCommand(a), delayShowCommand(a), delayFindCommand(a), delayCountCommand(a), delayHistogramCommand(a),
		delayCancelCommand(a), delayRescheduleCommand(a), delayFireCommand(a), delayAsideCommand(a))
	return describe(cmd, []levelState{})
}

// levelState is one delay level on one broker.
type levelState struct {
	Broker  string         `json:"broker"`
	Level   int            `json:"level"`
	Delay   string         `json:"delay"`
	Next    mq.QueueOffset `json:"nextOffset"` // the lowest that is not delivered
	Pending mq.QueueOffset `json:"pending"`    // from there to the end of the queue
	NextDue int64          `json:"nextDue"`    // ms; 0: nothing is pending
}

// levels asks how far the levels are delivered.
func (a *admin) levels(ctx context.Context, m member) ([]levelState, error) {
	var offsets protocol.DelayOffsets
	resp, err := a.ask(ctx, m.Addr, protocol.GetAllDelayOffset, nil, nil)
	if err != nil {
		return nil, err
	}
	if len(resp.Body) > 0 { // RocketMQ's says nothing before it has delivered something
		if err := protocol.DecodeBody(resp.Body, &offsets); err != nil {
			return nil, err
		}
	}
	var all []levelState
	for i, text := range a.levelTable(ctx, m) {
		l := levelState{Broker: m.Name, Level: i + 1, Delay: text, Next: offsets.Offsets[int32(i+1)]}
		q, err := a.schedule(ctx, m, i, l.Next, 1)
		if err != nil {
			return all, err
		}
		l.Pending = max(0, q.Max-max(l.Next, q.Min))
		if l.Pending > 0 && len(q.Entries) > 0 {
			l.NextDue = q.Entries[0].TagsCode
		}
		all = append(all, l)
	}
	return all, nil
}

// levelTable is the broker's table of delays, RocketMQ's when it does not tell.
func (a *admin) levelTable(ctx context.Context, m member) []string {
	text := delay.DefaultLevels
	if resp, err := a.ask(ctx, m.Addr, protocol.GetBrokerConfig, nil, nil); err == nil {
		for line := range strings.Lines(string(resp.Body)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "messageDelayLevel="); ok && v != "" {
				text = v
			}
		}
	}
	return strings.Fields(text)
}

// schedule looks into the queue of a level, counted from 0.
func (a *admin) schedule(ctx context.Context, m member, queue int, from mq.QueueOffset, count int32) (*protocol.ConsumeQueue, error) {
	var q protocol.ConsumeQueue
	resp, err := a.ask(ctx, m.Addr, protocol.QueryConsumeQueue, &protocol.QueryConsumeQueueHeader{
		Topic: mq.TopicSchedule, QueueID: int32(queue), Index: int64(from), Count: count,
	}, nil)
	if errors.Is(err, mq.ErrNotFound) {
		return &q, nil
	}
	if err == nil && len(resp.Body) > 0 { // RocketMQ's has none for a queue that was never used
		err = protocol.DecodeBody(resp.Body, &q)
	}
	return &q, err
}
