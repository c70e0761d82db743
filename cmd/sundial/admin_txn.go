package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
)

func txnCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "txn", Short: "Look at transactions without a verdict, and decide them"}
	cmd.AddCommand(txnListCommand(a), txnShowCommand(a), txnResolveCommand(a))
	return cmd
}

// brokerTransaction is a transaction of one broker.
type brokerTransaction struct {
	Broker string `json:"broker"`
	protocol.Transaction
}

// txnFilter picks transactions.
type txnFilter struct {
	group, topic string
	olderThan    time.Duration
	givenUp      bool
	resolved     bool
}

func (f *txnFilter) register(cmd *cobra.Command, a *admin) {
	flags := cmd.Flags()
	flags.StringVar(&f.group, "group", "", "only those of this producer `GROUP`")
	flags.StringVar(&f.topic, "topic", "", "only those that go to this `TOPIC`")
	flags.DurationVar(&f.olderThan, "older-than", 0, "only messages born at least so long ago")
	flags.BoolVar(&f.givenUp, "given-up", false, "those that were given up after the last check, in place of the open ones")
	// This fails only for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("topic", a.flagCompletion("topic"))
}

// each visits the transactions of one broker that the filter takes, oldest first,
// until visit says that it is enough.
func (f *txnFilter) each(ctx context.Context, a *admin, m member, visit func(brokerTransaction) bool) error {
	after := mq.QueueOffset(-1)
	for {
		var list protocol.TransactionList
		err := a.askFieldsBody(ctx, m, protocol.ListTransactions, &protocol.ListTransactionsHeader{
			Group: f.group, Topic: f.topic, MinAge: f.olderThan.Milliseconds(), GivenUp: f.givenUp, Resolved: f.resolved, After: after, Max: 500,
		}, &list)
		if err != nil {
			return err
		}
		for _, t := range list.Transactions {
			if !visit(brokerTransaction{m.Name, t}) {
				return nil
			}
		}
		if list.Next < 0 {
			return nil
		}
		if list.Next <= after {
			return fmt.Errorf("%s: the list of transactions goes on at %d after %d, which is no way forward", m.Addr, list.Next, after)
		}
		after = list.Next
	}
}

// askFieldsBody asks a broker what only Sundial's know.
func (a *admin) askFieldsBody(ctx context.Context, m member, code protocol.Code, header, body any) error {
	err := a.askBody(ctx, m.Addr, code, header, body)
	if errors.Is(err, mq.ErrUnsupported) {
		return fmt.Errorf("broker %s is no Sundial, or one that keeps no transactions: %w", m.Name, err)
	}
	return err
}

func txnListCommand(a *admin) *cobra.Command {
	var f txnFilter
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List transactions whose producers have neither committed nor rolled back, or those that were given up",
		Long: `Lists half messages without a verdict, the oldest first: who sent them, where they go,
how often their producer was asked, and when it is asked next. "waiting" says that a
check is due and no producer of the group is connected. With --given-up it lists those
that nobody answered for (TRANS_CHECK_MAX_TIME_TOPIC).`,
		Example: `  sundial admin txn list --older-than 1h
  sundial admin txn list --group billing --topic Orders
  sundial admin txn list --given-up --resolved --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 1 {
				return &usageError{fmt.Errorf("--max is %d, it must be 1 or more", most)}
			}
			if f.resolved && !f.givenUp {
				return &usageError{errors.New("--resolved is for --given-up")}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc, more := []brokerTransaction{}, false
			err = each(masters, func(m member) error {
				n := 0
				return f.each(cmd.Context(), a, m, func(t brokerTransaction) bool {
					if n == most {
						more = true
						return false
					}
					n++
					doc = append(doc, t)
					return true
				})
			})
			sort.SliceStable(doc, func(i, j int) bool { return doc[i].Born < doc[j].Born })
			var rows []table.Row
			for _, t := range doc {
				rows = append(rows, table.Row{t.Broker, cellOffset(t.Offset), t.ID, t.Group, t.Topic, t.Keys, stamp(t.Born), t.Tries, nextCheck(&t.Transaction), t.State})
			}
			err = a.showUnless(err, doc, table.Row{"broker", "offset", "transaction", "group", "topic", "keys", "born", "checks", "next check", "state"}, rows)
			if more {
				a.done("there are more: --max %d", most)
			}
			return err
		},
	}
	f.register(cmd, a)
	cmd.Flags().BoolVar(&f.resolved, "resolved", false, "with --given-up, also those that were decided since")
	cmd.Flags().IntVar(&most, "max", 100, "how many of each broker at most")
	return describe(cmd, []brokerTransaction{})
}

func nextCheck(t *protocol.Transaction) string {
	switch {
	case t.Waiting:
		return "waiting for a producer"
	case t.Decided > 0:
		return "decided " + stamp(t.Decided)
	}
	return stamp(t.NextCheck)
}

// txnRef is how a transaction is named on the command line: by its id, or by its
// offset with --offset.
type txnRef struct {
	offset  int64
	givenUp bool
}

func (r *txnRef) register(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&r.offset, "offset", -1, "the transaction at this `OFFSET` of a broker, as list shows it, in place of an ID; takes --broker")
	cmd.Flags().BoolVar(&r.givenUp, "given-up", false, "with --offset: of those that were given up")
}

// header is what a broker is asked for.
func (r *txnRef) header(a *admin, args []string) (*protocol.TransactionHeader, error) {
	switch {
	case (len(args) == 1) == (r.offset >= 0):
		return nil, &usageError{errors.New("name one transaction, by its ID or with --offset")}
	case r.offset >= 0 && a.broker == "":
		return nil, &usageError{errors.New("--offset is of one broker, say which with --broker")}
	case r.offset >= 0:
		off := mq.QueueOffset(r.offset)
		return &protocol.TransactionHeader{Offset: &off, GivenUp: r.givenUp}, nil
	}
	return &protocol.TransactionHeader{ID: args[0]}, nil
}

// txnShown is a transaction with its message.
type txnShown struct {
	brokerTransaction
	Message messageView `json:"message"`
}

// findTxn asks all brokers for one transaction.
func (a *admin) findTxn(ctx context.Context, h *protocol.TransactionHeader) (member, *txnShown, error) {
	masters, err := a.masters(ctx)
	if err != nil {
		return member{}, nil, err
	}
	var errs []error
	for _, m := range masters {
		var got protocol.TransactionShown
		err := a.askFieldsBody(ctx, m, protocol.ShowTransaction, h, &got)
		if errors.Is(err, mq.ErrNotFound) || err != nil && len(masters) > 1 && errors.Is(err, mq.ErrUnsupported) {
			errs = append(errs, err)
			continue
		}
		if err != nil {
			return m, nil, err
		}
		v, _, err := record.Next(got.Record)
		if err != nil {
			return m, nil, fmt.Errorf("the record that %s sent: %w", m.Name, err)
		}
		return m, &txnShown{brokerTransaction{m.Name, got.Transaction}, viewOf(v)}, nil
	}
	return member{}, nil, notFound("%v", errors.Join(errs...))
}

func txnShowCommand(a *admin) *cobra.Command {
	var ref txnRef
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Show one transaction and its message",
		Long: `Shows an open transaction, or one that was given up, with its message. ID is the
transaction id that its producer knows (UNIQ_KEY).`,
		Example: `  sundial admin txn show FD000000000000000000000000000002600F5FFD2B2799895D7A000B
  sundial admin txn show --broker broker-a --offset 17`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := ref.header(a, args)
			if err != nil {
				return err
			}
			_, t, err := a.findTxn(cmd.Context(), h)
			if err != nil {
				return err
			}
			rows := []table.Row{
				{"state", t.State}, {"broker", t.Broker}, {"offset", cellOffset(t.Offset)}, {"message id", t.MessageID}, {"transaction", t.ID}, {"group", t.Group},
				{"topic", t.Topic}, {"queue", t.Queue}, {"sent by", t.Client}, {"keys", t.Keys}, {"tag", t.Tags}, {"born", stamp(t.Born)}, {"stored", stamp(t.Stored)},
				{"bytes", t.Size}, {"checks sent", t.Tries}, {"next check", nextCheck(&t.Transaction)}, {"properties", propertyText(t.Message.Properties)}, {"body", t.Message.Body},
			}
			return a.show(t, table.Row{"", ""}, rows)
		},
	}
	ref.register(cmd)
	return describe(cmd, txnShown{})
}

func propertyText(props map[string]string) string {
	text := ""
	for _, name := range sortedKeys(props) {
		if text != "" {
			text += "\n"
		}
		text += name + "=" + props[name]
	}
	return text
}

func txnResolveCommand(a *admin) *cobra.Command {
	var ref txnRef
	var f txnFilter
	var action string
	var all bool
	cmd := &cobra.Command{
		Use:   "resolve [ID] --as commit|rollback|resume",
		Short: "Decide transactions in place of their producers: deliver, drop, or have the producer asked anew",
		Long: `Commits a transaction (its message is delivered), rolls it back (nobody will ever see it)
or resumes it: the producer is asked now, with all its tries, also when it was given up.
The first verdict counts: what comes from the producer later is answered as too late.
With --all it is done with every transaction that the filters take.`,
		Example: `  sundial admin txn resolve FD000000000000000000000000000002600F5FFD2B2799895D7A000B --as commit
  sundial admin txn resolve --all --given-up --group billing --as resume --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if action != "commit" && action != "rollback" && action != "resume" {
				return &usageError{fmt.Errorf("--as is %q, it must be commit, rollback or resume", action)}
			}
			f.givenUp = ref.givenUp
			var steps []step
			if all {
				if len(args) > 0 || ref.offset >= 0 {
					return &usageError{errors.New("--all goes without an ID and without --offset")}
				}
				masters, err := a.masters(cmd.Context())
				if err != nil {
					return err
				}
				err = each(masters, func(m member) error {
					return f.each(cmd.Context(), a, m, func(t brokerTransaction) bool {
						steps = append(steps, a.resolution(m, t, action))
						return true
					})
				})
				if err != nil {
					return err
				}
				if len(steps) == 0 {
					return notFound("there is no such transaction")
				}
			} else {
				h, err := ref.header(a, args)
				if err != nil {
					return err
				}
				m, t, err := a.findTxn(cmd.Context(), h)
				if err != nil {
					return err
				}
				steps = []step{a.resolution(m, t.brokerTransaction, action)}
			}
			question := ""
			if action != "resume" {
				question = fmt.Sprintf("%s %d transactions for good?", map[string]string{"commit": "Commit", "rollback": "Roll back"}[action], len(steps))
			}
			return a.carryOut(cmd, question, steps)
		},
	}
	fl := cmd.Flags()
	fl.Int64Var(&ref.offset, "offset", -1, "the transaction at this `OFFSET` of a broker, in place of an ID; takes --broker")
	fl.StringVar(&action, "as", "", "what becomes of it: `commit`, rollback or resume")
	fl.BoolVar(&all, "all", false, "every transaction that --group, --topic, --older-than and --given-up take")
	fl.StringVar(&f.group, "group", "", "with --all: only those of this producer `GROUP`")
	fl.StringVar(&f.topic, "topic", "", "with --all: only those that go to this `TOPIC`")
	fl.DurationVar(&f.olderThan, "older-than", 0, "with --all: only messages born at least so long ago")
	fl.BoolVar(&ref.givenUp, "given-up", false, "with --all or --offset: those that were given up")
	return a.destroys(cmd)
}

// resolution is the step that decides one transaction.
func (a *admin) resolution(m member, t brokerTransaction, action string) step {
	what := fmt.Sprintf("%s transaction %s of group %s to topic %s, %s, born %s", action, t.ID, t.Group, t.Topic, t.State, stamp(t.Born))
	off := t.Offset
	h := &protocol.TransactionHeader{Offset: &off, GivenUp: t.State != "open", Action: action}
	return step{Where: m.Name, What: what, do: func(ctx context.Context) (string, error) {
		var got protocol.TransactionShown
		if err := a.askFieldsBody(ctx, m, protocol.ResolveTransaction, h, &got); err != nil {
			return "", err
		}
		return fmt.Sprintf("transaction %s is %s", got.Transaction.ID, got.Transaction.State), nil
	}}
}
