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

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// redrive is one run of "dlq redrive".
type redrive struct {
	*admin
	group    string
	filter   letterFilter
	all      bool
	again    bool // also what was put back before
	to       string
	rate     float64 // letters a second; 0 for no limit
	most     int     // 0 for no limit
	progress io.Writer

	topics map[string]*destination // found out so far; nil is not there
	report redriveReport
	began  time.Time
	told   time.Time
}

// redriveReport is the JSON document of a redrive.
type redriveReport struct {
	DryRun   bool            `json:"dryRun"` // nothing was sent
	Redriven int             `json:"redriven"`
	Before   int             `json:"redrivenBefore"` // left alone: an earlier run put them back
	Failed   int             `json:"failed"`
	Letters  []redrivenEntry `json:"letters"`
}

// redrivenEntry is what became of one dead letter.
type redrivenEntry struct {
	Dead    string `json:"id"` // of the dead letter
	To      string `json:"topic"`
	ID      string `json:"newId,omitempty"`
	Outcome string `json:"outcome"` // redriven, redriven before, failed; would be redriven
	Error   string `json:"error,omitempty"`
}

// destination is a topic that letters are put back to.
type destination struct {
	brokers []member // that have it
	into    map[string]bool
}

func dlqRedriveCommand(a *admin) *cobra.Command {
	r := redrive{admin: a}
	cmd := &cobra.Command{
		Use:   "redrive GROUP (--all | --id ID | --key KEY | --tag TAG | --since TIME | --until TIME)",
		Short: "Put dead letters of a group back to where they came from",
		Long: `Sends dead letters to the topic they came from, where every group gets them, or with
--to retry to the group's own retry topic, where it alone does. Body, flag, keys, tag,
properties, unique key and the first id stay as they are, the tries begin anew, and
REPLAY_OF names the dead letter, which stays where it is.

A letter that was put back before is left alone, so a run that broke off is repeated
with the same words: the message it became is looked for by its unique key in the
origin topic and the retry topic (--again sends without looking). Origin topics that
are gone are not made: their letters fail, and --to retry takes them.`,
		Example: `  sundial admin dlq redrive billing --all --dry-run
  sundial admin dlq redrive billing --since -2h --rate 50
  sundial admin dlq redrive billing --key order-4711 --to retry`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completion("group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.group, r.progress = args[0], cmd.ErrOrStderr()
			return r.run(cmd.Context())
		},
	}
	r.filter.register(cmd, a)
	cmd.Flags().BoolVar(&r.all, "all", false, "all of them")
	cmd.Flags().StringVar(&r.to, "to", "origin", "origin: the topic they came from; retry: this group alone")
	cmd.Flags().Float64Var(&r.rate, "rate", 200, "so many a second at most; 0 for no limit")
	cmd.Flags().IntVar(&r.most, "max", 0, "so many at most; 0 for no limit")
	cmd.Flags().BoolVar(&r.again, "again", false, "also those that were put back before")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "say what would be put back, and do nothing")
	return describe(cmd, redriveReport{})
}

func (r *redrive) run(ctx context.Context) error {
	if r.all == r.filter.narrow() {
		return &usageError{errors.New("say which dead letters: --all, or some of --id, --key, --tag, --since and --until")}
	}
	if r.to != "origin" && r.to != "retry" {
		return &usageError{fmt.Errorf("--to is %q, it must be origin or retry", r.to)}
	}
	if r.rate < 0 || r.most < 0 {
		return &usageError{errors.New("--rate and --max must not be negative")}
	}
	if err := r.filter.open(); err != nil {
		return err
	}
	masters, err := r.masters(ctx)
	if err != nil {
		return err
	}
	r.topics, r.began = map[string]*destination{}, time.Now()
	r.report = redriveReport{DryRun: r.dryRun, Letters: []redrivenEntry{}}
	err = each(masters, func(m member) error {
		return r.eachLetter(ctx, m, r.group, &r.filter, func(v record.View, l *deadLetter) error { return r.one(ctx, m, v, l) })
	})
	if isTerminal(r.progress) && !r.told.IsZero() {
		fmt.Fprint(r.progress, "\r\x1b[K")
	}
	if err == nil && len(r.report.Letters) == 0 {
		return notFound("group %s has no such dead letter%s", r.group, r.meant(ctx, "group", r.group))
	}
	if ctx.Err() != nil {
		err = errors.New("broken off; the same words go on with the rest")
	}
	return errors.Join(r.tell(), err, r.failure())
}

// tell shows the report.
func (r *redrive) tell() error {
	if r.json {
		return r.document(r.report)
	}
	const most = 100 // rows; whoever wants all reads JSON
	var rows []table.Row
	for _, e := range r.report.Letters {
		if len(rows) < most || e.Error != "" && len(rows) < 2*most {
			rows = append(rows, table.Row{e.Dead, e.To, e.Outcome, e.ID + e.Error})
		}
	}
	if len(rows) > 0 {
		if err := r.show(nil, table.Row{"dead letter", "to", "outcome", "as"}, rows); err != nil {
			return err
		}
	}
	word := "redriven"
	if r.dryRun {
		word = "would be redriven"
	}
	r.done("%d %s, %d redriven before, %d failed", r.report.Redriven, word, r.report.Before, r.report.Failed)
	return nil
}

func (r *redrive) failure() error {
	n := r.report.Failed
	if n == 0 {
		return nil
	}
	err := fmt.Errorf("%d dead letters could not be put back", n)
	if r.report.Redriven+r.report.Before > 0 {
		return &partialError{r.report.Redriven + r.report.Before, len(r.report.Letters), err}
	}
	return refused("%v", err)
}

// one puts one letter back. It returns an error only when there is no going on.
func (r *redrive) one(ctx context.Context, m member, v record.View, l *deadLetter) error {
	if r.most > 0 && r.report.Redriven >= r.most {
		return errEnough
	}
	e := redrivenEntry{Dead: l.ID, To: l.OriginTopic}
	if r.to == "retry" || e.To == "" {
		e.To = mq.RetryTopic(r.group)
	}
	err := r.settle(ctx, m, v, l, &e)
	if err != nil && ctx.Err() != nil {
		return err
	}
	switch {
	case err != nil:
		e.Outcome, e.Error = "failed", err.Error()
		r.report.Failed++
	case e.Outcome == "redriven before":
		r.report.Before++
	default:
		r.report.Redriven++
	}
	r.report.Letters = append(r.report.Letters, e)
	if now := time.Now(); isTerminal(r.progress) && now.Sub(r.told) > 200*time.Millisecond {
		r.told = now
		fmt.Fprintf(r.progress, "\r\x1b[K%d redriven, %d before, %d failed", r.report.Redriven, r.report.Before, r.report.Failed)
	}
	if _, gone := errors.AsType[*unreachableError](err); gone {
		return err // in order or not at all
	}
	return nil
}

// settle decides what becomes of a letter and does it.
func (r *redrive) settle(ctx context.Context, m member, v record.View, l *deadLetter, e *redrivenEntry) error {
	dest, err := r.destination(ctx, e.To)
	if err != nil {
		return err
	}
	if !r.again {
		before, err := r.before(ctx, l)
		if err != nil {
			return fmt.Errorf("look whether it was put back before: %w", err)
		}
		if before != "" {
			e.ID, e.Outcome = before, "redriven before"
			return nil
		}
	}
	if dest == nil {
		return notFound("topic %s is gone; --to retry takes it", e.To)
	}
	if r.dryRun {
		e.Outcome = "would be redriven"
		return nil
	}
	to, err := dest.pick(m)
	if err != nil {
		return fmt.Errorf("topic %s: %w", e.To, err)
	}
	if err := r.pace(ctx); err != nil {
		return err
	}
	e.ID, err = r.replay(ctx, to, v, e.To)
	e.Outcome = "redriven"
	return err
}

// destination finds out where a topic is; nil when nowhere.
func (r *redrive) destination(ctx context.Context, topic string) (*destination, error) {
	if d, known := r.topics[topic]; known {
		return d, nil
	}
	var route protocol.Route
	err := r.askNames(ctx, protocol.GetRouteInfoByTopic, &protocol.TopicHeader{Topic: topic}, &route)
	if errors.Is(err, mq.ErrNoTopic) {
		r.topics[topic] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &destination{into: map[string]bool{}}
	for _, b := range route.Brokers {
		if addr, ok := b.Addrs[0]; ok {
			d.brokers = append(d.brokers, member{b.Cluster, b.Name, 0, addr})
		}
	}
	for _, q := range route.Queues {
		d.into[q.BrokerName] = mq.Perm(q.Perm).Writable() && q.WriteQueues > 0
	}
	r.topics[topic] = d
	return d, nil
}

// pick is where to send: the broker of the dead letter if it can take it.
func (d *destination) pick(from member) (member, error) {
	best := member{}
	for _, b := range d.brokers {
		if d.into[b.Name] && (best.Addr == "" || b.Name == from.Name || b.Addr == from.Addr) {
			best = b
		}
	}
	if best.Addr == "" {
		return best, refused("no broker takes messages for it")
	}
	return best, nil
}

// before finds what a letter became in an earlier run: a message with its unique
// key that names it. Its own key has one that came without.
func (r *redrive) before(ctx context.Context, l *deadLetter) (string, error) {
	for _, topic := range []string{l.OriginTopic, mq.RetryTopic(r.group)} {
		if topic == "" {
			continue
		}
		d, err := r.destination(ctx, topic)
		if err != nil {
			return "", err
		}
		if d == nil {
			continue
		}
		hits, err := r.query(ctx, d.brokers, topic, uniqueKeyOf(l), true, 64, 0, 1<<62)
		if err != nil {
			return "", err
		}
		for _, h := range hits {
			if h.Properties[propReplayOf] == l.ID {
				return h.ID, nil
			}
		}
	}
	return "", nil
}

// uniqueKeyOf is the unique key that a letter has, or gets.
func uniqueKeyOf(l *deadLetter) string {
	if key := l.Properties[mq.PropUniqueKey]; key != "" {
		return key
	}
	return l.ID
}

// pace waits so that no more than rate letters a second go out.
func (r *redrive) pace(ctx context.Context) error {
	if r.rate == 0 {
		return ctx.Err()
	}
	due := r.began.Add(time.Duration(float64(r.report.Redriven) / r.rate * float64(time.Second)))
	select {
	case <-time.After(time.Until(due)):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notReplayed are properties of the life that ended: with them the message would be
// delayed, be half of a transaction, or be taken for something else.
var notReplayed = []string{
	mq.PropDelay, mq.PropRealTopic, mq.PropRealQueueID, mq.PropReconsumeTime, mq.PropMaxReconsume, mq.PropWait, mq.PropDelayMillis,
	mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs, mq.PropTimerOutMs, mq.PropTimerEnqueueMs, mq.PropTimerDequeueMs,
	mq.PropTimerRollTimes, mq.PropTimerDelayLevel, mq.PropTransaction, mq.PropMinOffset, mq.PropMaxOffset, mq.PropPopCK, mq.PropCRC32,
	propDeadTopic, propDeadID, propDeadReason, propReplayOf,
}

// replay sends the record of a dead letter, whole and unchanged but for the
// properties that made it one.
func (r *redrive) replay(ctx context.Context, to member, v record.View, topic string) (string, error) {
	id := v.MessageID()
	props := record.AppendWithout(nil, v.Properties(), notReplayed...)
	if key, _ := v.Property(mq.PropUniqueKey); len(key) == 0 {
		props = record.AppendProperty(props, mq.PropUniqueKey, id)
	}
	props = record.AppendProperty(props, propReplayOf, id)
	h := protocol.SendHeader{
		ProducerGroup: mq.GroupInnerProducer, Topic: topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, QueueID: -1,
		SysFlag: v.SysFlag() & (mq.SysCompressed | mq.SysCompressType | mq.SysMultiTags), Flag: v.Flag(), BornTime: v.BornTime(),
		Properties: strings.Clone(bin.String(props)),
	}
	resp, err := r.send(ctx, to.Addr, remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), v.Body())
	if err != nil {
		return "", err
	}
	var at protocol.SendResponse
	if err := protocol.DecodeSendResponse(resp, &at); err != nil {
		return "", err
	}
	return at.MsgID, nil
}
