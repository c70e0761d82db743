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
)

func namesrvCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "namesrv",
		Short: "Look after the name servers: routes, settings, order of topics, write permission",
		Long: `Asks every name server of --namesrv, each of which stands for itself: what one was
told the others do not know. What differs between them is shown, what is changed is
changed in all.`,
	}
	cmd.AddCommand(namesrvListCommand(a), namesrvRouteCommand(a), namesrvTopicsCommand(a), namesrvForgetCommand(a), namesrvConfigCommand(a),
		namesrvKVCommand(a), namesrvOrderCommand(a), namesrvWriteCommand(a))
	return cmd
}

// nameServers are the addresses of --namesrv.
func (a *admin) nameServers() ([]string, error) {
	var all []string
	for addr := range strings.FieldsFuncSeq(a.namesrv, func(r rune) bool { return r == ';' || r == ',' }) {
		if addr = strings.TrimSpace(addr); addr != "" && !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	if len(all) == 0 {
		return nil, a.unreachable(nil)
	}
	return all, nil
}

// eachName asks every name server and joins what goes wrong; when some did well it
// is a [partialError].
func (a *admin) eachName(do func(addr string) error) error {
	addrs, err := a.nameServers()
	if err != nil {
		return err
	}
	all := make([]member, len(addrs))
	for i, addr := range addrs {
		all[i] = member{Name: addr, Addr: addr}
	}
	return each(all, func(m member) error { return do(m.Addr) })
}

// nameSteps makes a step of the same change for every name server.
func (a *admin) nameSteps(what string, do func(ctx context.Context, addr string) (string, error)) ([]step, error) {
	addrs, err := a.nameServers()
	if err != nil {
		return nil, err
	}
	steps := make([]step, len(addrs))
	for i, addr := range addrs {
		steps[i] = step{Where: addr, What: what, do: func(ctx context.Context) (string, error) { return do(ctx, addr) }}
	}
	return steps, nil
}

func namesrvListCommand(a *admin) *cobra.Command {
	type state struct {
		Addr    string   `json:"namesrv"`
		Brokers []string `json:"brokers"`
		Topics  int      `json:"topics"`
		Error   string   `json:"error,omitempty"`
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the name servers and what each knows",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc := []state{}
			var rows []table.Row
			err := a.eachName(func(addr string) error {
				s := state{Addr: addr, Brokers: []string{}}
				var c protocol.Cluster
				var topics protocol.TopicList
				err := a.askBody(cmd.Context(), addr, protocol.GetBrokerClusterInfo, nil, &c)
				if err == nil {
					err = a.askBody(cmd.Context(), addr, protocol.GetAllTopicListFromNameServer, nil, &topics)
				}
				says := "serves"
				if err != nil {
					s.Error, says = err.Error(), err.Error()
				}
				s.Topics = len(topics.Topics)
				for _, name := range sortedKeys(c.Brokers) {
					for _, id := range sortedIDs(c.Brokers[name].Addrs) {
						s.Brokers = append(s.Brokers, fmt.Sprintf("%s[%d]", name, id))
					}
				}
				doc = append(doc, s)
				rows = append(rows, table.Row{addr, says, strings.Join(s.Brokers, " "), s.Topics})
				return err
			})
			return a.showUnless(err, doc, table.Row{"name server", "state", "brokers", "topics"}, rows)
		},
	}
	return describe(cmd, []state{})
}

func sortedIDs(m map[int64]string) []int64 {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func namesrvRouteCommand(a *admin) *cobra.Command {
	type place struct {
		Addr        string `json:"namesrv"`
		Cluster     string `json:"cluster"`
		Broker      string `json:"broker"`
		ReadQueues  int32  `json:"readQueues"`
		WriteQueues int32  `json:"writeQueues"`
		Perm        string `json:"perm"`
		Brokers     string `json:"addrs"`
		Order       string `json:"order,omitempty"`
	}
	cmd := &cobra.Command{
		Use:               "route TOPIC",
		Short:             "Show where each name server sends the clients of a topic",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc := []place{}
			var rows []table.Row
			err := a.eachName(func(addr string) error {
				var r protocol.Route
				err := a.askBody(cmd.Context(), addr, protocol.GetRouteInfoByTopic, &protocol.TopicHeader{Topic: args[0]}, &r)
				if errors.Is(err, mq.ErrNoTopic) {
					return notFound("name server %s knows no broker with topic %s", addr, args[0])
				}
				if err != nil {
					return err
				}
				for _, b := range r.Brokers {
					p := place{Addr: addr, Cluster: b.Cluster, Broker: b.Name, Perm: permText(0), Order: r.OrderConf}
					for _, id := range sortedIDs(b.Addrs) {
						p.Brokers += fmt.Sprintf("%d=%s ", id, b.Addrs[id])
					}
					p.Brokers = strings.TrimSpace(p.Brokers)
					for _, q := range r.Queues {
						if q.BrokerName == b.Name {
							p.ReadQueues, p.WriteQueues, p.Perm = q.ReadQueues, q.WriteQueues, permText(mq.Perm(q.Perm))
						}
					}
					doc = append(doc, p)
					rows = append(rows, table.Row{addr, b.Cluster, b.Name, p.Brokers, p.ReadQueues, p.WriteQueues, p.Perm, p.Order})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"name server", "cluster", "broker", "addresses by id", "read queues", "write queues", "perm", "order"}, rows)
		},
	}
	return describe(cmd, []place{})
}

func namesrvTopicsCommand(a *admin) *cobra.Command {
	kinds := map[string]protocol.Code{
		"all": protocol.GetAllTopicListFromNameServer, "system": protocol.GetSystemTopicListFromNS,
		"unit": protocol.GetUnitTopicList, "unit-sub": protocol.GetHasUnitSubTopicList, "unit-sub-only": protocol.GetHasUnitSubUnUnitTopicList,
	}
	type list struct {
		Addr   string   `json:"namesrv"`
		Topics []string `json:"topics"`
	}
	var kind string
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the topics that each name server knows, or those of --cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			code, known := kinds[kind]
			if !known {
				return &usageError{fmt.Errorf("--kind is %q, it must be one of %s", kind, strings.Join(sortedKeys(kinds), ", "))}
			}
			var header any
			if a.cluster != "" {
				if kind != "all" {
					return &usageError{errors.New("--cluster and --kind do not go together: name servers list all topics of a cluster only")}
				}
				code, header = protocol.GetTopicsByCluster, &protocol.ClusterHeader{Cluster: a.cluster}
			}
			doc := []list{}
			var rows []table.Row
			err := a.eachName(func(addr string) error {
				var topics protocol.TopicList
				if err := a.askBody(cmd.Context(), addr, code, header, &topics); err != nil {
					return err
				}
				slices.Sort(topics.Topics)
				doc = append(doc, list{addr, append([]string{}, topics.Topics...)})
				for _, topic := range topics.Topics {
					rows = append(rows, table.Row{addr, topic})
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"name server", "topic"}, rows)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "all", "which: all, system, unit, unit-sub (with subscriptions from units), unit-sub-only")
	return describe(cmd, []list{})
}

// forgetSteps make all name servers forget a topic, in --cluster or everywhere.
func (a *admin) forgetSteps(topic string) ([]step, error) {
	return a.nameSteps("forget topic "+topic, func(ctx context.Context, addr string) (string, error) {
		_, err := a.ask(ctx, addr, protocol.DeleteTopicInNamesrv, &protocol.DeleteTopicNamesrvHeader{Topic: topic, Cluster: a.cluster}, nil)
		return fmt.Sprintf("topic %s is forgotten", topic), err
	})
}

func namesrvForgetCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget TOPIC",
		Short: "Make the name servers forget a topic that no broker has any more",
		Long: `Takes a topic out of the routes; its messages stay where they are. A broker that has
the topic brings it back with its next registration. RocketMQ's name servers keep
topics that were deleted on a broker only; topic delete tells them, too.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			steps, err := a.forgetSteps(args[0])
			if err != nil {
				return err
			}
			return a.carryOut(cmd, fmt.Sprintf("Take topic %s out of the routes?", args[0]), steps)
		},
	}
	return a.destroys(cmd)
}

func namesrvWriteCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "write-perm",
		Short: "Take a broker out of sending, and put it back",
		Long: `Changes what the name servers tell producers, until the broker registers another
version of its topics. Consumers go on, so a broker without write permission runs
empty: the way to stop one without a failed send.`,
	}
	change := func(use, short string, count func(context.Context, string, string) (int32, error), question string) *cobra.Command {
		c := &cobra.Command{
			Use: use + " BROKER", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: a.completion("broker"),
			RunE: func(cmd *cobra.Command, args []string) error {
				steps, err := a.nameSteps(fmt.Sprintf("%s write permission of broker %s", use, args[0]), func(ctx context.Context, addr string) (string, error) {
					n, err := count(ctx, addr, args[0])
					if err == nil && n == 0 {
						err = notFound("%s knows no topics of a broker called %s%s", addr, args[0], a.meant(ctx, "broker", args[0]))
					}
					return fmt.Sprintf("%d topics of broker %s", n, args[0]), err
				})
				if err != nil {
					return err
				}
				if question == "" {
					return a.carryOut(cmd, "", steps)
				}
				return a.carryOut(cmd, fmt.Sprintf(question, args[0]), steps)
			},
		}
		if question == "" {
			return a.changes(c)
		}
		return a.destroys(c)
	}
	cmd.AddCommand(
		change("wipe", "Keep producers away from a broker", func(ctx context.Context, addr, broker string) (int32, error) {
			var r protocol.WipeResponse
			err := a.askFields(ctx, addr, protocol.WipeWritePermOfBroker, &protocol.BrokerNameHeader{BrokerName: broker}, &r)
			return r.Topics, err
		}, "Keep producers away from broker %s?"),
		change("add", "Let producers send to a broker again: all its topics get read and write permission", func(ctx context.Context, addr, broker string) (int32, error) {
			var r protocol.AddWriteResponse
			err := a.askFields(ctx, addr, protocol.AddWritePermOfBroker, &protocol.BrokerNameHeader{BrokerName: broker}, &r)
			return r.Topics, err
		}, ""))
	return cmd
}
