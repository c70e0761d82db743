package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func groupCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "group", Short: "Look after consumer groups: settings, members, progress"}
	cmd.AddCommand(groupListCommand(a), groupShowCommand(a), groupProgressCommand(a), groupConnectionsCommand(a), groupRunningCommand(a), groupStatusCommand(a),
		groupConsumeCommand(a), groupCreateCommand(a), groupUpdateCommand(a), groupDeleteCommand(a), groupResetCommand(a), groupSkipCommand(a), groupCloneCommand(a), groupModeCommand(a))
	return cmd
}

// groupEntry is a group on one broker.
type groupEntry struct {
	Broker  string         `json:"broker"`
	Members int            `json:"members"`
	Model   string         `json:"messageModel"` // of the members; empty without any
	Lag     mq.QueueOffset `json:"lag"`
	*mq.GroupConfig
}

func groupListCommand(a *admin) *cobra.Command {
	var all, online, behind bool
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List the consumer groups, who is there and how far behind they are",
		Example: `  sundial admin group list 'billing*'
  sundial admin group list --behind --json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := pattern(args)
			if err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []groupEntry{}
			err = each(masters, func(m member) error {
				t, err := a.groupTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				for _, name := range sortedKeys(t.Groups) {
					if !all && mq.SystemGroup(name) || !matches(name) {
						continue
					}
					e, err := a.groupEntry(cmd.Context(), m, t.Groups[name])
					if err != nil {
						return err
					}
					if online && e.Members == 0 || behind && e.Lag == 0 {
						continue
					}
					doc = append(doc, e)
				}
				return nil
			})
			slices.SortStableFunc(doc, func(x, y groupEntry) int { return strings.Compare(x.Name, y.Name) })
			var rows []table.Row
			for _, e := range doc {
				rows = append(rows, table.Row{e.Name, e.Broker, e.Members, e.Model, e.Lag, e.RetryMaxTimes, onOff(e.ConsumeEnable)})
			}
			return a.showUnless(err, doc, table.Row{"group", "broker", "members", "model", "lag", "retries", "consumes"}, rows)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "with the broker's own groups")
	cmd.Flags().BoolVar(&online, "online", false, "only groups with members")
	cmd.Flags().BoolVar(&behind, "behind", false, "only groups that are behind")
	return describe(cmd, []groupEntry{})
}

func (a *admin) groupEntry(ctx context.Context, m member, g *mq.GroupConfig) (groupEntry, error) {
	e := groupEntry{Broker: m.Name, GroupConfig: g}
	conns, err := a.connections(ctx, m, g.Name)
	if err != nil {
		return e, err
	}
	queues, err := a.progress(ctx, m, g.Name, "")
	if err != nil {
		return e, err
	}
	e.Members, e.Model = len(conns.Connections), conns.MessageModel
	for _, q := range queues {
		e.Lag += q.Lag
	}
	return e, nil
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
	InFlight  mq.QueueOffset `json:"inFlight"` // handed out and not committed
	LastTime  int64          `json:"lastTimestamp"`
	Client    string         `json:"client,omitempty"` // who reads it; only when asked for
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
		q := queueProgress{Broker: m.Name, Topic: k.Topic, Queue: k.QueueID, End: p.Broker, Committed: p.Consumer, LastTime: p.LastTime}
		if q.Committed >= 0 {
			q.Lag, q.InFlight = max(0, q.End-q.Committed), max(0, p.Pull-q.Committed)
		}
		all = append(all, q)
	}
	return all, nil
}

func groupShowCommand(a *admin) *cobra.Command {
	type view struct {
		Config      *mq.GroupConfig              `json:"config"`
		Connections *protocol.ConsumerConnection `json:"connections"`
		Progress    []queueProgress              `json:"progress"`
	}
	cmd := &cobra.Command{
		Use:               "show GROUP",
		Short:             "Show a group's settings, members, subscriptions and progress",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := map[string]view{}
			var members []connected
			var progress []queueProgress
			err = each(masters, func(m member) error {
				t, err := a.groupTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				g := t.Groups[args[0]]
				if g == nil {
					return nil
				}
				conns, err := a.connections(cmd.Context(), m, args[0])
				if err != nil {
					return err
				}
				queues, err := a.progress(cmd.Context(), m, args[0], "")
				if err != nil {
					return err
				}
				doc[m.Name] = view{g, conns, queues}
				members, progress = append(members, connectedOf(m, conns)...), append(progress, queues...)
				a.done("%s: %s", m.Name, groupText(g))
				a.tellSubscriptions(m, conns)
				return nil
			})
			if err == nil && len(doc) == 0 {
				return notFound("no broker has group %s%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			if err == nil && len(members) == 0 {
				a.done("no consumer is connected")
			} else {
				err = a.showConnected(err, members)
			}
			if err == nil && len(progress) == 0 {
				a.done("nothing was consumed yet")
				return nil
			}
			return a.showProgress(err, progress, false)
		},
	}
	return describe(cmd, map[string]view{})
}

func groupText(g *mq.GroupConfig) string {
	return fmt.Sprintf("retries %d, retry queues %d, consumes %s, broadcasts %s, in order %s", g.RetryMaxTimes, g.RetryQueues,
		onOff(g.ConsumeEnable), onOff(g.ConsumeBroadcastEnable), onOff(g.ConsumeMessageOrderly))
}

// showProgress shows queues and their sum.
func (a *admin) showProgress(err error, all []queueProgress, clients bool) error {
	header := table.Row{"broker", "topic", "queue", "end", "committed", "lag", "in flight", "last consumed"}
	if clients {
		header = append(header, "client")
	}
	var rows []table.Row
	var lag mq.QueueOffset
	for _, q := range all {
		lag += q.Lag
		row := table.Row{q.Broker, q.Topic, q.Queue, q.End, cellOffset(q.Committed), q.Lag, q.InFlight, stamp(q.LastTime)}
		if clients {
			row = append(row, q.Client)
		}
		rows = append(rows, row)
	}
	if all == nil {
		all = []queueProgress{}
	}
	err = a.showUnless(err, all, header, rows)
	if len(rows) > 0 {
		a.done("lag %d", lag)
	}
	return err
}

func groupProgressCommand(a *admin) *cobra.Command {
	var topic string
	var clients, behind bool
	cmd := &cobra.Command{
		Use:   "progress GROUP",
		Short: "Show how far a group is in each queue, and who reads it",
		Example: `  sundial admin group progress billing --topic Orders
  sundial admin group progress billing --clients --behind`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			masters, err := a.masters(ctx)
			if err != nil {
				return err
			}
			var doc []queueProgress
			var readers map[protocol.MessageQueue]string
			if clients {
				if readers, err = a.readers(ctx, masters, args[0]); err != nil {
					return err
				}
			}
			known := false
			err = each(masters, func(m member) error {
				t, err := a.groupTable(ctx, m)
				if err != nil {
					return err
				}
				queues, err := a.progress(ctx, m, args[0], topic)
				known = known || len(queues) > 0 || t.Groups[args[0]] != nil
				for _, q := range queues {
					q.Client = readers[protocol.MessageQueue{BrokerName: q.Broker, Topic: q.Topic, QueueID: q.Queue}]
					if !behind || q.Lag > 0 {
						doc = append(doc, q)
					}
				}
				return err
			})
			if err == nil && !known {
				return notFound("no broker has group %s%s", args[0], a.meant(ctx, "group", args[0]))
			}
			if len(doc) == 0 && err == nil && !a.json {
				if behind {
					a.done("group %s is nowhere behind", args[0])
				} else {
					a.done("group %s has consumed nothing yet", args[0])
				}
				return nil
			}
			return a.showProgress(err, doc, clients)
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "of this topic only")
	cmd.Flags().BoolVar(&clients, "clients", false, "ask the members which queues they read")
	cmd.Flags().BoolVar(&behind, "behind", false, "only queues with a lag")
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
	return describe(cmd, []queueProgress{})
}

// readers asks all members of a group which queues they read. Brokers are named as
// members call them.
func (a *admin) readers(ctx context.Context, masters []member, group string) (map[protocol.MessageQueue]string, error) {
	all := map[protocol.MessageQueue]string{}
	seen := map[string]bool{}
	for _, m := range masters {
		conns, err := a.connections(ctx, m, group)
		if err != nil {
			return nil, err
		}
		for _, c := range conns.Connections {
			if seen[c.ClientID] {
				continue
			}
			seen[c.ClientID] = true
			info, err := a.runningInfo(ctx, m, group, c.ClientID, false)
			if err != nil {
				continue // an old client, or one that just left: its queues have no name
			}
			for q := range info.Queues {
				all[q] = c.ClientID
			}
		}
	}
	return all, nil
}

// connected is a member of a group on one broker.
type connected struct {
	Broker   string `json:"broker"`
	ClientID string `json:"clientId"`
	Addr     string `json:"addr"`
	Language string `json:"language"`
	Version  string `json:"version"`
}

func connectedOf(m member, conns *protocol.ConsumerConnection) []connected {
	var all []connected
	for _, c := range conns.Connections {
		all = append(all, connected{m.Name, c.ClientID, c.Addr, c.Language, versionName(c.Version)})
	}
	slices.SortFunc(all, func(x, y connected) int { return strings.Compare(x.ClientID, y.ClientID) })
	return all
}

func (a *admin) showConnected(err error, all []connected) error {
	var rows []table.Row
	for _, c := range all {
		rows = append(rows, table.Row{c.Broker, c.ClientID, c.Addr, c.Language, c.Version})
	}
	return a.showUnless(err, all, table.Row{"broker", "client", "address", "language", "version"}, rows)
}

func (a *admin) tellSubscriptions(m member, conns *protocol.ConsumerConnection) {
	if conns.MessageModel != "" {
		a.done("%s: %s, %s, %s", m.Name, conns.ConsumeType, conns.MessageModel, conns.ConsumeFromWhere)
	}
	for _, topic := range sortedKeys(conns.Subscriptions) {
		a.done("%s: subscribes to %s: %s %s", m.Name, topic, conns.Subscriptions[topic].ExpressionType, conns.Subscriptions[topic].Expression)
	}
}

func groupConnectionsCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "connections GROUP",
		Short:             "List the members of a group and what they subscribe to",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []connected{}
			err = each(masters, func(m member) error {
				conns, err := a.connections(cmd.Context(), m, args[0])
				if err != nil {
					return err
				}
				a.tellSubscriptions(m, conns)
				doc = append(doc, connectedOf(m, conns)...)
				return nil
			})
			if err == nil && len(doc) == 0 {
				return notFound("no member of group %s is online%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			return a.showConnected(err, doc)
		},
	}
	return describe(cmd, []connected{})
}
