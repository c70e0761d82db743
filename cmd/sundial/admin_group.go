package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func groupCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "group", Short: "List, show, make, change and delete consumer groups"}
	cmd.AddCommand(groupListCommand(a), groupShowCommand(a), groupCreateCommand(a), groupDeleteCommand(a))
	return cmd
}

func groupListCommand(a *admin) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the consumer groups",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			type entry struct {
				Broker  string `json:"broker"`
				Members int    `json:"members"`
				Lag     int64  `json:"lag"`
				*mq.GroupConfig
			}
			doc := []entry{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				var t protocol.GroupTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetAllSubscriptionGroupConfig, &protocol.GroupPageHeader{}, &t); err != nil {
					return err
				}
				for _, name := range sortedKeys(t.Groups) {
					g := t.Groups[name]
					if !all && mq.SystemGroup(name) {
						continue
					}
					conns, err := a.connections(cmd.Context(), m, name)
					if err != nil {
						return err
					}
					queues, err := a.progress(cmd.Context(), m, name, "")
					if err != nil {
						return err
					}
					e := entry{m.Name, len(conns.Connections), 0, g}
					for _, q := range queues {
						e.Lag += int64(q.Lag)
					}
					doc = append(doc, e)
					rows = append(rows, table.Row{name, m.Name, e.Members, conns.MessageModel, e.Lag, g.RetryMaxTimes, onOff(g.ConsumeEnable)})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"group", "broker", "members", "model", "lag", "retries", "consumes"}, rows)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "with the broker's own groups")
	return cmd
}

// connections lists who is there of a group; nobody is no error.
func (a *admin) connections(ctx context.Context, m member, group string) (*protocol.ConsumerConnection, error) {
	var c protocol.ConsumerConnection
	err := a.askBody(ctx, m.Addr, protocol.GetConsumerConnectionList, &protocol.ConsumerGroupHeader{ConsumerGroup: group}, &c)
	if errors.Is(err, mq.ErrConsumerOffline) {
		err = nil
	}
	return &c, err
}

// queueProgress is how far a group is in one queue.
type queueProgress struct {
	Broker    string         `json:"broker"`
	Topic     string         `json:"topic"`
	Queue     mq.QueueID     `json:"queue"`
	End       mq.QueueOffset `json:"brokerOffset"`
	Committed mq.QueueOffset `json:"consumerOffset"` // below 0: not known
	Lag       mq.QueueOffset `json:"lag"`
	LastTime  int64          `json:"lastTimestamp"`
}

// progress asks how far a group is on one broker; a group that never committed
// has none.
func (a *admin) progress(ctx context.Context, m member, group, topic string) ([]queueProgress, error) {
	var stats protocol.ConsumeStats
	err := a.askBody(ctx, m.Addr, protocol.GetConsumeStats, &protocol.ConsumeStatsHeader{ConsumerGroup: group, Topic: topic}, &stats)
	if errors.Is(err, mq.ErrNoTopic) || errors.Is(err, mq.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []queueProgress
	for _, k := range slices.SortedFunc(maps.Keys(stats.Queues), protocol.MessageQueue.Compare) {
		p := stats.Queues[k]
		q := queueProgress{m.Name, k.Topic, k.QueueID, p.Broker, p.Consumer, 0, p.LastTime}
		if q.Committed >= 0 {
			q.Lag = max(0, q.End-q.Committed)
		}
		all = append(all, q)
	}
	return all, nil
}

func groupShowCommand(a *admin) *cobra.Command {
	return &cobra.Command{
		Use:   "show GROUP",
		Short: "Show a group's members, subscriptions and progress",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			type view struct {
				Config      *mq.GroupConfig              `json:"config"`
				Connections *protocol.ConsumerConnection `json:"connections"`
				Progress    []queueProgress              `json:"progress"`
			}
			doc := map[string]view{}
			var members, progress []table.Row
			seen := false
			err = each(masters, func(m member) error {
				var t protocol.GroupTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetAllSubscriptionGroupConfig, &protocol.GroupPageHeader{}, &t); err != nil {
					return err
				}
				g := t.Groups[args[0]]
				if g == nil {
					return nil
				}
				seen = true
				conns, err := a.connections(cmd.Context(), m, args[0])
				if err != nil {
					return err
				}
				queues, err := a.progress(cmd.Context(), m, args[0], "")
				if err != nil {
					return err
				}
				doc[m.Name] = view{g, conns, queues}
				for _, c := range conns.Connections {
					members = append(members, table.Row{m.Name, c.ClientID, c.Addr, c.Language, c.Version})
				}
				for _, q := range queues {
					progress = append(progress, table.Row{m.Name, q.Topic, q.Queue, q.End, cellOffset(q.Committed), q.Lag, stamp(q.LastTime)})
				}
				if !a.json {
					model := ""
					if conns.MessageModel != "" {
						model = fmt.Sprintf(", model %s", conns.MessageModel)
					}
					a.done("%s: retries %d, retry queues %d, consumes %s, broadcasts %s%s", m.Name, g.RetryMaxTimes, g.RetryQueues,
						onOff(g.ConsumeEnable), onOff(g.ConsumeBroadcastEnable), model)
					for _, topic := range sortedKeys(conns.Subscriptions) {
						a.done("%s: subscribes to %s: %s %s", m.Name, topic, conns.Subscriptions[topic].ExpressionType, conns.Subscriptions[topic].Expression)
					}
				}
				return nil
			})
			if err == nil && !seen {
				return notFound("no broker has group %s", args[0])
			}
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			if len(members) == 0 && err == nil {
				a.done("no consumer is connected")
			} else {
				err = a.showUnless(err, nil, table.Row{"broker", "client", "address", "language", "version"}, members)
			}
			if len(progress) == 0 && err == nil {
				a.done("nothing was consumed yet")
				return nil
			}
			return a.showUnless(err, nil, table.Row{"broker", "topic", "queue", "end", "committed", "lag", "last consumed"}, progress)
		},
	}
}

func groupCreateCommand(a *admin) *cobra.Command {
	g := mq.NewGroupConfig("")
	cmd := &cobra.Command{
		Use:   "create GROUP",
		Short: "Make a consumer group on all brokers (or --broker), or change it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			g.Name = args[0]
			return each(masters, func(m member) error {
				if _, err := a.ask(cmd.Context(), m.Addr, protocol.UpdateAndCreateSubscriptionGroup, nil, protocol.EncodeBody(g)); err != nil {
					return err
				}
				a.done("%s: group %s retries %d times", m.Name, g.Name, g.RetryMaxTimes)
				return nil
			})
		},
	}
	cmd.Flags().Int32Var(&g.RetryMaxTimes, "retries", g.RetryMaxTimes, "how often a failed message is retried before it is a dead letter")
	cmd.Flags().Int32Var(&g.RetryQueues, "retry-queues", g.RetryQueues, "queues of the retry topic; 0 gives failed messages up")
	cmd.Flags().BoolVar(&g.ConsumeEnable, "consume", g.ConsumeEnable, "the group may consume")
	cmd.Flags().BoolVar(&g.ConsumeBroadcastEnable, "broadcast", g.ConsumeBroadcastEnable, "the group may consume as broadcast")
	cmd.Flags().BoolVar(&g.ConsumeMessageOrderly, "order", g.ConsumeMessageOrderly, "the group consumes in order")
	return cmd
}

func groupDeleteCommand(a *admin) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "delete GROUP",
		Short: "Delete a consumer group with its progress",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			seen := false
			err = each(masters, func(m member) error {
				var t protocol.GroupTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetAllSubscriptionGroupConfig, &protocol.GroupPageHeader{}, &t); err != nil {
					return err
				}
				if t.Groups[args[0]] == nil {
					return nil
				}
				seen = true
				if _, err := a.ask(cmd.Context(), m.Addr, protocol.DeleteSubscriptionGroup, &protocol.DeleteGroupHeader{Group: args[0], CleanOffset: !keep}, nil); err != nil {
					return err
				}
				a.done("%s: group %s is deleted", m.Name, args[0])
				return nil
			})
			if err == nil && !seen {
				return notFound("no broker has group %s", args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-offsets", false, "keep the group's progress")
	return cmd
}
