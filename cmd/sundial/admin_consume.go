package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// followWait is for how long one pull of a queue waits for a message.
const followWait = 15 * time.Second

func messageConsumeCommand(a *admin) *cobra.Command {
	c := consumption{admin: a, w: window{queue: -1}}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Read along with a topic: what comes from now on, or what is there and then what comes",
		Long: `Writes each message on a line as it comes, or with --json as one JSON document on a
line, until it is interrupted or has written --max. It keeps no progress and takes
nothing from anybody: other groups get the same messages.`,
		Example: `  sundial admin message consume Orders
  sundial admin message consume Orders --since -1h --tag paid --json | jq .body
  sundial admin message consume Orders --queue 0 --from 4711 --end`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args[0])
		},
	}
	c.w.register(cmd, a)
	cmd.Flags().Int32VarP(&c.w.queue, "queue", "q", -1, "this queue only (default: all)")
	cmd.Flags().Int64Var(&c.from, "from", -1, "the first offset, of one queue")
	cmd.Flags().IntVar(&c.most, "max", 0, "end after so many messages (default: never)")
	cmd.Flags().BoolVar(&c.end, "end", false, "end where the queues end now, and begin where they begin unless --since or --from says otherwise")
	return describe(cmd, messageView{})
}

// consumption is one run of that command.
type consumption struct {
	*admin
	w    window
	from int64
	most int
	end  bool
	mu   struct {
		sync.Mutex
		written int
	}
}

func (c *consumption) run(ctx context.Context, topic string) error {
	if err := c.w.open(); err != nil {
		return err
	}
	masters, err := c.mastersOf(ctx, topic)
	if err != nil {
		return err
	}
	if c.from >= 0 && (c.w.queue < 0 || len(masters) > 1) {
		return &usageError{errors.New("--from is an offset of one queue: say which with --queue, and with --broker when several brokers have the topic")}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, m := range masters {
		queues, err := c.ranges(ctx, m, topic, c.w.queue)
		if err != nil {
			return err
		}
		for _, q := range queues {
			group.Go(func() error { return c.follow(groupCtx, m, topic, q) })
		}
	}
	if err := group.Wait(); err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		return err
	}
	return nil
}

// follow reads one queue until something ends it.
func (c *consumption) follow(ctx context.Context, m member, topic string, q queueRange) error {
	from := q.max
	var err error
	switch {
	case c.from >= 0:
		from = mq.QueueOffset(c.from)
	case c.w.since != "":
		from, err = c.w.start(ctx, c.admin, m, topic, q.id, q.min)
	case c.end:
		from = q.min
	}
	if err != nil {
		return err
	}
	for !c.end || from < q.max {
		next, err := c.pull(ctx, m.Addr, topic, q.id, from, 32, followWait, func(v record.View) error {
			if c.end && v.QueueOffset() >= q.max || !c.w.takes(v) {
				return nil
			}
			return c.write(v)
		})
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

func (c *consumption) write(v record.View) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most > 0 && c.mu.written >= c.most {
		return errEnough
	}
	c.mu.written++
	view := viewOf(v)
	if c.json {
		e := json.NewEncoder(c.out)
		e.SetEscapeHTML(false)
		if err := e.Encode(view); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(c.out, "%s  %s  queue %d @%d  %s  %s\n", stamp(view.Stored), view.ID, view.Queue, view.Offset, userProperties(view.Properties), view.brief(false)); err != nil {
		return err
	}
	if c.most > 0 && c.mu.written >= c.most {
		return errEnough
	}
	return nil
}

// userProperties writes what the producer said of a message: keys, tag and its own
// properties, without RocketMQ's.
func userProperties(all map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(all) {
		if k == mq.PropKeys || k == mq.PropTags || strings.ToUpper(k) != k {
			parts = append(parts, k+"="+all[k])
		}
	}
	return strings.Join(parts, " ")
}

// traceEvent is one thing that happened to a message, as clients told it.
type traceEvent struct {
	What    string `json:"event"` // send, consume begins, consumed, transaction ends, recall
	Time    int64  `json:"timestamp"`
	Group   string `json:"group"`
	Client  string `json:"client"`          // the host it was told from
	Topic   string `json:"topic,omitempty"` // of a send
	ID      string `json:"id"`
	Keys    string `json:"keys,omitempty"`
	Tags    string `json:"tags,omitempty"`
	Cost    int64  `json:"costMillis"`         // of a send or a consumption
	Success bool   `json:"success"`            // true too where only the beginning is told
	Retries int    `json:"retries,omitempty"`  // before this consumption
	State   string `json:"state,omitempty"`    // of a transaction
	Request string `json:"request,omitempty"`  // joins beginning and end of a consumption
	Offset  string `json:"offsetId,omitempty"` // offset message id of a send
}

func messageTraceCommand(a *admin) *cobra.Command {
	var topic string
	var most int32
	cmd := &cobra.Command{
		Use:   "trace ID-OR-KEY",
		Short: "Show what became of a message, as producers and consumers traced it",
		Long: `Reads the trace topic for a unique key or a key: who sent the message when, and who
consumed it with which outcome. Only clients whose trace is switched on tell that.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), topic)
			if err != nil {
				return err
			}
			found, err := a.query(cmd.Context(), masters, topic, args[0], false, most, 0, 1<<62)
			doc := []traceEvent{}
			for i := range found {
				for _, e := range traceEvents(string(found[i].bytes()), found[i].BornHost) {
					if e.ID == args[0] || slices.Contains(strings.Fields(e.Keys), args[0]) {
						doc = append(doc, e)
					}
				}
			}
			if len(doc) == 0 {
				return cmp.Or(err, notFound("nobody traced %s in topic %s: producers and consumers do when their trace is switched on", args[0], topic))
			}
			slices.SortStableFunc(doc, func(x, y traceEvent) int { return cmp.Compare(x.Time, y.Time) })
			var rows []table.Row
			for _, e := range doc {
				rows = append(rows, table.Row{stamp(e.Time), e.What, e.Group, e.Client, e.Topic, e.ID, e.Keys, e.Cost, onOff(e.Success), e.State})
			}
			return a.showUnless(err, doc, table.Row{"when", "what", "group", "client", "topic", "id", "keys", "ms", "success", "state"}, rows)
		},
	}
	cmd.Flags().StringVar(&topic, "trace-topic", mq.TopicTrace, "the topic traces are in")
	cmd.Flags().Int32Var(&most, "max", 64, "how many trace messages to read at most")
	return describe(cmd, []traceEvent{})
}

// traceEvents reads the body of a trace message: events end with byte 2, their
// fields with byte 1. What is not understood is left out.
func traceEvents(body, client string) []traceEvent {
	var all []traceEvent
	for text := range strings.SplitSeq(body, "\x02") {
		f := strings.Split(text, "\x01")
		at := func(i int) string {
			if i < len(f) {
				return f[i]
			}
			return ""
		}
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(at(i), 10, 64) // 0 is as good as nothing said
			return n
		}
		e := traceEvent{Client: client, Success: true}
		switch at(0) {
		case "Pub":
			e.What, e.Time, e.Group, e.Topic, e.ID, e.Tags, e.Keys, e.Cost = "send", number(1), at(3), at(4), at(5), at(6), at(7), number(10)
			e.Offset, e.Success = at(12), at(13) == "true"
			if len(f) == 13 {
				e.Offset, e.Success = "", at(12) == "true"
			}
		case "SubBefore":
			e.What, e.Time, e.Group, e.Request, e.ID, e.Retries, e.Keys = "consume begins", number(1), at(3), at(4), at(5), int(number(6)), at(7)
		case "SubAfter":
			e.What, e.Request, e.ID, e.Cost, e.Success, e.Keys, e.Time, e.Group = "consumed", at(1), at(2), number(3), at(4) == "true", at(5), number(7), at(8)
		case "EndTransaction":
			e.What, e.Time, e.Group, e.Topic, e.ID, e.Tags, e.Keys, e.State = "transaction ends", number(1), at(3), at(4), at(5), at(6), at(7), at(11)
		case "Recall":
			e.What, e.Time, e.Group, e.Topic, e.ID, e.Success = "recall", number(1), at(3), at(4), at(5), at(6) == "true"
		default:
			continue
		}
		all = append(all, e)
	}
	return all
}
