package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
)

// Properties of dead letters and of their redrives.
const (
	propDeadReason = "SUNDIAL_DEAD_REASON"
	propDeadTopic  = "DLQ_ORIGIN_TOPIC"
	propDeadID     = "DLQ_ORIGIN_MESSAGE_ID"
	propReplayOf   = "REPLAY_OF" // offset message id of the dead letter that was put back
)

func dlqCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "dlq", Short: "Look at the dead letters of consumer groups, and put them back"}
	cmd.AddCommand(dlqListCommand(a), dlqShowCommand(a), dlqRedriveCommand(a), dlqPurgeCommand(a))
	return cmd
}

// deadQueue is the dead letters of a group on one broker.
type deadQueue struct {
	Group   string         `json:"group"`
	Broker  string         `json:"broker"`
	Letters mq.QueueOffset `json:"letters"`
	Oldest  int64          `json:"oldestTimestamp"` // when it became a dead letter; 0: there is none
	Newest  int64          `json:"newestTimestamp"`
	Exists  bool           `json:"groupExists"`
}

func dlqListCommand(a *admin) *cobra.Command {
	var empty bool
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List the groups that have dead letters, and how many",
		Example: `  sundial admin dlq list
  sundial admin dlq list 'billing-*' --json`,
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
			doc := []deadQueue{}
			err = each(masters, func(m member) error {
				some, err := a.deadQueues(cmd.Context(), m, matches, empty)
				doc = append(doc, some...)
				return err
			})
			slices.SortStableFunc(doc, func(x, y deadQueue) int { return strings.Compare(x.Group, y.Group) })
			var rows []table.Row
			var sum mq.QueueOffset
			for _, q := range doc {
				sum += q.Letters
				rows = append(rows, table.Row{q.Group, q.Broker, q.Letters, stamp(q.Oldest), stamp(q.Newest), onOff(q.Exists)})
			}
			err = a.showUnless(err, doc, table.Row{"group", "broker", "dead letters", "oldest", "newest", "group exists"}, rows)
			if len(rows) > 0 {
				a.done("dead letters %d", sum)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&empty, "empty", false, "with dead letter topics that are empty")
	return describe(cmd, []deadQueue{})
}

func (a *admin) deadQueues(ctx context.Context, m member, matches func(string) bool, empty bool) ([]deadQueue, error) {
	topics, err := a.topicTable(ctx, m)
	if err != nil {
		return nil, err
	}
	groups, err := a.groupTable(ctx, m)
	if err != nil {
		return nil, err
	}
	var all []deadQueue
	for _, topic := range sortedKeys(topics.Topics) {
		group, dead := strings.CutPrefix(topic, mq.DLQPrefix)
		if !dead || !matches(group) {
			continue
		}
		stats, err := a.topicStats(ctx, m, topic)
		if err != nil {
			return all, err
		}
		q := deadQueue{Group: group, Broker: m.Name, Exists: groups.Groups[group] != nil}
		for k, s := range stats.Queues {
			if q.Letters += s.Max - s.Min; s.Max == s.Min {
				continue
			}
			q.Newest = max(q.Newest, s.LastUpdate)
			var at protocol.StoreTimeResponse
			if err := a.askFields(ctx, m.Addr, protocol.GetEarliestMsgStoreTime, &protocol.QueueHeader{Topic: topic, QueueID: int32(k.QueueID)}, &at); err != nil {
				return all, err
			}
			if q.Oldest == 0 || at.Timestamp < q.Oldest {
				q.Oldest = at.Timestamp
			}
		}
		if q.Letters > 0 || empty {
			all = append(all, q)
		}
	}
	return all, nil
}

// deadLetter is a message with why it is where it is.
type deadLetter struct {
	Broker      string `json:"broker"`
	OriginTopic string `json:"originTopic"`
	OriginID    string `json:"originId"` // offset message id of the first try
	Attempts    int32  `json:"attempts"`
	Reason      string `json:"reason,omitempty"` // a RocketMQ broker tells none
	messageView
}

func deadLetterOf(m member, v record.View) deadLetter {
	l := deadLetter{Broker: m.Name, messageView: viewOf(v)}
	l.OriginTopic, l.OriginID = l.Properties[mq.PropRetryTopic], l.Properties[mq.PropOriginMessageID]
	if l.OriginTopic == "" {
		l.OriginTopic = l.Properties[propDeadTopic]
	}
	if l.OriginID == "" {
		l.OriginID = l.Properties[propDeadID]
	}
	// The broker counts the step to here as one more.
	l.Attempts, l.Reason = l.Retries, l.Properties[propDeadReason]
	return l
}

// letterFilter picks dead letters of a group.
type letterFilter struct {
	window
	ids []string
}

func (f *letterFilter) register(cmd *cobra.Command, a *admin) {
	f.queue = -1
	f.window.register(cmd, a)
	cmd.Flags().StringSliceVar(&f.ids, "id", nil, "only the dead letter with this `ID`, or the one that came from the message with it; may be repeated")
}

func (f *letterFilter) narrow() bool { return f.window.narrow() || len(f.ids) > 0 }

func (f *letterFilter) takes(l *deadLetter) bool {
	return len(f.ids) == 0 || slices.Contains(f.ids, l.ID) || slices.Contains(f.ids, l.OriginID) || slices.Contains(f.ids, l.Properties[mq.PropUniqueKey])
}

// eachLetter visits the dead letters of a group on one broker that a filter takes,
// the oldest first. A broker that never had one is passed over.
func (a *admin) eachLetter(ctx context.Context, m member, group string, f *letterFilter, visit func(record.View, *deadLetter) error) error {
	err := a.scanWindow(ctx, m, mq.DLQTopic(group), &f.window, func(v record.View) error {
		l := deadLetterOf(m, v)
		if !f.takes(&l) {
			return nil
		}
		return visit(v, &l)
	})
	if errors.Is(err, mq.ErrNoTopic) {
		return nil
	}
	return err
}

func dlqShowCommand(a *admin) *cobra.Command {
	var f letterFilter
	var most int
	cmd := &cobra.Command{
		Use:   "show GROUP",
		Short: "Show dead letters of a group: where they are from, how often they were tried, and why they died",
		Long: `Shows the newest dead letters, or with filters the first that they take. With --id
one is shown whole. Times are those at which a message became a dead letter.`,
		Example: `  sundial admin dlq show billing
  sundial admin dlq show billing --since -1h --tag paid --max 100
  sundial admin dlq show billing --id 7F00000100002A9F000000000000A1B2`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.open(); err != nil {
				return err
			}
			if most < 1 {
				return &usageError{fmt.Errorf("--max is %d, it must be 1 or more", most)}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []deadLetter{}
			err = each(masters, func(m member) error {
				if !f.narrow() {
					return a.newestLetters(cmd.Context(), m, args[0], most, &doc)
				}
				n := 0
				err := a.eachLetter(cmd.Context(), m, args[0], &f, func(_ record.View, l *deadLetter) error {
					doc = append(doc, *l)
					if n++; n >= most {
						return errEnough
					}
					return nil
				})
				return err
			})
			if err == nil && len(doc) == 0 {
				return notFound("group %s has no such dead letter%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			if len(f.ids) == 1 && len(doc) == 1 && !a.json {
				return doc[0].show(a)
			}
			var rows []table.Row
			for _, l := range doc {
				rows = append(rows, table.Row{l.ID, l.OriginTopic, l.OriginID, l.Attempts, stamp(l.Stored), l.Properties[mq.PropKeys], l.Properties[mq.PropTags], l.Reason})
			}
			return a.showUnless(err, doc, table.Row{"id", "origin topic", "origin id", "attempts", "dead since", "keys", "tag", "reason"}, rows)
		},
	}
	f.register(cmd, a)
	cmd.Flags().IntVar(&most, "max", 32, "how many of each broker at most")
	return describe(cmd, []deadLetter{})
}

// newestLetters appends the last dead letters of a group on one broker.
func (a *admin) newestLetters(ctx context.Context, m member, group string, most int, doc *[]deadLetter) error {
	topic := mq.DLQTopic(group)
	all, err := a.ranges(ctx, m, topic, -1)
	if errors.Is(err, mq.ErrNoTopic) {
		return nil
	}
	for _, q := range all {
		_, scanErr := a.scan(ctx, m.Addr, topic, q.id, max(q.min, q.max-mq.QueueOffset(most)), q.max, func(v record.View) error {
			*doc = append(*doc, deadLetterOf(m, v))
			return nil
		})
		err = errors.Join(err, scanErr)
	}
	return err
}

func dlqPurgeCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge GROUP",
		Short: "Throw away all dead letters of a group",
		Long: `Deletes the dead letter topic of a group on its brokers. RocketMQ's log forgets no
single message: all dead letters go, also those that come in while this runs, and the
topic is made again by the next one. Save them first with
"dlq show GROUP --since 2000-01-01 --max 1000000 --json".`,
		Example: `  sundial admin dlq purge billing --dry-run
  sundial admin dlq purge billing --yes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			topic := mq.DLQTopic(args[0])
			masters, err := a.mastersOf(cmd.Context(), topic)
			if _, missing := errors.AsType[*notFoundError](err); missing {
				return notFound("group %s has no dead letters%s", args[0], a.meant(cmd.Context(), "group", args[0]))
			}
			if err != nil {
				return err
			}
			steps := a.deletions(cmd.Context(), topic, masters)
			return a.carryOut(cmd, fmt.Sprintf("Throw away all dead letters of group %s?", args[0]), steps)
		},
	}
	return a.destroys(cmd)
}
