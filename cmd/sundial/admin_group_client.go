package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// versionName is RocketMQ's name of a version number: from 4.0.0 on each release
// has two, ten releases to a minor version, ten of those to a major one.
func versionName(n int32) string {
	const v400 = 213
	if n < v400 {
		return strconv.Itoa(int(n))
	}
	i := (n - v400 + 1) / 2
	name := fmt.Sprintf("V%d_%d_%d", 4+i/100, i/10%10, i%10)
	if (n-v400)%2 != 0 {
		name += "_SNAPSHOT"
	}
	return name
}

// runningInfo is what a consumer tells of itself.
type runningInfo struct {
	Properties map[string]string                  `json:"properties"`
	Queues     protocol.QueueTable[runningQueue]  `json:"mqTable"`
	Statuses   protocol.Map[string, runningTopic] `json:"statusTable"`
	Stack      string                             `json:"jstack"`
}

// runningQueue is a queue that a consumer reads.
type runningQueue struct {
	Commit      mq.QueueOffset `json:"commitOffset"`
	Cached      int64          `json:"cachedMsgCount"`
	CachedMiB   int64          `json:"cachedMsgSizeInMiB"`
	Locked      bool           `json:"locked"`
	Dropped     bool           `json:"droped"` // as RocketMQ spells it
	LastPull    int64          `json:"lastPullTimestamp"`
	LastConsume int64          `json:"lastConsumeTimestamp"`
}

// runningTopic is how a consumer does with a topic.
type runningTopic struct {
	PullRT        float64 `json:"pullRT"` // ms
	PullTPS       float64 `json:"pullTPS"`
	ConsumeRT     float64 `json:"consumeRT"` // ms
	ConsumeOKTPS  float64 `json:"consumeOKTPS"`
	ConsumeFailed float64 `json:"consumeFailedTPS"`
	FailedInHour  int64   `json:"consumeFailedMsgs"`
}

func (a *admin) runningInfo(ctx context.Context, m member, group, client string, stack bool) (*runningInfo, error) {
	var info runningInfo
	err := a.askBody(ctx, m.Addr, protocol.GetConsumerRunningInfo, &protocol.RunningInfoHeader{ConsumerGroup: group, ClientID: client, JStack: stack}, &info)
	return &info, err
}

// runningClient is the answer of one member.
type runningClient struct {
	connected
	Properties map[string]string       `json:"properties"`
	Queues     []runningClientQueue    `json:"queues"`
	Topics     map[string]runningTopic `json:"topics"`
	Stack      string                  `json:"stack,omitempty"`
	Error      string                  `json:"error,omitempty"` // why it did not answer
}

type runningClientQueue struct {
	protocol.MessageQueue
	runningQueue
}

func groupRunningCommand(a *admin) *cobra.Command {
	var client string
	var stack, settings bool
	cmd := &cobra.Command{
		Use:   "running GROUP",
		Short: "Ask the members of a group what they are doing: queues, what is cached, rates",
		Example: `  sundial admin group running billing
  sundial admin group running billing --client 10.0.0.7@4711 --stack`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := a.running(cmd.Context(), args[0], client, stack)
			if err == nil && len(doc) == 0 {
				return notFound("no such member of group %s is online", args[0])
			}
			if a.json {
				return errors.Join(a.document(doc), err)
			}
			var queues, topics, props []table.Row
			for _, c := range doc {
				if c.Error != "" {
					a.done("%s: %s", c.ClientID, c.Error)
				}
				for _, q := range c.Queues {
					queues = append(queues, table.Row{c.ClientID, q.BrokerName, q.Topic, q.QueueID, q.Commit, q.Cached, onOff(q.Locked), stamp(q.LastPull), stamp(q.LastConsume)})
				}
				for _, t := range sortedKeys(c.Topics) {
					s := c.Topics[t]
					topics = append(topics, table.Row{c.ClientID, t, s.PullTPS, s.PullRT, s.ConsumeOKTPS, s.ConsumeFailed, s.ConsumeRT, s.FailedInHour})
				}
				for _, k := range sortedKeys(c.Properties) {
					props = append(props, table.Row{c.ClientID, k, folded(c.Properties[k])})
				}
			}
			err = a.showUnless(err, nil, table.Row{"client", "broker", "topic", "queue", "committed", "cached", "locked", "last pull", "last consumed"}, queues)
			if len(topics) > 0 {
				err = errors.Join(err, a.show(nil, table.Row{"client", "topic", "pulls/s", "pull ms", "consumed/s", "failed/s", "consume ms", "failed in the hour"}, topics))
			}
			if settings {
				err = errors.Join(err, a.show(nil, table.Row{"client", "setting", "value"}, props))
			}
			for _, c := range doc {
				if stack {
					a.done("\n%s\n%s", c.ClientID, c.Stack)
				}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "only the member with this `CLIENT-ID`")
	cmd.Flags().BoolVar(&stack, "stack", false, "with the stacks of its threads")
	cmd.Flags().BoolVar(&settings, "settings", false, "with its settings")
	return describe(cmd, []runningClient{})
}

// running asks the members of a group, or one of them, what they are doing.
func (a *admin) running(ctx context.Context, group, client string, stack bool) ([]runningClient, error) {
	masters, err := a.masters(ctx)
	if err != nil {
		return nil, err
	}
	doc := []runningClient{}
	seen := map[string]bool{}
	err = each(masters, func(m member) error {
		conns, err := a.connections(ctx, m, group)
		if err != nil {
			return err
		}
		for _, c := range connectedOf(m, conns) {
			if seen[c.ClientID] || client != "" && client != c.ClientID {
				continue
			}
			seen[c.ClientID] = true
			r := runningClient{connected: c, Queues: []runningClientQueue{}}
			info, err := a.runningInfo(ctx, m, group, c.ClientID, stack)
			if err != nil {
				r.Error = err.Error()
			}
			r.Properties, r.Topics, r.Stack = info.Properties, info.Statuses, info.Stack
			for _, k := range slices.SortedFunc(maps.Keys(info.Queues), protocol.MessageQueue.Compare) {
				r.Queues = append(r.Queues, runningClientQueue{k, info.Queues[k]})
			}
			doc = append(doc, r)
		}
		return nil
	})
	return doc, err
}

// clientOffset is how far a member says it is in a queue.
type clientOffset struct {
	Client string         `json:"client"`
	Broker string         `json:"broker"`
	Queue  mq.QueueID     `json:"queue"`
	Offset mq.QueueOffset `json:"offset"`
}

func groupStatusCommand(a *admin) *cobra.Command {
	var client string
	cmd := &cobra.Command{
		Use:               "status GROUP TOPIC",
		Short:             "Ask the members of a group how far they are in a topic",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("group", "topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			doc := []clientOffset{}
			seen := map[clientOffset]bool{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				conns, err := a.connections(cmd.Context(), m, args[0])
				if err != nil {
					return err
				}
				if len(conns.Connections) == 0 {
					return notFound("no member of group %s is online at %s", args[0], m.Name)
				}
				var s protocol.ConsumerStatus
				if err := a.askBody(cmd.Context(), m.Addr, protocol.InvokeBrokerToGetConsumerStatus,
					&protocol.ConsumerStatusHeader{Group: args[0], Topic: args[1], ClientAddr: client}, &s); err != nil {
					return err
				}
				for _, id := range sortedKeys(s.Clients) {
					for _, k := range slices.SortedFunc(maps.Keys(s.Clients[id]), protocol.MessageQueue.Compare) {
						o := clientOffset{id, k.BrokerName, k.QueueID, s.Clients[id][k]}
						if !seen[o] {
							seen[o] = true
							doc = append(doc, o)
							rows = append(rows, table.Row{o.Client, o.Broker, o.Queue, o.Offset})
						}
					}
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"client", "broker", "queue", "offset"}, rows)
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "only the member with this `CLIENT-ID`")
	return describe(cmd, []clientOffset{})
}

// directResult is what a consumer says of a message that it was made to consume.
type directResult struct {
	Client  string `json:"client"`
	Result  string `json:"consumeResult"`
	Remark  string `json:"remark,omitempty"`
	Millis  int64  `json:"spentTimeMills"`
	Ordered bool   `json:"order"`
}

// directResults are RocketMQ's names; some clients send the number.
var directResults = []string{"CR_SUCCESS", "CR_LATER", "CR_ROLLBACK", "CR_COMMIT", "CR_THROW_EXCEPTION", "CR_RETURN_NULL"}

func groupConsumeCommand(a *admin) *cobra.Command {
	var client, topic string
	cmd := &cobra.Command{
		Use:   "consume GROUP ID",
		Short: "Have a member of a group consume one message now, whatever its progress",
		Long: `Hands one message to a running member of a group and shows what its listener said of
it. Progress stays as it is. ID is an offset message id, or with --topic a unique key.`,
		Example: `  sundial admin group consume billing 7F00000100002A9F000000000000A1B2
  sundial admin group consume billing AC1F0A2B00012A139D8F5C1E0000 --topic Orders --client 10.0.0.7@4711`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			msg, err := a.lookUp(ctx, topic, args[1])
			if err != nil {
				return err
			}
			at := member{Name: msg.StoreHost, Addr: msg.StoreHost}
			if client == "" {
				conns, err := a.connections(ctx, at, args[0])
				if err != nil {
					return err
				}
				if len(conns.Connections) == 0 {
					return notFound("no member of group %s is online at %s", args[0], at.Addr)
				}
				client = connectedOf(at, conns)[0].ClientID
			}
			s := step{Where: at.Name, What: fmt.Sprintf("have %s of group %s consume %s of topic %s", client, args[0], msg.ID, msg.Topic)}
			s.do = func(ctx context.Context) (string, error) {
				r, err := a.consumeDirectly(ctx, at, args[0], client, msg)
				return fmt.Sprintf("%s said %s after %d ms %s", r.Client, r.Result, r.Millis, r.Remark), err
			}
			return a.carryOut(cmd, "", []step{s})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the member with this `CLIENT-ID` (default: the first)")
	cmd.Flags().StringVar(&topic, "topic", "", "the topic of a unique key")
	return a.changes(cmd)
}

func (a *admin) consumeDirectly(ctx context.Context, at member, group, client string, msg *messageView) (directResult, error) {
	r := directResult{Client: client}
	var body struct {
		directResult
		Result json.RawMessage `json:"consumeResult"`
	}
	err := a.askBody(ctx, at.Addr, protocol.ConsumeMessageDirectly, &protocol.ConsumeDirectlyHeader{
		ConsumerGroup: group, ClientID: client, MsgID: msg.ID, Topic: msg.Topic,
	}, &body)
	if err != nil {
		return r, err
	}
	r = body.directResult
	r.Client = client
	if n, err := strconv.Atoi(string(body.Result)); err == nil && n >= 0 && n < len(directResults) {
		r.Result = directResults[n]
	} else if json.Unmarshal(body.Result, &r.Result) != nil {
		r.Result = string(body.Result)
	}
	if r.Result != "CR_SUCCESS" && r.Result != "CR_COMMIT" {
		return r, refused("%s of group %s said %s %s", client, group, r.Result, r.Remark)
	}
	return r, nil
}
