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

func topicCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "topic", Short: "List, show, make, change and delete topics"}
	cmd.AddCommand(topicListCommand(a), topicShowCommand(a), topicGroupsCommand(a), topicEntriesCommand(a), topicAllocateCommand(a),
		topicCreateCommand(a), topicUpdateCommand(a), topicDeleteCommand(a))
	return cmd
}

// topicKinds are what --kind takes.
var topicKinds = []string{"normal", "retry", "dlq", "system"}

// kindOf says what a topic is for. system holds what the broker calls its own.
func kindOf(topic string, system map[string]bool) string {
	switch {
	case mq.IsRetryTopic(topic):
		return "retry"
	case mq.IsDLQTopic(topic):
		return "dlq"
	case system[topic] || mq.SystemTopic(topic):
		return "system"
	}
	return "normal"
}

// topicEntry is a topic on one broker.
type topicEntry struct {
	Broker string `json:"broker"`
	Kind   string `json:"kind"` // normal, retry, dlq, system
	*mq.TopicConfig
}

func topicListCommand(a *admin) *cobra.Command {
	var all bool
	var kinds []string
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List the topics",
		Example: `  sundial admin topic list 'order*'
  sundial admin topic list --kind retry,dlq
  sundial admin topic list --all --json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := pattern(args)
			if err != nil {
				return err
			}
			for _, k := range kinds {
				if !slices.Contains(topicKinds, k) {
					return &usageError{fmt.Errorf("--kind is %q, it must be of %s", k, strings.Join(topicKinds, ", "))}
				}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []topicEntry{}
			err = each(masters, func(m member) error {
				t, err := a.topicTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				system, err := a.systemTopics(cmd.Context(), m)
				if err != nil {
					return err
				}
				for _, name := range sortedKeys(t.Topics) {
					kind := kindOf(name, system)
					wanted := all || slices.Contains(kinds, kind) || len(kinds) == 0 && kind != "system"
					if wanted && matches(name) {
						doc = append(doc, topicEntry{m.Name, kind, t.Topics[name]})
					}
				}
				return nil
			})
			slices.SortStableFunc(doc, func(x, y topicEntry) int { return strings.Compare(x.Name, y.Name) })
			var rows []table.Row
			for _, e := range doc {
				rows = append(rows, table.Row{e.Name, e.Broker, e.Kind, e.ReadQueues, e.WriteQueues, permText(e.Perm), onOff(e.Order), attributesText(e.Attributes)})
			}
			return a.showUnless(err, doc, table.Row{"topic", "broker", "kind", "read queues", "write queues", "perm", "order", "attributes"}, rows)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "with the broker's own topics")
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only these kinds: normal, retry, dlq, system (default: all but system)")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(topicKinds, cobra.ShellCompDirectiveNoFileComp))
	return describe(cmd, []topicEntry{})
}

func (a *admin) systemTopics(ctx context.Context, m member) (map[string]bool, error) {
	var list protocol.TopicList
	if err := a.askBody(ctx, m.Addr, protocol.GetSystemTopicListFromBroker, nil, &list); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, n := range list.Topics {
		names[n] = true
	}
	return names, nil
}

// topicQueue is a queue of a topic and what is in it.
type topicQueue struct {
	Broker     string         `json:"broker"`
	Queue      mq.QueueID     `json:"queue"`
	Min        mq.QueueOffset `json:"minOffset"`
	Max        mq.QueueOffset `json:"maxOffset"`
	Messages   mq.QueueOffset `json:"messages"`
	LastUpdate int64          `json:"lastUpdateTimestamp"`
}

func topicShowCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show TOPIC",
		Short:             "Show the queues of a topic and what is in them",
		Example:           `  sundial admin topic show Orders`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			doc := []topicQueue{}
			var sum mq.QueueOffset
			var rows []table.Row
			err = each(masters, func(m member) error {
				stats, err := a.topicStats(cmd.Context(), m, args[0])
				if err != nil {
					return err
				}
				for _, k := range slices.SortedFunc(maps.Keys(stats.Queues), protocol.MessageQueue.Compare) {
					q := stats.Queues[k]
					sum += q.Max - q.Min
					doc = append(doc, topicQueue{m.Name, k.QueueID, q.Min, q.Max, q.Max - q.Min, q.LastUpdate})
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
	return describe(cmd, []topicQueue{})
}

// topicStats asks one broker for the queues of a topic.
func (a *admin) topicStats(ctx context.Context, m member, topic string) (*protocol.TopicStats, error) {
	var stats protocol.TopicStats
	err := a.askBody(ctx, m.Addr, protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: topic}, &stats)
	return &stats, err
}

// topicGroup is a group that consumes a topic.
type topicGroup struct {
	Broker  string         `json:"broker"`
	Group   string         `json:"group"`
	Members int            `json:"members"`
	Lag     mq.QueueOffset `json:"lag"`
}

func topicGroupsCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "groups TOPIC",
		Short:             "List the groups that consume a topic, and how far behind they are",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			masters, err := a.mastersOf(ctx, args[0])
			if err != nil {
				return err
			}
			doc := []topicGroup{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				var list protocol.GroupList
				if err := a.askBody(ctx, m.Addr, protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: args[0]}, &list); err != nil {
					return err
				}
				for _, group := range slices.Sorted(slices.Values(list.Groups)) {
					g := topicGroup{Broker: m.Name, Group: group}
					conns, err := a.connections(ctx, m, group)
					if err != nil {
						return err
					}
					queues, err := a.progress(ctx, m, group, args[0])
					if err != nil {
						return err
					}
					g.Members = len(conns.Connections)
					for _, q := range queues {
						g.Lag += q.Lag
					}
					doc = append(doc, g)
					rows = append(rows, table.Row{m.Name, group, g.Members, g.Lag})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"broker", "group", "members", "lag"}, rows)
		},
	}
	return describe(cmd, []topicGroup{})
}

// queueEntry is an entry of a consume queue.
type queueEntry struct {
	Offset   mq.QueueOffset `json:"queueOffset"`
	Pos      mq.LogOffset   `json:"commitLogOffset"`
	Size     int32          `json:"size"`
	TagsCode int64          `json:"tagsCode"`
	Takes    bool           `json:"taken"` // by the filter of --group
	Wrong    string         `json:"error,omitempty"`
}

func topicEntriesCommand(a *admin) *cobra.Command {
	var queue, count int32
	var from int64
	var group string
	cmd := &cobra.Command{
		Use:               "entries TOPIC --queue N",
		Short:             "Show entries of a consume queue, and which a group's filter takes",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(masters) > 1 {
				return &usageError{errors.New("several brokers have the topic: say which with --broker")}
			}
			var q protocol.ConsumeQueue
			if err := a.askBody(cmd.Context(), masters[0].Addr, protocol.QueryConsumeQueue, &protocol.QueryConsumeQueueHeader{
				Topic: args[0], QueueID: queue, Index: from, Count: count, Group: group,
			}, &q); err != nil {
				return err
			}
			doc := []queueEntry{}
			var rows []table.Row
			for i, e := range q.Entries {
				n := queueEntry{mq.QueueOffset(max(from, int64(q.Min))) + mq.QueueOffset(i), e.Pos, e.Size, e.TagsCode, e.Eval, e.Message}
				doc = append(doc, n)
				taken := onOff(n.Takes)
				if group == "" {
					taken = "-"
				}
				rows = append(rows, table.Row{n.Offset, n.Pos, n.Size, n.TagsCode, taken, n.Wrong})
			}
			err = a.show(doc, table.Row{"offset", "log offset", "size", "tags code", "taken", "error"}, rows)
			a.done("the queue has %d up to %d", q.Min, q.Max-1)
			return err
		},
	}
	cmd.Flags().Int32VarP(&queue, "queue", "q", 0, "the queue")
	cmd.Flags().Int64Var(&from, "from", 0, "the first offset")
	cmd.Flags().Int32Var(&count, "max", 10, "how many at most")
	cmd.Flags().StringVarP(&group, "group", "g", "", "show which ones this group's filter takes")
	_ = cmd.MarkFlagRequired("queue")
	return describe(cmd, []queueEntry{})
}

// allocation is what one consumer would read.
type allocation struct {
	Client string                  `json:"client"`
	Queues []protocol.MessageQueue `json:"queues"`
}

func topicAllocateCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "allocate TOPIC CLIENT...",
		Short:   "Work out which queues of a topic such consumers of one group would read",
		Long:    "Shares the queues of a topic evenly among clients, as consumers do that do not say otherwise.",
		Example: `  sundial admin topic allocate Orders 10.0.0.1@1 10.0.0.2@1`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			route, err := a.route(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var queues []protocol.MessageQueue
			for _, q := range route.Queues {
				for id := range q.ReadQueues {
					queues = append(queues, protocol.MessageQueue{BrokerName: q.BrokerName, QueueID: mq.QueueID(id), Topic: args[0]})
				}
			}
			slices.SortFunc(queues, protocol.MessageQueue.Compare)
			clients := slices.Compact(slices.Sorted(slices.Values(args[1:])))
			doc := []allocation{}
			var rows []table.Row
			begin := 0
			for i, c := range clients {
				n := len(queues) / len(clients)
				if i < len(queues)%len(clients) {
					n++
				}
				share := append([]protocol.MessageQueue{}, queues[begin:begin+n]...)
				begin += n
				doc = append(doc, allocation{c, share})
				for _, q := range share {
					rows = append(rows, table.Row{c, q.BrokerName, q.QueueID})
				}
			}
			return a.show(doc, table.Row{"client", "broker", "queue"}, rows)
		},
	}
	return describe(cmd, []allocation{})
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

func attributesText(m map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, " ")
}

func sortedKeys[V any, M ~map[string]V](m M) []string { return slices.Sorted(maps.Keys(m)) }
