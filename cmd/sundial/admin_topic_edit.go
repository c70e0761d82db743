package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// topicWish is what the command line says a topic should be.
type topicWish struct {
	queues, read, write int32
	perm                string
	order               bool
	attributes          []string
}

func (w *topicWish) register(cmd *cobra.Command) {
	cmd.Flags().Int32VarP(&w.queues, "queues", "q", 8, "number of queues")
	cmd.Flags().Int32Var(&w.read, "read", 0, "number of queues to read from (default --queues)")
	cmd.Flags().Int32Var(&w.write, "write", 0, "number of queues to write to (default --queues)")
	cmd.Flags().StringVar(&w.perm, "perm", "rw", "what clients may do: r, w, rw or none (or RocketMQ's 4, 2, 6, 0)")
	cmd.Flags().BoolVar(&w.order, "order", false, "the topic is consumed in order")
	cmd.Flags().StringArrayVar(&w.attributes, "attr", nil, "change an attribute: `+KEY=VALUE` or -KEY; may be repeated")
}

// apply changes c where the command line says something.
func (w *topicWish) apply(cmd *cobra.Command, c *mq.TopicConfig) error {
	said := cmd.Flags().Changed
	if w.queues < 1 {
		return &usageError{fmt.Errorf("--queues is %d, a topic needs 1 or more (--read 0 or --write 0 empty one side)", w.queues)}
	}
	if said("queues") {
		c.ReadQueues, c.WriteQueues = w.queues, w.queues
	}
	if said("read") {
		c.ReadQueues = w.read
	}
	if said("write") {
		c.WriteQueues = w.write
	}
	if said("order") {
		c.Order = w.order
	}
	if said("perm") {
		p, err := parsePerm(w.perm)
		if err != nil {
			return err
		}
		c.Perm = p
	}
	if _, err := protocol.AttributeChanges(strings.Join(w.attributes, ",")); err != nil {
		return &usageError{fmt.Errorf("--attr: %w", err)}
	}
	return nil
}

func parsePerm(s string) (mq.Perm, error) {
	switch s {
	case "rw", "wr", "6":
		return mq.PermRead | mq.PermWrite, nil
	case "r", "4":
		return mq.PermRead, nil
	case "w", "2":
		return mq.PermWrite, nil
	case "none", "0":
		return 0, nil
	}
	return 0, &usageError{fmt.Errorf("--perm is %q, it must be r, w, rw or none", s)}
}

// topicStep is the step that makes a topic so on one broker.
func (a *admin) topicStep(m member, c *mq.TopicConfig, attributes []string, verb string) step {
	what := fmt.Sprintf("topic %s with %d queues to read and %d to write, %s", c.Name, c.ReadQueues, c.WriteQueues, permText(c.Perm))
	if c.Order {
		what += ", in order"
	}
	if len(attributes) > 0 {
		what += ", " + strings.Join(attributes, " ")
	}
	h := &protocol.CreateTopicHeader{
		Topic: c.Name, DefaultTopic: mq.TopicAutoCreate, ReadQueues: c.ReadQueues, WriteQueues: c.WriteQueues, Perm: int32(c.Perm), Filter: c.Filter,
		SysFlag: c.SysFlag, Order: c.Order, Attributes: strings.Join(attributes, ","),
	}
	return step{Where: m.Name, What: verb + " " + what, do: func(ctx context.Context) (string, error) {
		_, err := a.ask(ctx, m.Addr, protocol.UpdateAndCreateTopic, h, nil)
		return what, err
	}}
}

// orderSteps tell the name servers how many queues an ordered topic has on which
// broker, so that clients see them also while a broker is away.
func (a *admin) orderSteps(topic string, masters []member, queues int32) ([]step, error) {
	var parts []string
	for _, m := range masters {
		parts = append(parts, fmt.Sprintf("%s:%d", m.Name, queues))
	}
	conf := strings.Join(parts, ";")
	return a.nameSteps("order configuration "+conf, func(ctx context.Context, addr string) (string, error) {
		_, err := a.ask(ctx, addr, protocol.PutKVConfig, &protocol.KVHeader{Namespace: orderNamespace, Key: topic, Value: conf}, nil)
		return "order configuration " + conf, err
	})
}

func topicCreateCommand(a *admin) *cobra.Command {
	var w topicWish
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Make a topic on all brokers (or --broker)",
		Long: `Makes a topic. On a broker that has one of that name nothing is changed: when it is as
asked for that is fine, otherwise the command is refused (topic update changes it).`,
		Example: `  sundial admin topic create Orders --queues 16
  sundial admin topic create Later --attr +message.type=DELAY
  sundial admin topic create Bookings --order`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			c := &mq.TopicConfig{Name: args[0], Filter: "SINGLE_TAG", ReadQueues: w.queues, WriteQueues: w.queues, Perm: mq.PermRead | mq.PermWrite}
			if err := w.apply(cmd, c); err != nil {
				return err
			}
			var steps []step
			for _, m := range masters {
				t, err := a.topicTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				s := a.topicStep(m, c, w.attributes, "make")
				if is := t.Topics[c.Name]; is != nil {
					if is.ReadQueues != c.ReadQueues || is.WriteQueues != c.WriteQueues || is.Perm != c.Perm || is.Order != c.Order || !hasAttributes(is.Attributes, w.attributes) {
						return refused("%s has topic %s already, otherwise than asked for: %d queues to read and %d to write, %s (topic update changes it)",
							m.Name, c.Name, is.ReadQueues, is.WriteQueues, strings.TrimSpace(permText(is.Perm)+" "+attributesText(is.Attributes)))
					}
					s.What = "nothing: it has topic " + c.Name + ", as asked for"
					s.do = func(context.Context) (string, error) { return "had topic " + c.Name + " already, as asked for", nil }
				}
				steps = append(steps, s)
			}
			if c.Order && a.broker == "" {
				order, err := a.orderSteps(c.Name, masters, c.WriteQueues)
				if err != nil {
					return err
				}
				steps = append(steps, order...)
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	w.register(cmd)
	return a.changes(cmd)
}

// hasAttributes reports whether changes would change nothing. They were checked.
func hasAttributes(is map[string]string, changes []string) bool {
	all, _ := protocol.AttributeChanges(strings.Join(changes, ","))
	want := maps.Clone(is)
	if want == nil {
		want = map[string]string{}
	}
	for key, value := range all {
		if key[0] == '-' {
			delete(want, key[1:])
		} else {
			want[key[1:]] = value
		}
	}
	return maps.Equal(want, is) || len(want) == 0 && len(is) == 0
}

func topicUpdateCommand(a *admin) *cobra.Command {
	var w topicWish
	cmd := &cobra.Command{
		Use:   "update TOPIC",
		Short: "Change a topic: what is not said stays as it is",
		Example: `  sundial admin topic update Orders --queues 32
  sundial admin topic update Orders --perm r --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().NFlag() == 0 {
				return &usageError{fmt.Errorf("say what to change of topic %s (see %s --help)", args[0], cmd.CommandPath())}
			}
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var steps []step
			for _, m := range masters {
				t, err := a.topicTable(cmd.Context(), m)
				if err != nil {
					return err
				}
				is := t.Topics[args[0]]
				if is == nil {
					return notFound("%s has no topic %s", m.Name, args[0])
				}
				c := *is
				if err := w.apply(cmd, &c); err != nil {
					return err
				}
				s := a.topicStep(m, &c, w.attributes, "change to")
				if a.dryRun {
					s.What = strings.Replace(s.What, "change to", fmt.Sprintf("change from %d queues to read and %d to write, %s to", is.ReadQueues, is.WriteQueues, permText(is.Perm)), 1)
				}
				steps = append(steps, s)
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	w.register(cmd)
	return a.changes(cmd)
}

func topicDeleteCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete TOPIC",
		Short: "Delete a topic with its messages and all groups' progress in it",
		Example: `  sundial admin topic delete Orders --dry-run
  sundial admin topic delete Orders --yes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.mastersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.carryOut(cmd, fmt.Sprintf("Delete topic %s, its messages and all groups' progress in it?", args[0]), a.deletions(cmd.Context(), args[0], masters))
		},
	}
	return a.destroys(cmd)
}
