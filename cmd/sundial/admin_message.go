package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func messageCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "message", Short: "Look messages up, read along, send one"}
	cmd.AddCommand(messageGetCommand(a), messageFindCommand(a), messageListCommand(a), messageConsumeCommand(a), messageTraceCommand(a), messageSendCommand(a))
	return cmd
}

// show writes the message as two columns.
func (m *messageView) show(a *admin) error {
	rows := []table.Row{
		{"id", m.ID}, {"topic", m.Topic}, {"queue", m.Queue}, {"offset", m.Offset}, {"log offset", m.LogOffset},
		{"born", stamp(m.Born) + " at " + m.BornHost}, {"stored", stamp(m.Stored) + " at " + m.StoreHost}, {"retries", m.Retries},
	}
	for _, k := range sortedKeys(m.Properties) {
		rows = append(rows, table.Row{k, folded(m.Properties[k])})
	}
	body := m.Body
	if m.BodyHex != "" {
		body = "hex " + m.BodyHex
	}
	if len(body) > 2000 {
		body = body[:2000] + "..."
	}
	rows = append(rows, table.Row{fmt.Sprintf("body, %d bytes", m.Size), folded(body)})
	return a.show(m, table.Row{"what", "value"}, rows)
}

// folded breaks a long value into lines, so that its table stays on a screen.
func folded(value string) string { return text.WrapHard(value, 100) }

func messageGetCommand(a *admin) *cobra.Command {
	var topic string
	var body, who bool
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show one message by its id: an offset message id, or with --topic a unique key",
		Example: `  sundial admin message get 7F00000100002A9F000000000000A1B2
  sundial admin message get AC1F0A2B00012A139D8F5C1E0000 --topic Orders --groups
  sundial admin message get 7F00000100002A9F000000000000A1B2 --body > order.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.lookUp(cmd.Context(), topic, args[0])
			if err != nil {
				return err
			}
			if body {
				_, err := a.out.Write(m.bytes())
				return err
			}
			shown := shownMessage{messageView: *m}
			if who {
				if shown.Groups, err = a.consumed(cmd.Context(), m); err != nil {
					return err
				}
			}
			return errors.Join(shown.show(a), a.showConsumed(shown.Groups, who))
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "the topic of a unique key")
	cmd.Flags().BoolVar(&body, "body", false, "write nothing but the body, as its producer had it")
	cmd.Flags().BoolVar(&who, "groups", false, "show which groups have consumed it")
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
	return describe(cmd, shownMessage{})
}

// shownMessage is a message with what became of it.
type shownMessage struct {
	messageView
	Groups []groupPassed `json:"groups,omitempty"`
}

// show is that of messageView, with the groups in the JSON document.
func (m *shownMessage) show(a *admin) error {
	if a.json {
		return a.document(m)
	}
	return m.messageView.show(a)
}

// bytes is the body as its producer had it.
func (m *messageView) bytes() []byte {
	if m.BodyHex == "" {
		return []byte(m.Body)
	}
	b, _ := hex.DecodeString(m.BodyHex) // it was made by the encoder
	return b
}

// lookUp finds one message by an offset message id or, with its topic, by its
// unique key.
func (a *admin) lookUp(ctx context.Context, topic, id string) (*messageView, error) {
	host, at, err := mq.ParseMessageID(id)
	if err == nil {
		addr := host.String()
		resp, askErr := a.ask(ctx, addr, protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(at), Topic: topic}, nil)
		if askErr == nil {
			found, err := viewsOf(resp.Body)
			if err != nil {
				return nil, err
			}
			if len(found) == 1 {
				return &found[0], nil
			}
			askErr = notFound("%s has no message there", addr)
		}
		err = askErr
	}
	if topic == "" {
		hint := errors.New("if it is a unique key, say of which topic with --topic")
		if host.IsValid() {
			// Unique keys can look like offset message ids, and name no broker then.
			return nil, errors.Join(fmt.Errorf("as an offset message id it is position %d on %s: %w", at, host, err), hint)
		}
		return nil, &usageError{errors.Join(err, hint)}
	}
	masters, err := a.mastersOf(ctx, topic)
	if err != nil {
		return nil, err
	}
	found, err := a.query(ctx, masters, topic, id, true, 32, 0, 1<<62)
	if len(found) == 0 {
		return nil, cmp.Or(err, notFound("no message of topic %s has the unique key %s", topic, id))
	}
	return &found[0], nil
}

// groupPassed says of a group how far it is in the queue of a message.
type groupPassed struct {
	Group     string         `json:"group"`
	Members   int            `json:"members"`
	Committed mq.QueueOffset `json:"consumerOffset"` // below 0: not known
	Passed    bool           `json:"consumed"`       // the message lies below it
}

// consumed asks which groups consume the topic of a message, and whether they are
// past it.
func (a *admin) consumed(ctx context.Context, m *messageView) ([]groupPassed, error) {
	var list protocol.GroupList
	if err := a.askBody(ctx, m.StoreHost, protocol.QueryTopicConsumeByWho, &protocol.TopicHeader{Topic: m.Topic}, &list); err != nil {
		return nil, err
	}
	all := []groupPassed{}
	at := member{Name: m.StoreHost, Addr: m.StoreHost}
	for _, group := range slices.Sorted(slices.Values(list.Groups)) {
		conns, err := a.connections(ctx, at, group)
		if err != nil {
			return all, err
		}
		queues, err := a.progress(ctx, at, group, m.Topic)
		if err != nil {
			return all, err
		}
		g := groupPassed{Group: group, Members: len(conns.Connections), Committed: -1}
		for _, q := range queues {
			if q.Queue == m.Queue {
				g.Committed, g.Passed = q.Committed, q.Committed > m.Offset
			}
		}
		all = append(all, g)
	}
	return all, nil
}

func (a *admin) showConsumed(all []groupPassed, wanted bool) error {
	if a.json || !wanted {
		return nil
	}
	var rows []table.Row
	for _, g := range all {
		rows = append(rows, table.Row{g.Group, g.Members, cellOffset(g.Committed), onOff(g.Passed)})
	}
	return a.show(nil, table.Row{"group", "members", "committed", "consumed it"}, rows)
}

func messageFindCommand(a *admin) *cobra.Command {
	var topic, key string
	var most int32
	var unique, full bool
	w := window{queue: -1}
	cmd := &cobra.Command{
		Use:     "find --topic TOPIC --key KEY",
		Short:   "Find messages by a key",
		Example: `  sundial admin message find --topic Orders --key order-4711 --since -24h`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.open(); err != nil {
				return err
			}
			masters, err := a.mastersOf(cmd.Context(), topic)
			if err != nil {
				return err
			}
			found, err := a.query(cmd.Context(), masters, topic, key, unique, most, w.begin, w.end)
			if len(found) == 0 {
				return cmp.Or(err, notFound("no message of topic %s has key %s", topic, key))
			}
			return errors.Join(a.showMessages(found, full), err)
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "the topic")
	cmd.Flags().StringVar(&key, "key", "", "the key")
	cmd.Flags().StringVar(&w.since, "since", "", "only what was stored from this `TIME` on")
	cmd.Flags().StringVar(&w.until, "until", "", "only what was stored before this `TIME`")
	cmd.Flags().Int32Var(&most, "max", 64, "how many at most")
	cmd.Flags().BoolVar(&unique, "unique", false, "the key is a unique key")
	cmd.Flags().BoolVar(&full, "full", false, "show whole bodies")
	for _, f := range []string{"topic", "key"} {
		_ = cmd.MarkFlagRequired(f) // fails only for a flag that is not there
	}
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
	return describe(cmd, []messageView{})
}

func (a *admin) showMessages(found []messageView, full bool) error {
	var rows []table.Row
	for _, m := range found {
		rows = append(rows, table.Row{m.ID, m.Topic, m.Queue, m.Offset, stamp(m.Stored), m.Properties[mq.PropKeys], m.Properties[mq.PropTags], m.brief(full)})
	}
	return a.show(found, table.Row{"id", "topic", "queue", "offset", "stored", "keys", "tags", "body"}, rows)
}

// brief is the body on a line, whole or its beginning.
func (m *messageView) brief(full bool) string {
	body := m.Body
	if m.BodyHex != "" {
		body = "hex " + m.BodyHex
	}
	if full {
		return folded(strconv.Quote(body))
	}
	if len(body) > 40 {
		body = strings.ToValidUTF8(body[:40], "") + "..."
	}
	return strconv.Quote(body)
}

func messageListCommand(a *admin) *cobra.Command {
	var from int64
	var most int
	var full bool
	w := window{queue: -1}
	cmd := &cobra.Command{
		Use:   "list TOPIC",
		Short: "List messages of a topic: the newest, those of a time, or those of one queue from an offset on",
		Example: `  sundial admin message list Orders --max 100
  sundial admin message list Orders --since -15m --tag paid --full
  sundial admin message list Orders --queue 3 --from 4711 --max 1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if from >= 0 && (w.queue < 0 || len(masters) > 1) {
				return &usageError{errors.New("--from is an offset of one queue: say which with --queue, and with --broker when several brokers have the topic")}
			}
			if most < 1 {
				return &usageError{fmt.Errorf("--max is %d, it must be 1 or more", most)}
			}
			if err := w.open(); err != nil {
				return err
			}
			found := []messageView{}
			err = each(masters, func(m member) error {
				var some []messageView
				var err error
				if from < 0 && w.narrow() {
					some, err = a.within(cmd.Context(), m, args[0], &w, most)
				} else {
					some, err = a.newest(cmd.Context(), m, args[0], &w, from, most)
				}
				found = append(found, some...)
				return err
			})
			slices.SortStableFunc(found, func(x, y messageView) int { return cmp.Compare(x.Stored, y.Stored) })
			switch {
			case from < 0 && !w.narrow():
				found = found[max(0, len(found)-most):]
			case len(found) > most:
				found = found[:most]
			}
			if err != nil && len(found) == 0 {
				return err
			}
			return errors.Join(a.showMessages(found, full), err)
		},
	}
	w.register(cmd, a)
	cmd.Flags().Int32VarP(&w.queue, "queue", "q", -1, "this queue only (default: all)")
	cmd.Flags().Int64Var(&from, "from", -1, "the first offset, of one queue (default: the newest messages)")
	cmd.Flags().IntVar(&most, "max", 32, "how many at most")
	cmd.Flags().BoolVar(&full, "full", false, "show whole bodies")
	return describe(cmd, []messageView{})
}

// within reads the first messages of a window on one broker, up to most of each
// queue.
func (a *admin) within(ctx context.Context, m member, topic string, w *window, most int) ([]messageView, error) {
	var found []messageView
	counts := map[mq.QueueID]int{}
	err := a.scanWindow(ctx, m, topic, w, func(v record.View) error {
		found = append(found, viewOf(v))
		if counts[v.QueueID()]++; counts[v.QueueID()] >= most {
			return errEnough
		}
		return nil
	})
	return found, err
}

// newest reads the last messages of the queues of a topic on one broker, up to
// most of each; or of one queue those from an offset on.
func (a *admin) newest(ctx context.Context, m member, topic string, w *window, from int64, most int) ([]messageView, error) {
	all, err := a.ranges(ctx, m, topic, w.queue)
	if err != nil {
		return nil, err
	}
	var found []messageView
	for _, q := range all {
		begin := q.max - mq.QueueOffset(most)
		if from >= 0 {
			if begin = mq.QueueOffset(from); begin < q.min || begin >= q.max {
				return nil, notFound("queue %d of %s on %s has no offset %d, it has %d up to %d", q.id, topic, m.Name, from, q.min, q.max-1)
			}
		}
		n := 0
		_, err := a.scan(ctx, m.Addr, topic, q.id, max(begin, q.min), q.max, func(v record.View) error {
			if !w.takes(v) {
				return nil
			}
			if n++; n > most {
				return errEnough
			}
			found = append(found, viewOf(v))
			return nil
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func messageSendCommand(a *admin) *cobra.Command {
	var body, file, keys, tags string
	var properties []string
	var queue int32
	var level int
	var due string
	cmd := &cobra.Command{
		Use:   "send TOPIC",
		Short: "Send one message",
		Example: `  sundial admin message send Orders --body '{"id": 4711}' --keys order-4711 --tags new
  sundial admin message send Orders --body-file order.json --property region=eu --level 3
  sundial admin message send Orders --body 'remind me' --due 15m`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if level < 0 || queue < -1 {
				return &usageError{errors.New("--level and --queue must not be negative")}
			}
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if _, missing := errors.AsType[*notFoundError](err); missing {
				masters, err = a.masters(cmd.Context()) // it may be made by sending
			}
			if err != nil {
				return err
			}
			payload := []byte(body)
			if file != "" {
				if payload, err = os.ReadFile(file); err != nil {
					return &usageError{err}
				}
			}
			props := record.AppendProperty(nil, mq.PropKeys, keys)
			props = record.AppendProperty(props, mq.PropTags, tags)
			if level > 0 {
				props = record.AppendProperty(props, mq.PropDelay, strconv.Itoa(level))
			}
			if due != "" {
				at, err := parseDue("--due", due, time.Now())
				if err != nil {
					return err
				}
				props = record.AppendProperty(props, mq.PropTimerDeliverMs, strconv.FormatInt(at, 10))
			}
			for _, p := range properties {
				name, value, ok := strings.Cut(p, "=")
				if !ok || name == "" {
					return &usageError{fmt.Errorf("--property is %q, it must be NAME=VALUE", p)}
				}
				props = record.AppendProperty(props, name, value)
			}
			h := protocol.SendHeader{
				ProducerGroup: mq.GroupInnerProducer, Topic: args[0], DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4,
				QueueID: mq.QueueID(queue), BornTime: time.Now().UnixMilli(), Properties: bin.String(props),
			}
			resp, err := a.send(cmd.Context(), masters[0].Addr, remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), payload)
			if err != nil {
				return err
			}
			var at protocol.SendResponse
			if err := protocol.DecodeSendResponse(resp, &at); err != nil {
				return err
			}
			if a.json {
				return a.document(sentMessage{masters[0].Name, at.MsgID, at.QueueID, at.QueueOffset, at.TransactionID})
			}
			a.done("stored as %s in queue %d at %d", at.MsgID, at.QueueID, at.QueueOffset)
			return nil
		},
	}
	cmd.Flags().StringVar(&body, "body", "", "the body")
	cmd.Flags().StringVar(&file, "body-file", "", "the body is what is in this `FILE`")
	cmd.Flags().StringArrayVar(&properties, "property", nil, "a property `NAME=VALUE`; may be repeated")
	cmd.Flags().StringVar(&keys, "keys", "", "keys, separated by blanks")
	cmd.Flags().StringVar(&tags, "tags", "", "the tag")
	cmd.Flags().Int32VarP(&queue, "queue", "q", -1, "the queue (default: any)")
	cmd.Flags().IntVar(&level, "level", 0, "delay level; above the broker's last it is the last, as RocketMQ has it")
	cmd.Flags().StringVar(&due, "due", "", "deliver it at this `TIME`, or so long from now, such as 15m")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
	cmd.MarkFlagsMutuallyExclusive("level", "due")
	return describe(cmd, sentMessage{})
}

// sentMessage is what the broker says of a message it took.
type sentMessage struct {
	Broker    string         `json:"broker"`
	ID        string         `json:"id"`
	Queue     mq.QueueID     `json:"queue"`
	Offset    mq.QueueOffset `json:"queueOffset"`
	UniqueKey string         `json:"uniqueKey"`
}
