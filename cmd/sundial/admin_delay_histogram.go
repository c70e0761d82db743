package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/protocol"
)

// delayHistogram is what waits, by due time.
type delayHistogram struct {
	By      string        `json:"by"`
	Bars    []delayBar    `json:"bars"` // the first is what is overdue, the last what comes later
	Brokers []brokerDelay `json:"brokers"`
}

// delayBar is how many messages are due in [From, To).
type delayBar struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Timed  int64 `json:"timed"`
	Levels int64 `json:"levels"`
}

type brokerDelay struct {
	Broker string `json:"broker"`
	protocol.DelayState
}

func delayHistogramCommand(a *admin) *cobra.Command {
	var by string
	var bars int
	cmd := &cobra.Command{
		Use:   "histogram",
		Short: "Plot what waits by due time, with the busiest topics and how late deliveries are",
		Example: `  sundial admin delay histogram
  sundial admin delay histogram --by day --bars 31`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := barBounds(by, bars, time.Now())
			if err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := &delayHistogram{By: by, Brokers: []brokerDelay{}, Bars: make([]delayBar, len(at)-1)}
			for i := range doc.Bars {
				doc.Bars[i].From, doc.Bars[i].To = at[i], at[i+1]
			}
			err = each(masters, func(m member) error { return a.addDelays(cmd.Context(), m, at, doc) })
			if len(doc.Brokers) == 0 {
				return err
			}
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			doc.plot(a.out)
			return errors.Join(doc.tables(a), err)
		},
	}
	cmd.Flags().StringVar(&by, "by", "hour", "what a bar is: minute, hour or day")
	cmd.Flags().IntVar(&bars, "bars", 24, "how many bars, from 1 to 366")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"minute", "hour", "day"}, cobra.ShellCompDirectiveNoFileComp))
	return describe(cmd, delayHistogram{})
}

// barBounds are the times between bars: what is before now, bars by the local
// calendar, and what comes after them.
func barBounds(by string, bars int, now time.Time) ([]int64, error) {
	if bars < 1 || bars > 366 {
		return nil, &usageError{fmt.Errorf("--bars is %d, it must be from 1 to 366", bars)}
	}
	var start time.Time
	var next func(time.Time) time.Time
	switch by {
	case "minute":
		start, next = now.Truncate(time.Minute), func(t time.Time) time.Time { return t.Add(time.Minute) }
	case "hour":
		start = time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), 0, 0, 0, now.Location())
		next = func(t time.Time) time.Time { return t.Add(time.Hour) }
	case "day": // 23 or 25 hours long where clocks are changed
		start = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
		next = func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	default:
		return nil, &usageError{fmt.Errorf("--by is %q, it must be minute, hour or day", by)}
	}
	at := []int64{0, now.UnixMilli()}
	for range bars {
		start = next(start)
		at = append(at, start.UnixMilli())
	}
	return append(at, 1<<62), nil
}

func (a *admin) addDelays(ctx context.Context, m member, at []int64, doc *delayHistogram) error {
	c, err := a.counts(ctx, m, at)
	if err != nil {
		return err
	}
	b := brokerDelay{Broker: m.Name}
	if err := a.askBody(ctx, m.Addr, protocol.GetDelayState, nil, &b.DelayState); err != nil {
		return err
	}
	for i := range doc.Bars {
		doc.Bars[i].Timed += c.Timed[i]
		doc.Bars[i].Levels += c.Levels[i]
	}
	doc.Brokers = append(doc.Brokers, b)
	return nil
}

// plotWidth is how long the longest bar is.
const plotWidth = 48

// plot draws a line a bar; a bar that is not nothing has at least one block.
func (h *delayHistogram) plot(out io.Writer) {
	layout := map[string]string{"minute": "Mon 15:04", "hour": "Mon 02 Jan 15h", "day": "Mon 02 Jan 2006"}[h.By]
	most := int64(1)
	for _, b := range h.Bars {
		most = max(most, b.Timed+b.Levels)
	}
	length := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(float64(n)/float64(most)*plotWidth))
	}
	for i, b := range h.Bars {
		label := time.UnixMilli(b.From).Format(layout)
		switch {
		case i == 0:
			label = "overdue"
		case i == len(h.Bars)-1:
			label = "later"
		case i == 1:
			label = "now"
		}
		bar := strings.Repeat("█", length(b.Timed)) + strings.Repeat("░", length(b.Levels))
		fmt.Fprintf(out, "%16s %9d %s\n", label, b.Timed+b.Levels, bar)
	}
	fmt.Fprintf(out, "█ timed  ░ delay levels\n\n")
}

// topTopics is how many topics are shown.
const topTopics = 10

func (h *delayHistogram) tables(a *admin) error {
	var rows, topics []table.Row
	var parked []table.Row
	for _, b := range h.Brokers {
		first := "-"
		if b.First != nil {
			first = b.First.Topic + " " + b.First.Unique
		}
		l := b.Minute
		rows = append(rows, table.Row{
			b.Broker, b.Pending, b.Levels, stamp(b.NextDue), time.Duration(b.Overdue) * time.Millisecond, first,
			l.Count, fmt.Sprintf("%.2f / %.2f / %.2f", l.P50, l.P99, l.Max), b.Aside,
		})
		for _, t := range b.Topics[:min(len(b.Topics), topTopics)] {
			topics = append(topics, table.Row{b.Broker, t.Topic, t.Pending})
		}
		for _, p := range b.Parked {
			parked = append(parked, table.Row{b.Broker, p.Topic, p.Queue, p.Messages, stamp(p.Since), p.Error})
		}
	}
	err := a.show(nil, table.Row{"broker", "timed", "levels", "next due", "overdue by", "first timed", "delivered last minute", "late ms p50 / p99 / max", "set aside"}, rows)
	if len(topics) > 0 {
		err = errors.Join(err, a.show(nil, table.Row{"broker", "busiest topics", "timed"}, topics))
	}
	if len(parked) > 0 {
		err = errors.Join(err, a.show(nil, table.Row{"broker", "does not take its messages", "queue", "messages", "since", "error"}, parked))
	}
	return err
}
