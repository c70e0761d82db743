package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
)

// pendingMessage is a message that waits for its time.
type pendingMessage struct {
	Broker string `json:"broker"`
	Level  int    `json:"level,omitempty"` // 0: it is timed
	protocol.Delayed

	addr string
}

func pendingRow(p *pendingMessage) table.Row {
	kind := "timed"
	if p.Level > 0 {
		kind = fmt.Sprint("level ", p.Level)
	}
	return table.Row{p.Broker, kind, stamp(p.Due), until(p.Due), p.Topic, p.Queue, p.Keys, p.Unique, p.Seq}
}

var pendingHeader = table.Row{"broker", "kind", "due", "in", "topic", "queue", "keys", "unique key", "seq"}

// until writes how long it is until a time.
func until(ms int64) string {
	d := time.Until(time.UnixMilli(ms))
	if d > time.Hour || d < -time.Hour {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}

// dueWindow is a window of due times.
type dueWindow struct {
	since, until string
	from, to     int64
}

func (w *dueWindow) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.since, "since", "", "only what is due from this `TIME` on")
	cmd.Flags().StringVar(&w.until, "until", "", "only what is due before this `TIME`")
}

func (w *dueWindow) open() (err error) {
	now := time.Now()
	w.from, w.to = 0, 1<<62
	if w.since != "" {
		w.from, err = parseDue("--since", w.since, now)
	}
	if w.until != "" && err == nil {
		w.to, err = parseDue("--until", w.until, now)
	}
	if err == nil && w.from >= w.to {
		err = &usageError{errors.New("--since must be before --until")}
	}
	return err
}

// parseDue reads a time that may lie ahead, also by how long from now: 15m or +15m.
func parseDue(flag, said string, now time.Time) (int64, error) {
	if d, err := time.ParseDuration(strings.TrimPrefix(said, "+")); err == nil && d >= 0 && !strings.HasPrefix(said, "-") {
		return now.Add(d).UnixMilli(), nil
	}
	ms, err := parseTime(flag, said, now)
	if err != nil {
		return 0, &usageError{fmt.Errorf("%s is %q, it must be a time such as %s, ms since 1970, or how long from now, such as 15m", flag, said, now.Format(time.RFC3339))}
	}
	return ms, nil
}

func delayListCommand(a *admin) *cobra.Command {
	var level, most int
	var topic string
	var timed bool
	var w dueWindow
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List pending messages, timed ones and those of the levels, the next first",
		Example: `  sundial admin delay list --topic Orders --until 1h
  sundial admin delay list --level 3
  sundial admin delay list --since 2027-01-01 --max 1000 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if level < 0 || most < 1 {
				return &usageError{errors.New("--level must not be negative, and --max must be 1 or more")}
			}
			if err := w.open(); err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []pendingMessage{}
			err = each(masters, func(m member) error {
				var errs []error
				if level == 0 {
					some, err := a.timedMessages(cmd.Context(), m, topic, &w, most)
					doc, errs = append(doc, some...), append(errs, err)
				}
				if !timed {
					some, err := a.levelMessages(cmd.Context(), m, level, most)
					doc, errs = append(doc, some...), append(errs, err)
				}
				return errors.Join(errs...)
			})
			doc = slices.DeleteFunc(doc, func(p pendingMessage) bool {
				return topic != "" && p.Topic != topic || p.Due < w.from || p.Due >= w.to
			})
			slices.SortStableFunc(doc, func(x, y pendingMessage) int { return cmp.Compare(x.Due, y.Due) })
			return a.showPending(err, doc)
		},
	}
	w.register(cmd)
	cmd.Flags().IntVar(&level, "level", 0, "what waits in this level only (default: timed messages and all levels)")
	cmd.Flags().BoolVar(&timed, "timed", false, "timed messages only")
	cmd.Flags().StringVar(&topic, "topic", "", "what goes to this topic only")
	cmd.Flags().IntVar(&most, "max", 20, "how many timed messages, and how many of each level, at most")
	cmd.MarkFlagsMutuallyExclusive("level", "timed")
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
	return describe(cmd, []pendingMessage{})
}

func (a *admin) showPending(err error, doc []pendingMessage) error {
	var rows []table.Row
	for i := range doc {
		rows = append(rows, pendingRow(&doc[i]))
	}
	return a.showUnless(err, doc, pendingHeader, rows)
}

// timedMessages pages through the timed messages of a broker. One that knows no such
// request, RocketMQ's, has none to show.
func (a *admin) timedMessages(ctx context.Context, m member, topic string, w *dueWindow, most int) ([]pendingMessage, error) {
	var all []pendingMessage
	h := &protocol.ListDelayedHeader{From: w.from, To: w.to, Topic: topic}
	for len(all) < most {
		h.Max = int32(min(most-len(all), 1000))
		var list protocol.DelayedList
		err := a.askBody(ctx, m.Addr, protocol.ListDelayed, h, &list)
		if errors.Is(err, mq.ErrUnsupported) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		for _, d := range list.Messages {
			all = append(all, pendingMessage{Broker: m.Name, Delayed: d, addr: m.Addr})
		}
		if list.Next == nil {
			break
		}
		if next := list.Next; h.AfterSeq != nil && (next.Due < h.AfterDue || next.Due == h.AfterDue && next.Seq <= *h.AfterSeq) {
			return all, fmt.Errorf("%s: the list of delayed messages goes on at %d (%d) after %d (%d), which is no way forward", m.Addr, next.Due, next.Seq, h.AfterDue, *h.AfterSeq)
		}
		h.AfterDue, h.AfterSeq = list.Next.Due, &list.Next.Seq
	}
	return all, nil
}

// levelMessages lists what comes next in the levels of a broker, or in one of them.
func (a *admin) levelMessages(ctx context.Context, m member, level, most int) ([]pendingMessage, error) {
	levels, err := a.levels(ctx, m)
	if err != nil {
		return nil, err
	}
	if level > len(levels) {
		return nil, notFound("%s has no delay level %d, it has %d", m.Name, level, len(levels))
	}
	var all []pendingMessage
	for _, l := range levels {
		if l.Pending == 0 || level > 0 && l.Level != level {
			continue
		}
		q, err := a.schedule(ctx, m, l.Level-1, l.Next, int32(min(most, 1024)))
		if err != nil {
			return all, err
		}
		for i, e := range q.Entries {
			resp, err := a.ask(ctx, m.Addr, protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(e.Pos)}, nil)
			if err != nil {
				return all, err
			}
			v, _, err := record.Next(resp.Body)
			if err != nil {
				return all, err
			}
			p := pendingMessage{Broker: m.Name, Level: l.Level, addr: m.Addr}
			p.Seq, p.Due, p.Log, p.Body, p.StoreTime = max(l.Next, q.Min)+mq.QueueOffset(i), e.TagsCode, e.Pos, len(v.Body()), v.StoreTime()
			p.Topic, p.Unique, p.Keys, p.Tags = textOf(v, mq.PropRealTopic), textOf(v, mq.PropUniqueKey), textOf(v, mq.PropKeys), textOf(v, mq.PropTags)
			_, _ = fmt.Sscan(textOf(v, mq.PropRealQueueID), &p.Queue) // without it stays 0
			all = append(all, p)
		}
	}
	return all, nil
}

func textOf(v record.View, name string) string {
	value, _ := v.Property(name)
	return string(value)
}

func delayFindCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "find TOPIC KEY",
		Short:             "Find pending timed messages for a topic by a key or a unique key",
		Example:           `  sundial admin delay find Orders order-4711`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc, err := a.findDelayed(cmd.Context(), masters, args[0], args[1])
			if err == nil && len(doc) == 0 {
				return notFound("no timed message for topic %s with key %s is pending%s", args[0], args[1], a.meant(cmd.Context(), "topic", args[0]))
			}
			return a.showPending(err, doc)
		},
	}
	return describe(cmd, []pendingMessage{})
}

func (a *admin) findDelayed(ctx context.Context, masters []member, topic, key string) ([]pendingMessage, error) {
	doc := []pendingMessage{}
	err := each(masters, func(m member) error {
		var list protocol.DelayedList
		err := a.askBody(ctx, m.Addr, protocol.FindDelayed, &protocol.FindDelayedHeader{Topic: topic, Key: key}, &list)
		if errors.Is(err, mq.ErrUnsupported) {
			return nil
		}
		for _, d := range list.Messages {
			doc = append(doc, pendingMessage{Broker: m.Name, Delayed: d, addr: m.Addr})
		}
		return err
	})
	return doc, err
}

// delayedMessage is a pending message whole.
type delayedMessage struct {
	pendingMessage
	Message messageView `json:"message"`
}

func delayShowCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show TOPIC KEY",
		Short:             "Show one pending timed message whole, by its unique key or a key that only it has",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			found, err := a.findDelayed(cmd.Context(), masters, args[0], args[1])
			switch {
			case err == nil && len(found) == 0:
				return notFound("no timed message for topic %s with key %s is pending%s", args[0], args[1], a.meant(cmd.Context(), "topic", args[0]))
			case len(found) > 1:
				return errors.Join(a.showPending(err, found), refused("%d messages have key %s: say the unique key of one", len(found), args[1]))
			case err != nil:
				return err
			}
			one := delayedMessage{pendingMessage: found[0]}
			resp, err := a.ask(cmd.Context(), one.addr, protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(one.Log)}, nil)
			if err != nil {
				return err
			}
			v, _, err := record.Next(resp.Body)
			if err != nil {
				return err
			}
			one.Message = viewOf(v)
			if a.json {
				return a.document(one)
			}
			a.done("due %s, in %s, for queue %d of %s; it waits as", stamp(one.Due), until(one.Due), one.Queue, one.Topic)
			return one.Message.show(a)
		},
	}
	return describe(cmd, delayedMessage{})
}

// pendingCount is how many messages wait on one broker.
type pendingCount struct {
	Broker string                `json:"broker"`
	Timed  int64                 `json:"timed"`
	Levels int64                 `json:"levels"`
	Topics []protocol.DelayTopic `json:"topics,omitempty"` // of the timed ones, without a window
}

func delayCountCommand(a *admin) *cobra.Command {
	var w dueWindow
	cmd := &cobra.Command{
		Use:     "count",
		Short:   "Count pending messages, all of them by topic, or those that are due in a window",
		Example: `  sundial admin delay count --until 24h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.open(); err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []pendingCount{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				c, err := a.countDelayed(cmd.Context(), m, &w)
				if err != nil {
					return err
				}
				doc = append(doc, c)
				rows = append(rows, table.Row{c.Broker, "all", c.Timed, c.Levels})
				for _, t := range c.Topics {
					rows = append(rows, table.Row{c.Broker, t.Topic, t.Pending, ""})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"broker", "topic", "timed", "levels"}, rows)
		},
	}
	w.register(cmd)
	return describe(cmd, []pendingCount{})
}

func (a *admin) countDelayed(ctx context.Context, m member, w *dueWindow) (pendingCount, error) {
	c := pendingCount{Broker: m.Name}
	if w.since == "" && w.until == "" {
		var s protocol.DelayState
		err := a.askBody(ctx, m.Addr, protocol.GetDelayState, nil, &s)
		c.Timed, c.Levels, c.Topics = s.Pending, s.Levels, s.Topics
		return c, err
	}
	counts, err := a.counts(ctx, m, []int64{w.from, w.to})
	if err == nil {
		c.Timed, c.Levels = counts.Timed[0], counts.Levels[0]
	}
	return c, err
}

// counts asks how many messages are due between one time and the next.
func (a *admin) counts(ctx context.Context, m member, at []int64) (*protocol.DelayedCounts, error) {
	var text []string
	for _, t := range at {
		text = append(text, fmt.Sprint(t))
	}
	c := &protocol.DelayedCounts{}
	err := a.askBody(ctx, m.Addr, protocol.CountDelayed, &protocol.CountDelayedHeader{At: strings.Join(text, ",")}, c)
	if err == nil && (len(c.Timed) != len(at)-1 || len(c.Levels) != len(at)-1) {
		err = fmt.Errorf("%s: asked for %d counts, got %d and %d", m.Name, len(at)-1, len(c.Timed), len(c.Levels))
	}
	return c, err
}

// asideMessage is a message that could not be delivered.
type asideMessage struct {
	Broker string `json:"broker"`
	protocol.DelayedAside
}

func delayAsideCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aside",
		Short: "List messages that cannot be delivered at all, and why",
		Long: `Lists the latest messages, a thousand at most of each broker, that were set aside:
their record cannot be read, they have no destination, or their topic was deleted. They are in the log
still: "sundial admin message get" shows one by its id.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []asideMessage{}
			var rows []table.Row
			total := int64(0)
			err = each(masters, func(m member) error {
				var list protocol.DelayedAsides
				err := a.askBody(cmd.Context(), m.Addr, protocol.ListDelayedAside, nil, &list)
				total += list.Total
				for _, it := range list.Messages {
					doc = append(doc, asideMessage{m.Name, it})
					rows = append(rows, table.Row{m.Name, it.Topic, it.Level, it.Offset, it.Log, stamp(it.Time), it.Reason})
				}
				return err
			})
			err = a.showUnless(err, doc, table.Row{"broker", "waited in", "level", "offset", "log offset", "set aside", "reason"}, rows)
			if total > int64(len(rows)) {
				a.done("%d were set aside since the store was made, these are the latest", total)
			}
			return err
		},
	}
	return describe(cmd, []asideMessage{})
}
