package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

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
	cmd := &cobra.Command{Use: "message", Short: "Look messages up, and send one"}
	cmd.AddCommand(messageGetCommand(a), messageFindCommand(a), messageListCommand(a), messageSendCommand(a))
	return cmd
}

// messageView is a message as the admin commands show it.
type messageView struct {
	ID         string            `json:"id"`
	Topic      string            `json:"topic"`
	Queue      mq.QueueID        `json:"queue"`
	Offset     mq.QueueOffset    `json:"queueOffset"`
	LogOffset  mq.LogOffset      `json:"commitLogOffset"`
	Born       int64             `json:"bornTimestamp"`
	BornHost   string            `json:"bornHost"`
	Stored     int64             `json:"storeTimestamp"`
	StoreHost  string            `json:"storeHost"`
	Retries    int32             `json:"reconsumeTimes"`
	SysFlag    mq.SysFlag        `json:"sysFlag"`
	Flag       int32             `json:"flag"`
	Properties map[string]string `json:"properties"`
	Size       int               `json:"bodySize"`
	Body       string            `json:"body,omitempty"`    // when it is text
	BodyHex    string            `json:"bodyHex,omitempty"` // when it is not
}

func viewOf(v record.View) messageView {
	m := messageView{
		ID: v.MessageID(), Topic: string(v.Topic()), Queue: v.QueueID(), Offset: v.QueueOffset(), LogOffset: v.LogOffset(),
		Born: v.BornTime(), BornHost: v.BornHost().String(), Stored: v.StoreTime(), StoreHost: v.StoreHost().String(),
		Retries: v.ReconsumeTimes(), SysFlag: v.SysFlag(), Flag: v.Flag(), Properties: map[string]string{}, Size: len(v.Body()),
	}
	for name, value := range record.EachProperty(v.Properties()) {
		m.Properties[string(name)] = string(value)
	}
	if body := v.Body(); utf8.Valid(body) && v.SysFlag()&mq.SysCompressed == 0 {
		m.Body = string(body)
	} else {
		m.BodyHex = hex.EncodeToString(body)
	}
	return m
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
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show one message by its id: an offset message id, or with --topic a unique key",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			host, at, err := mq.ParseMessageID(args[0])
			if err == nil {
				resp, askErr := a.ask(ctx, host.String(), protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(at)}, nil)
				if askErr == nil {
					v, _, err := record.Next(resp.Body)
					if err != nil {
						return err
					}
					m := viewOf(v)
					return m.show(a)
				}
				err = askErr
			}
			if topic == "" {
				if host.IsValid() {
					// Unique keys can look like offset message ids, and name no broker then.
					return errors.Join(fmt.Errorf("as an offset message id it is position %d on %s: %w", at, host, err), errors.New("if it is a unique key, say of which topic with --topic"))
				}
				return &usageError{errors.Join(err, errors.New("if it is a unique key, say of which topic with --topic"))}
			}
			found, err := a.query(ctx, topic, args[0], true, 1, 0, 1<<62)
			if err != nil {
				return err
			}
			return found[0].show(a)
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "the topic of a unique key")
	return cmd
}

// query looks messages up by key on all brokers that have the topic. Hits of
// another key with the same hash are left out.
func (a *admin) query(ctx context.Context, topic, key string, unique bool, most int32, begin, end int64) ([]messageView, error) {
	masters, err := a.mastersOf(ctx, topic)
	if err != nil {
		return nil, err
	}
	var found []messageView
	err = each(masters, func(m member) error {
		resp, err := a.ask(ctx, m.Addr, protocol.QueryMessage, &protocol.QueryMessageHeader{
			Topic: topic, Key: key, Max: most, Begin: begin, End: end, Unique: unique,
		}, nil)
		if errors.Is(err, mq.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		for b := resp.Body; len(b) > 0; {
			v, _, err := record.Next(b)
			if err != nil {
				return err
			}
			found = append(found, viewOf(v))
			b = b[len(v):]
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = notFound("no message of topic %s has key %s", topic, key)
	}
	return found, err
}

func messageFindCommand(a *admin) *cobra.Command {
	var topic, key string
	var most int32
	var unique bool
	cmd := &cobra.Command{
		Use:   "find --topic TOPIC --key KEY",
		Short: "Find messages by a key",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := a.query(cmd.Context(), topic, key, unique, most, 0, 1<<62)
			if err != nil {
				return err
			}
			return a.showMessages(found)
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "the topic")
	cmd.Flags().StringVar(&key, "key", "", "the key")
	cmd.Flags().Int32Var(&most, "max", 64, "how many at most")
	cmd.Flags().BoolVar(&unique, "unique", false, "the key is a unique key")
	for _, f := range []string{"topic", "key"} {
		_ = cmd.MarkFlagRequired(f) // fails only for a flag that is not there
	}
	return cmd
}

func (a *admin) showMessages(found []messageView) error {
	var rows []table.Row
	for _, m := range found {
		body := m.Body
		if m.BodyHex != "" {
			body = "hex " + m.BodyHex
		}
		if len(body) > 40 {
			body = body[:40] + "..."
		}
		rows = append(rows, table.Row{m.ID, m.Topic, m.Queue, m.Offset, stamp(m.Stored), m.Properties[mq.PropKeys], m.Properties[mq.PropTags], strconv.Quote(body)})
	}
	return a.show(found, table.Row{"id", "topic", "queue", "offset", "stored", "keys", "tags", "body"}, rows)
}

func messageListCommand(a *admin) *cobra.Command {
	var queue int32
	var from int64
	var most int32
	cmd := &cobra.Command{
		Use:   "list TOPIC",
		Short: "List the newest messages of a topic, or those of one queue from an offset on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if from >= 0 && (queue < 0 || len(masters) > 1) {
				return &usageError{errors.New("--from is an offset of one queue: say which with --queue, and with --broker when several brokers have the topic")}
			}
			if most < 1 {
				return &usageError{fmt.Errorf("--max is %d, it must be 1 or more", most)}
			}
			found := []messageView{}
			err = each(masters, func(m member) error {
				some, err := a.newest(cmd.Context(), m, args[0], queue, from, int(most))
				found = append(found, some...)
				return err
			})
			slices.SortStableFunc(found, func(x, y messageView) int { return cmp.Compare(x.Stored, y.Stored) })
			if from < 0 {
				found = found[max(0, len(found)-int(most)):]
			}
			if err != nil && len(found) == 0 {
				return err
			}
			return errors.Join(a.showMessages(found), err)
		},
	}
	cmd.Flags().Int32VarP(&queue, "queue", "q", -1, "this queue only (default: all)")
	cmd.Flags().Int64Var(&from, "from", -1, "the first offset, of one queue (default: the newest messages)")
	cmd.Flags().Int32Var(&most, "max", 32, "how many at most")
	return cmd
}

// newest reads the last messages of the queues of a topic on one broker, up to
// most of each; or of one queue those from an offset on.
func (a *admin) newest(ctx context.Context, m member, topic string, queue int32, from int64, most int) ([]messageView, error) {
	var stats protocol.TopicStats
	if err := a.askBody(ctx, m.Addr, protocol.GetTopicStatsInfo, &protocol.TopicHeader{Topic: topic}, &stats); err != nil {
		return nil, err
	}
	var found []messageView
	seen := false
	for _, k := range slices.SortedFunc(maps.Keys(stats.Queues), protocol.MessageQueue.Compare) {
		if queue >= 0 && k.QueueID != mq.QueueID(queue) {
			continue
		}
		seen = true
		q := stats.Queues[k]
		begin := q.Max - mq.QueueOffset(most)
		if from >= 0 {
			if begin = mq.QueueOffset(from); begin < q.Min || begin >= q.Max {
				return nil, notFound("queue %d of %s on %s has no offset %d, it has %d up to %d", k.QueueID, topic, m.Name, from, q.Min, q.Max-1)
			}
		}
		if begin = max(begin, q.Min); begin >= q.Max {
			continue
		}
		some, err := a.read(ctx, m.Addr, topic, k.QueueID, begin, most)
		found = append(found, some...)
		if err != nil {
			return found, err
		}
	}
	if !seen {
		return nil, notFound("topic %s has no queue %d on %s, it has %d", topic, queue, m.Name, len(stats.Queues))
	}
	return found, nil
}

// read reads up to most messages of a queue, as a tool that keeps no progress.
func (a *admin) read(ctx context.Context, addr, topic string, queue mq.QueueID, from mq.QueueOffset, most int) ([]messageView, error) {
	var found []messageView
	for len(found) < most {
		h := protocol.PullHeader{
			ConsumerGroup: mq.GroupTools, Topic: topic, QueueID: queue, QueueOffset: from, MaxMsgNums: int32(min(32, most-len(found))),
			SysFlag: mq.PullSubscription, Subscription: "*", ExpressionType: "TAG",
		}
		resp, err := a.send(ctx, addr, remoting.NewRequest(int32(protocol.PullMessage), h.Encode()...), nil)
		if refused, ok := errors.AsType[*protocol.ResponseError](err); ok && refused.Code == protocol.PullNotFound {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		var at protocol.PullResponse
		if err := protocol.DecodePullResponse(resp, &at); err != nil {
			return found, err
		}
		from = at.Next
		for b := resp.Body; len(b) > 0; {
			v, _, err := record.Next(b)
			if err != nil {
				return found, err
			}
			found = append(found, viewOf(v))
			b = b[len(v):]
		}
	}
	return found, nil
}

func messageSendCommand(a *admin) *cobra.Command {
	var body, keys, tags string
	var queue int32
	var level int
	cmd := &cobra.Command{
		Use:   "send TOPIC",
		Short: "Send one message",
		Args:  cobra.ExactArgs(1),
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
			props := record.AppendProperty(nil, mq.PropKeys, keys)
			props = record.AppendProperty(props, mq.PropTags, tags)
			if level > 0 {
				props = record.AppendProperty(props, mq.PropDelay, strconv.Itoa(level))
			}
			h := protocol.SendHeader{
				ProducerGroup: mq.GroupInnerProducer, Topic: args[0], DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4,
				QueueID: mq.QueueID(queue), BornTime: time.Now().UnixMilli(), Properties: bin.String(props),
			}
			resp, err := a.send(cmd.Context(), masters[0].Addr, remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), []byte(body))
			if err != nil {
				return err
			}
			var at protocol.SendResponse
			if err := protocol.DecodeSendResponse(resp, &at); err != nil {
				return err
			}
			if a.json {
				return a.document(map[string]any{"id": at.MsgID, "queue": at.QueueID, "queueOffset": at.QueueOffset, "uniqueKey": at.TransactionID})
			}
			a.done("stored as %s in queue %d at %d", at.MsgID, at.QueueID, at.QueueOffset)
			return nil
		},
	}
	cmd.Flags().StringVar(&body, "body", "", "the body")
	cmd.Flags().StringVar(&keys, "keys", "", "keys, separated by blanks")
	cmd.Flags().StringVar(&tags, "tags", "", "the tag")
	cmd.Flags().Int32VarP(&queue, "queue", "q", -1, "the queue (default: any)")
	cmd.Flags().IntVar(&level, "level", 0, "delay level; above the broker's last it is the last, as RocketMQ has it")
	return cmd
}
