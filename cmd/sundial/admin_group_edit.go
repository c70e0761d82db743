package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// groupWish is what the command line says a group should be.
type groupWish struct{ mq.GroupConfig }

func (w *groupWish) register(cmd *cobra.Command) {
	w.GroupConfig = *mq.NewGroupConfig("")
	f := cmd.Flags()
	f.Int32Var(&w.RetryMaxTimes, "retries", w.RetryMaxTimes, "how often a failed message is retried before it is a dead letter")
	f.Int32Var(&w.RetryQueues, "retry-queues", w.RetryQueues, "queues of the retry topic; 0 gives failed messages up")
	f.BoolVar(&w.ConsumeEnable, "consume", w.ConsumeEnable, "the group may consume")
	f.BoolVar(&w.ConsumeBroadcastEnable, "broadcast", w.ConsumeBroadcastEnable, "the group may consume as broadcast")
	f.BoolVar(&w.ConsumeFromMinEnable, "from-min", w.ConsumeFromMinEnable, "the group may begin at the first message")
	f.BoolVar(&w.ConsumeMessageOrderly, "order", w.ConsumeMessageOrderly, "the group consumes in order")
	f.Int32Var(&w.ConsumeTimeoutMinute, "timeout-minutes", w.ConsumeTimeoutMinute, "how long a consumer may take for a message")
	f.BoolVar(&w.NotifyIDsChanged, "notify", w.NotifyIDsChanged, "members are told at once when others come and go")
}

// apply changes g where the command line says something.
func (w *groupWish) apply(cmd *cobra.Command, g *mq.GroupConfig) {
	said := cmd.Flags().Changed
	for _, set := range []struct {
		flag string
		do   func()
	}{
		{"retries", func() { g.RetryMaxTimes = w.RetryMaxTimes }},
		{"retry-queues", func() { g.RetryQueues = w.RetryQueues }},
		{"consume", func() { g.ConsumeEnable = w.ConsumeEnable }},
		{"broadcast", func() { g.ConsumeBroadcastEnable = w.ConsumeBroadcastEnable }},
		{"from-min", func() { g.ConsumeFromMinEnable = w.ConsumeFromMinEnable }},
		{"order", func() { g.ConsumeMessageOrderly = w.ConsumeMessageOrderly }},
		{"timeout-minutes", func() { g.ConsumeTimeoutMinute = w.ConsumeTimeoutMinute }},
		{"notify", func() { g.NotifyIDsChanged = w.NotifyIDsChanged }},
	} {
		if said(set.flag) {
			set.do()
		}
	}
}

// groupStep is the step that makes a group so on one broker.
func (a *admin) groupStep(m member, g *mq.GroupConfig, verb string) step {
	what := fmt.Sprintf("group %s: %s", g.Name, groupText(g))
	return step{Where: m.Name, What: verb + " " + what, do: func(ctx context.Context) (string, error) {
		_, err := a.ask(ctx, m.Addr, protocol.UpdateAndCreateSubscriptionGroup, nil, protocol.EncodeBody(g))
		return what, err
	}}
}

func groupCreateCommand(a *admin) *cobra.Command {
	var w groupWish
	cmd := &cobra.Command{
		Use:   "create GROUP",
		Short: "Make a consumer group on all brokers (or --broker)",
		Long: `Makes a consumer group. On a broker that has one of that name nothing is changed: when
it is as asked for that is fine, otherwise the command is refused (group update changes
it).`,
		Example: `  sundial admin group create billing --retries 3`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			g := mq.NewGroupConfig(args[0])
			w.apply(cmd, g)
			var steps []step
			for _, m := range masters {
				t, err := a.groupTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				s := a.groupStep(m, g, "make")
				if is := t.Groups[g.Name]; is != nil {
					asked := *is
					if w.apply(cmd, &asked); groupText(&asked) != groupText(is) {
						return refused("%s has group %s already, otherwise than asked for: %s (group update changes it)", m.Name, g.Name, groupText(is))
					}
					s.What = "nothing: it has group " + g.Name + ", as asked for"
					s.do = func(context.Context) (string, error) { return "had group " + g.Name + " already, as asked for", nil }
				}
				steps = append(steps, s)
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	w.register(cmd)
	return a.changes(cmd)
}

func groupUpdateCommand(a *admin) *cobra.Command {
	var w groupWish
	cmd := &cobra.Command{
		Use:   "update GROUP",
		Short: "Change a consumer group: what is not said stays as it is",
		Example: `  sundial admin group update billing --retries 5
  sundial admin group update billing --consume=false`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			var steps []step
			for _, m := range masters {
				t, err := a.groupTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				if is := t.Groups[args[0]]; is != nil {
					g := *is
					w.apply(cmd, &g)
					s := a.groupStep(m, &g, "change to")
					if a.dryRun {
						s.What = "change from " + groupText(is) + " to " + groupText(&g)
					}
					steps = append(steps, s)
				}
			}
			if len(steps) == 0 {
				return notFound("no broker has group %s%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	w.register(cmd)
	return a.changes(cmd)
}

func groupDeleteCommand(a *admin) *cobra.Command {
	var keep, dead bool
	cmd := &cobra.Command{
		Use:   "delete GROUP",
		Short: "Delete a consumer group with its progress and its retry topic",
		Example: `  sundial admin group delete billing --dry-run
  sundial admin group delete billing --yes --dead-letters`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			topics := []string{mq.RetryTopic(args[0])}
			if dead {
				topics = append(topics, mq.DLQTopic(args[0]))
			}
			var steps, after []step
			for _, m := range masters {
				s, more, err := a.groupDeletion(cmd.Context(), m, args[0], keep, topics)
				if err != nil {
					return err
				}
				steps, after = append(steps, s...), append(after, more...)
			}
			if len(steps) == 0 {
				return notFound("no broker has group %s%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			return a.carryOut(cmd, fmt.Sprintf("Delete group %s?", args[0]), append(steps, after...))
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-offsets", false, "keep the group's progress and its retry topic")
	cmd.Flags().BoolVar(&dead, "dead-letters", false, "delete its dead letters too")
	return a.destroys(cmd)
}

// groupDeletion are the steps that delete a group on one broker, and after that its
// topics there; none when the broker does not have it.
func (a *admin) groupDeletion(ctx context.Context, m member, group string, keep bool, topics []string) (steps, after []step, err error) {
	t, err := a.groupTable(ctx, m)
	if err != nil || t.Groups[group] == nil {
		return nil, nil, err
	}
	conns, err := a.connections(ctx, m, group)
	if err != nil {
		return nil, nil, err
	}
	what := "delete group " + group
	if !keep {
		queues, err := a.progress(ctx, m, group, "")
		if err != nil {
			return nil, nil, err
		}
		what += fmt.Sprintf(" and its progress in %d queues", len(queues))
	}
	if n := len(conns.Connections); n > 0 {
		what += fmt.Sprintf("; %d members are online", n)
	}
	steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
		_, err := a.ask(ctx, m.Addr, protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: group, CleanOffset: !keep}, nil)
		return fmt.Sprintf("group %s is deleted", group), err
	}})
	if keep {
		return steps, nil, nil
	}
	has, err := a.topicTable(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	for _, topic := range topics {
		if has.Topics[topic] != nil {
			after = append(after, a.deletions(ctx, topic, []member{m})...)
		}
	}
	return steps, after, nil
}

func groupModeCommand(a *admin) *cobra.Command {
	var shares int32
	cmd := &cobra.Command{
		Use:               "mode GROUP TOPIC pull|pop",
		Short:             "Say how clients that have the broker share out the queues of a topic are to consume it",
		Args:              cobra.ExactArgs(3),
		ValidArgsFunction: a.completion("group", "topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode := strings.ToUpper(args[2])
			if mode != "PULL" && mode != "POP" {
				return &usageError{fmt.Errorf("the mode is %q, it must be pull or pop", args[2])}
			}
			masters, err := a.mastersOf(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			body := protocol.EncodeBody(&protocol.RequestMode{Group: args[0], Topic: args[1], Mode: mode, Shares: shares})
			what := fmt.Sprintf("group %s consumes topic %s by %s", args[0], args[1], mode)
			var steps []step
			for _, m := range masters {
				steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
					_, err := a.ask(ctx, m.Addr, protocol.SetMessageRequestMode, nil, body)
					return what, err
				}})
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	cmd.Flags().Int32Var(&shares, "share-queues", 0, "with pop: by how many members a queue is shared; 0 is all")
	return a.changes(cmd)
}
