package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// Properties of dead letters and of their replays.
const (
	propDeadReason = "SUNDIAL_DEAD_REASON"
	propReplayOf   = "REPLAY_OF" // offset message id of the dead letter that was put back
)

func dlqCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "dlq", Short: "List dead letters of a group, and put them back"}
	cmd.AddCommand(dlqListCommand(a), dlqRedriveCommand(a))
	return cmd
}

// dead reads the newest dead letters of a group on one broker, oldest first.
func (a *admin) dead(ctx context.Context, m member, group string, most int) ([]messageView, error) {
	topic := mq.DLQTopic(group)
	var end, begin protocol.OffsetResponse
	h := &protocol.QueueHeader{Topic: topic}
	if err := a.askFields(ctx, m.Addr, protocol.GetMaxOffset, h, &end); err != nil {
		if errors.Is(err, mq.ErrNoTopic) {
			return nil, nil
		}
		return nil, err
	}
	if err := a.askFields(ctx, m.Addr, protocol.GetMinOffset, h, &begin); err != nil {
		return nil, err
	}
	from := begin.Offset
	if most > 0 {
		from = max(from, end.Offset-int64(most))
	} else {
		most = int(end.Offset - from)
	}
	return a.read(ctx, m.Addr, topic, 0, mq.QueueOffset(from), most)
}

func dlqListCommand(a *admin) *cobra.Command {
	var most int
	cmd := &cobra.Command{
		Use:   "list GROUP",
		Short: "List the newest dead letters of a group",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []messageView{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				letters, err := a.dead(cmd.Context(), m, args[0], most)
				doc = append(doc, letters...)
				for _, l := range letters {
					rows = append(rows, table.Row{l.ID, l.Properties[mq.PropRetryTopic], l.Properties[mq.PropOriginMessageID], l.Retries,
						stamp(l.Stored), l.Properties[mq.PropKeys], l.Properties[propDeadReason]})
				}
				return err
			})
			return a.showUnless(err, doc, table.Row{"id", "topic", "first id", "retries", "dead since", "keys", "reason"}, rows)
		},
	}
	cmd.Flags().IntVar(&most, "max", 32, "how many of each broker at most; 0 is all")
	return cmd
}

func dlqRedriveCommand(a *admin) *cobra.Command {
	var id, key string
	var all, toGroup bool
	cmd := &cobra.Command{
		Use:   "redrive GROUP (--id ID | --key KEY | --all)",
		Short: "Send dead letters of a group to their topic again",
		Long: `Sends dead letters to the topic they came from, where every group gets them, or with
--to-group to the group's own retry topic. Body, flag, keys, tag and unique key stay
as they are, the first id too; REPLAY_OF names the dead letter, which stays.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			said := 0
			for _, is := range []bool{id != "", key != "", all} {
				if is {
					said++
				}
			}
			if said != 1 {
				return &usageError{errors.New("say which: one of --id, --key and --all")}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			type sent struct {
				Dead  string `json:"dead"`
				Topic string `json:"topic"`
				ID    string `json:"id"`
			}
			doc := []sent{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				letters, err := a.dead(cmd.Context(), m, args[0], 0)
				if err != nil {
					return err
				}
				for _, l := range letters {
					if wanted := all || l.ID == id || key != "" && l.Properties[mq.PropKeys] == key; !wanted {
						continue
					}
					topic := l.Properties[mq.PropRetryTopic]
					if toGroup || topic == "" {
						topic = mq.RetryTopic(args[0])
					}
					newID, err := a.replay(cmd.Context(), m, l, topic)
					if err != nil {
						return fmt.Errorf("dead letter %s: %w", l.ID, err)
					}
					doc = append(doc, sent{l.ID, topic, newID})
					rows = append(rows, table.Row{l.ID, topic, newID})
				}
				return nil
			})
			if err == nil && len(doc) == 0 {
				return notFound("group %s has no such dead letter", args[0])
			}
			return a.showUnless(err, doc, table.Row{"dead letter", "sent to", "as"}, rows)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the dead letter with this id")
	cmd.Flags().StringVar(&key, "key", "", "those with these keys")
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	cmd.Flags().BoolVar(&toGroup, "to-group", false, "to this group alone")
	return cmd
}

// replay sends the record of a dead letter, whole and unchanged but for the
// properties that made it one.
func (a *admin) replay(ctx context.Context, m member, l messageView, topic string) (string, error) {
	resp, err := a.ask(ctx, m.Addr, protocol.ViewMessageByID, &protocol.ViewMessageHeader{Offset: int64(l.LogOffset)}, nil)
	if err != nil {
		return "", err
	}
	v, _, err := record.Next(resp.Body)
	if err != nil {
		return "", err
	}
	props := record.AppendWithout(nil, v.Properties(), mq.PropDelay, mq.PropRealTopic, mq.PropRealQueueID, mq.PropReconsumeTime, mq.PropMaxReconsume,
		mq.PropWait, "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID", propDeadReason, propReplayOf)
	props = record.AppendProperty(props, propReplayOf, l.ID)
	h := protocol.SendHeader{
		ProducerGroup: mq.GroupInnerProducer, Topic: topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, QueueID: -1,
		SysFlag: v.SysFlag() & (mq.SysCompressed | mq.SysCompressType | mq.SysMultiTags), Flag: v.Flag(), BornTime: time.Now().UnixMilli(),
		Properties: bin.String(props),
	}
	if resp, err = a.send(ctx, m.Addr, remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), v.Body()); err != nil {
		return "", err
	}
	var at protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &at); err != nil {
		return "", err
	}
	return at.MsgID, nil
}
