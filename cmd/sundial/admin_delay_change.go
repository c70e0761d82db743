package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// delayPick says which timed messages a command is about.
type delayPick struct {
	key string
	seq int64
}

func (p *delayPick) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.key, "key", "", "all pending messages for the topic with this `KEY`")
	cmd.Flags().Int64Var(&p.seq, "seq", -1, "the message with this sequence, on the broker of --broker")
}

// delaySteps makes the steps of a command that changes timed messages: those of the
// unique keys, of --key and of --seq.
func (a *admin) delaySteps(ctx context.Context, args []string, p *delayPick, code protocol.Code, due int64, what, done string) ([]step, error) {
	topic, uniques := args[0], args[1:]
	if len(uniques) == 0 && p.key == "" && p.seq < 0 {
		return nil, &usageError{errors.New("say which: a UNIQUE-KEY, --key or --seq")}
	}
	masters, err := a.masters(ctx)
	if err != nil {
		return nil, err
	}
	var steps []step
	add := func(m *pendingMessage) {
		seq := m.Seq
		h := protocol.DelayedHeader{Topic: topic, Unique: m.Unique, Seq: &seq, Due: due}
		steps = append(steps, step{
			Where: m.Broker, What: fmt.Sprintf("%s %s for topic %s, due %s", what, m.Unique, topic, stamp(m.Due)),
			do: a.changeDelayed([]member{{Name: m.Broker, Addr: m.addr}}, code, h, fmt.Sprintf("%s is %s", m.Unique, done)),
		})
	}
	if p.key != "" {
		found, err := a.findDelayed(ctx, masters, topic, p.key)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, notFound("no timed message for topic %s with key %s is pending%s", topic, p.key, a.meant(ctx, "topic", topic))
		}
		for i := range found {
			add(&found[i])
		}
	}
	for _, unique := range uniques {
		found, err := a.findDelayed(ctx, masters, topic, unique)
		if err != nil {
			return nil, err
		}
		n := len(steps)
		for i := range found {
			if found[i].Unique == unique {
				add(&found[i])
			}
		}
		if n == len(steps) { // the broker says why
			steps = append(steps, step{
				Where: brokersText(masters), What: fmt.Sprintf("%s %s for topic %s, which is not pending", what, unique, topic),
				do: a.changeDelayed(masters, code, protocol.DelayedHeader{Topic: topic, Unique: unique, Due: due}, fmt.Sprintf("%s is %s", unique, done)),
			})
		}
	}
	if p.seq >= 0 {
		if len(masters) != 1 {
			return nil, &usageError{fmt.Errorf("--seq is of one broker, there are %s: say which with --broker", brokersText(masters))}
		}
		steps = append(steps, step{
			Where: masters[0].Name, What: fmt.Sprintf("%s the message with sequence %d for topic %s", what, p.seq, topic),
			do: a.changeDelayed(masters, code, protocol.DelayedHeader{Topic: topic, Seq: new(mq.QueueOffset(p.seq)), Due: due}, fmt.Sprintf("sequence %d is %s", p.seq, done)),
		})
	}
	return steps, nil
}

func brokersText(all []member) string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// changeDelayed asks brokers in turn until one has the message.
func (a *admin) changeDelayed(masters []member, code protocol.Code, h protocol.DelayedHeader, done string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		var best error
		for _, m := range masters {
			_, err := a.ask(ctx, m.Addr, code, &h, nil)
			if err == nil {
				return done, nil
			}
			said, answered := errors.AsType[*protocol.ResponseError](err)
			missing := answered && strings.HasPrefix(said.Remark, "not found")
			if missing {
				err = notFound("%s", strings.TrimPrefix(said.Remark, "not found: "))
			}
			if best == nil || !missing {
				best = err
			}
			if !missing && !errors.Is(err, mq.ErrUnsupported) {
				break
			}
		}
		return "", best
	}
}

func delayCancelCommand(a *admin) *cobra.Command {
	var p delayPick
	cmd := &cobra.Command{
		Use:   "cancel TOPIC [UNIQUE-KEY...]",
		Short: "Take timed messages back: they are never delivered",
		Example: `  sundial admin delay cancel Orders AC1F0A2B00012A139D8F5C1E0000
  sundial admin delay cancel Orders --key order-4711 --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := a.delaySteps(cmd.Context(), args, &p, protocol.RecallDelayed, 0, "cancel", "cancelled")
			if err != nil {
				return err
			}
			return a.carryOut(cmd, fmt.Sprintf("Cancel timed messages for topic %s, %d of them?", args[0], len(steps)), steps)
		},
	}
	p.register(cmd)
	return a.destroys(cmd)
}

func delayRescheduleCommand(a *admin) *cobra.Command {
	var p delayPick
	var to string
	cmd := &cobra.Command{
		Use:   "reschedule TOPIC [UNIQUE-KEY...] --to TIME",
		Short: "Give timed messages another due time",
		Long: `Gives timed messages another due time, in one step: a message is never delivered
twice or lost by it. A time that has passed delivers it now.`,
		Example: `  sundial admin delay reschedule Orders AC1F0A2B00012A139D8F5C1E0000 --to 15m
  sundial admin delay reschedule Orders --key order-4711 --to 2027-01-01T09:00:00+01:00`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			due, err := parseDue("--to", to, time.Now())
			if err != nil {
				return err
			}
			if due <= 0 {
				return &usageError{fmt.Errorf("--to is %q, which is %d ms since 1970; it must be more", to, due)}
			}
			steps, err := a.delaySteps(cmd.Context(), args, &p, protocol.RescheduleDelayed, due, "to "+stamp(due)+" move", "due "+stamp(due))
			if err != nil {
				return err
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	p.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the new due `TIME`, or how long from now, such as 15m")
	_ = cmd.MarkFlagRequired("to") // fails only for a flag that is not there
	return a.changes(cmd)
}

func delayFireCommand(a *admin) *cobra.Command {
	var p delayPick
	cmd := &cobra.Command{
		Use:               "fire TOPIC [UNIQUE-KEY...]",
		Short:             "Deliver timed messages now",
		Example:           `  sundial admin delay fire Orders AC1F0A2B00012A139D8F5C1E0000`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := a.delaySteps(cmd.Context(), args, &p, protocol.FireDelayed, 0, "deliver now", "delivered")
			if err != nil {
				return err
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	p.register(cmd)
	return a.changes(cmd)
}
