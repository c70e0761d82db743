package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func topicCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Short: "List, show, make, change and delete topics"}
	cmd.AddCommand(topicListCommand(a), topicShowCommand(a), topicCreateCommand(a), topicDeleteCommand(a))
	return cmd
}

func topicListCommand(a *admin) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the topics",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			type entry struct {
				Broker string `json:"broker"`
				*mq.TopicConfig
			}
			doc := []entry{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				var t protocol.TopicTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetAllTopicConfig, &protocol.TopicPageHeader{}, &t); err != nil {
					return err
				}
				system, err := a.systemTopics(cmd, m)
				if err != nil {
					return err
				}
				for _, name := range sortedKeys(t.Topics) {
					c := t.Topics[name]
					if !all && (system[name] || mq.SystemTopic(name)) {
						continue
					}
					doc = append(doc, entry{m.Name, c})
					rows = append(rows, table.Row{name, m.Name, c.ReadQueues, c.WriteQueues, permText(c.Perm), attributesText(c.Attributes)})
				}
				return nil
			})
			slices.SortStableFunc(rows, func(x, y table.Row) int { return strings.Compare(x[0].(string), y[0].(string)) })
			return a.showUnless(err, doc, table.Row{"topic", "broker", "read queues", "write queues", "perm", "attributes"}, rows)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "with the broker's own topics")
	return cmd
}

func (a *admin) systemTopics(cmd *cobra.Command, m member) (map[string]bool, error) {
	var list protocol.TopicList
	if err := a.askBody(cmd.Context(), m.Addr, protocol.GetSystemTopicListFromBroker, nil, &list); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, n := range list.Topics {
		names[n] = true
	}
	return names, nil
}

func topicShowCommand(a *admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show TOPIC",
		Short: "Show the queues of a topic and what is in them",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			type queue struct {
				Broker     string         `json:"broker"`
				Queue      mq.QueueID     `json:"queue"`
				Min        mq.QueueOffset `json:"minOffset"`
				Max        mq.QueueOffset `json:"maxOffset"`
				Messages   mq.QueueOffset `json:"messages"`
				LastUpdate int64          `json:"lastUpdateTimestamp"`
			}
			doc := []queue{}
			var sum mq.QueueOffset
			var rows []table.Row
			err = each(masters, func(m member) error {
				var stats protocol.TopicStats
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: args[0]}, &stats); err != nil {
					return err
				}
				keys := slices.SortedFunc(maps.Keys(stats.Queues), protocol.MessageQueue.Compare)
				for _, k := range keys {
					q := stats.Queues[k]
					sum += q.Max - q.Min
					doc = append(doc, queue{m.Name, k.QueueID, q.Min, q.Max, q.Max - q.Min, q.LastUpdate})
					rows = append(rows, table.Row{m.Name, k.QueueID, q.Min, q.Max, q.Max - q.Min, stamp(q.LastUpdate)})
				}
				return nil
			})
			err = a.showUnless(err, doc, table.Row{"broker", "queue", "min offset", "max offset", "messages", "last"}, rows)
			if len(rows) > 0 {
				a.done("messages %d", sum)
			}
			return err
		},
	}
}

func topicCreateCommand(a *admin) *cobra.Command {
	var queues, read, write int32
	var perm string
	var order bool
	var attributes []string
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Make a topic on all brokers (or --broker), or change it",
		Example: `  sundial admin topic create Orders --queues 16
  sundial admin topic create Later --attr +message.type=DELAY`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parsePerm(perm)
			if err != nil {
				return err
			}
			if queues < 1 {
				return &usageError{fmt.Errorf("--queues is %d, a topic needs 1 or more (--read 0 or --write 0 empty one side)", queues)}
			}
			if !cmd.Flags().Changed("read") {
				read = queues
			}
			if !cmd.Flags().Changed("write") {
				write = queues
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			h := &protocol.CreateTopicHeader{
				Topic: args[0], DefaultTopic: mq.TopicAutoCreate, ReadQueues: read, WriteQueues: write, Perm: int32(p), Filter: "SINGLE_TAG",
				Order: order, Attributes: strings.Join(attributes, ","),
			}
			what := fmt.Sprintf("topic %s with %d queues to read and %d to write, %s", args[0], read, write, permText(p))
			var steps []step
			for _, m := range masters {
				steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
					_, err := a.ask(ctx, m.Addr, protocol.UpdateAndCreateTopic, h, nil)
					return what, err
				}})
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	cmd.Flags().Int32VarP(&queues, "queues", "q", 8, "number of queues")
	cmd.Flags().Int32Var(&read, "read", 0, "number of queues to read from (default --queues)")
	cmd.Flags().Int32Var(&write, "write", 0, "number of queues to write to (default --queues)")
	cmd.Flags().StringVar(&perm, "perm", "rw", "what clients may do: r, w or rw (or RocketMQ's 4, 2, 6)")
	cmd.Flags().BoolVar(&order, "order", false, "the topic is consumed in order")
	cmd.Flags().StringArrayVar(&attributes, "attr", nil, "change an attribute: `+KEY=VALUE` or -KEY; may be repeated")
	return a.changes(cmd)
}

func topicDeleteCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "delete TOPIC",
		Short:             "Delete a topic with its messages and all groups' progress in it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var steps []step
			for _, m := range masters {
				what := "delete topic " + args[0]
				if stats, err := a.topicStats(cmd.Context(), m, args[0]); err == nil {
					var sum mq.QueueOffset
					for _, q := range stats.Queues {
						sum += q.Max - q.Min
					}
					what += fmt.Sprintf(": %d queues, %d messages", len(stats.Queues), sum)
				}
				steps = append(steps, step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
					_, err := a.ask(ctx, m.Addr, protocol.DeleteTopicInBroker, &protocol.TopicHeader{Topic: args[0]}, nil)
					return fmt.Sprintf("topic %s is deleted", args[0]), err
				}})
			}
			if a.broker == "" { // else others may have it still
				forget, err := a.forgetSteps(args[0])
				if err != nil {
					return err
				}
				steps = append(steps, forget...)
			}
			return a.carryOut(cmd, fmt.Sprintf("Delete topic %s, its messages and all groups' progress in it?", args[0]), steps)
		},
	}
	return a.destroys(cmd)
}

// topicStats asks one broker for the queues of a topic.
func (a *admin) topicStats(ctx context.Context, m member, topic string) (*protocol.TopicStats, error) {
	var stats protocol.TopicStats
	err := a.askBody(ctx, m.Addr, protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: topic}, &stats)
	return &stats, err
}

func permText(p mq.Perm) string {
	s := ""
	for _, b := range []struct {
		bit  mq.Perm
		name string
	}{{mq.PermRead, "r"}, {mq.PermWrite, "w"}, {mq.PermInherit, "x"}, {mq.PermPriority, "p"}} {
		if p&b.bit != 0 {
			s += b.name
		}
	}
	if s == "" {
		return "-"
	}
	return s
}

func parsePerm(s string) (mq.Perm, error) {
	switch s {
	case "rw", "wr", "6":
		return mq.PermRead | mq.PermWrite, nil
	case "r", "4":
		return mq.PermRead, nil
	case "w", "2":
		return mq.PermWrite, nil
	}
	return 0, &usageError{fmt.Errorf("--perm is %q, it must be r, w or rw", s)}
}

func attributesText(m map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, " ")
}

func sortedKeys[V any, M ~map[string]V](m M) []string { return slices.Sorted(maps.Keys(m)) }
