package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// Exit codes of the admin commands, beside 0 (done), 1 (failed) and 2 (used
// wrongly).
const exitNotFound = 3

func adminCommand() *cobra.Command {
	a := &admin{}
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Look after topics, groups, messages, offsets, delays and dead letters of a cluster",
		Long: `Asks name servers and brokers, Sundial's or RocketMQ's, and shows tables or, with
--json, one JSON document. Exit codes: 0 done, 1 failed, 2 used wrongly, 3 not there.

The name server is --namesrv, else $NAMESRV_ADDR, else 127.0.0.1:9876.`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.out = cmd.OutOrStdout()
			a.namesrvFrom = "--namesrv"
			if a.namesrv == "" {
				a.namesrv, a.namesrvFrom = os.Getenv("NAMESRV_ADDR"), "$NAMESRV_ADDR"
			}
			if a.namesrv == "" {
				a.namesrv, a.namesrvFrom = "127.0.0.1:9876", "the default address"
			}
			var err error
			a.remote, err = newRemote()
			return err
		},
		PersistentPostRunE: func(*cobra.Command, []string) error { return a.remote.Close() },
	}
	cmd.PersistentFlags().StringVarP(&a.namesrv, "namesrv", "n", "", "name servers `HOST:PORT;...`")
	cmd.PersistentFlags().StringVarP(&a.broker, "broker", "b", "", "ask this broker only: `NAME or HOST:PORT`")
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "write JSON")
	cmd.AddCommand(clusterCommand(a), topicCommand(a), groupCommand(a), messageCommand(a), offsetCommand(a), delayCommand(a), deadCommand(a))
	return cmd
}

// admin is what all admin commands share.
type admin struct {
	*remote
	namesrv     string
	namesrvFrom string // what namesrv was said by
	broker      string
	json        bool
	out         io.Writer
}

// askNames asks the name servers in turn; the first that answers counts.
func (a *admin) askNames(ctx context.Context, code protocol.Code, header, body any) error {
	var errs []error
	for addr := range strings.FieldsFuncSeq(a.namesrv, func(r rune) bool { return r == ';' || r == ',' }) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		err := a.askBody(ctx, strings.TrimSpace(addr), code, header, body)
		cancel()
		if _, answered := errors.AsType[*protocol.ResponseError](err); err == nil || answered {
			return err
		}
		errs = append(errs, err)
	}
	return a.unreachable(errs)
}

// unreachable says that nobody answered, and where the address is from.
func (a *admin) unreachable(errs []error) error {
	if len(errs) == 0 {
		return &usageError{fmt.Errorf("--namesrv %q names no name server", a.namesrv)}
	}
	return errors.Join(append([]error{fmt.Errorf("no name server answers (%s; another is named with --namesrv HOST:PORT)", a.namesrvFrom)}, errs...)...)
}

// member is one broker process.
type member struct {
	Cluster string `json:"cluster"`
	Name    string `json:"broker"`
	ID      int64  `json:"id"`
	Addr    string `json:"addr"`
}

// members lists the brokers of the cluster, by cluster, name and id.
func (a *admin) members(ctx context.Context) ([]member, error) {
	var c protocol.Cluster
	if err := a.askNames(ctx, protocol.GetBrokerClusterInfo, nil, &c); err != nil {
		return nil, err
	}
	var all []member
	for _, b := range c.Brokers {
		for id, addr := range b.Addrs {
			all = append(all, member{b.Cluster, b.Name, id, addr})
		}
	}
	slices.SortFunc(all, func(x, y member) int {
		return strings.Compare(fmt.Sprintf("%s\x00%s\x00%020d", x.Cluster, x.Name, x.ID), fmt.Sprintf("%s\x00%s\x00%020d", y.Cluster, y.Name, y.ID))
	})
	return all, nil
}

// masters lists the brokers to ask or to change: those of --broker, else all
// masters.
func (a *admin) masters(ctx context.Context) ([]member, error) {
	if strings.Contains(a.broker, ":") {
		return []member{{Name: a.broker, Addr: a.broker}}, nil
	}
	all, err := a.members(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m member) bool { return m.ID != 0 || a.broker != "" && m.Name != a.broker })
	if len(all) == 0 && a.broker != "" {
		return nil, notFound("no broker is called %s", a.broker)
	}
	if len(all) == 0 {
		return nil, errors.New("the name server knows no broker")
	}
	return all, nil
}

// mastersOf lists the masters that have a topic.
func (a *admin) mastersOf(ctx context.Context, topic string) ([]member, error) {
	if a.broker != "" {
		return a.masters(ctx)
	}
	route, err := a.route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var all []member
	for _, b := range route.Brokers {
		if addr, ok := b.Addrs[0]; ok {
			all = append(all, member{b.Cluster, b.Name, 0, addr})
		}
	}
	slices.SortFunc(all, func(x, y member) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

func (a *admin) route(ctx context.Context, topic string) (*protocol.Route, error) {
	var r protocol.Route
	err := a.askNames(ctx, protocol.GetRouteInfoByTopic, &protocol.TopicHeader{Topic: topic}, &r)
	if errors.Is(err, mq.ErrNoTopic) {
		return nil, notFound("no broker has topic %s", topic)
	}
	return &r, err
}

// each asks or changes one broker after the other and joins what goes wrong.
func each(all []member, do func(member) error) error {
	var errs []error
	for _, m := range all {
		if err := do(m); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// notFoundError ends the process with exitNotFound.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

func notFound(format string, args ...any) error { return &notFoundError{fmt.Sprintf(format, args...)} }

// show writes rows: as a table, or as JSON what doc holds.
func (a *admin) show(doc any, header table.Row, rows []table.Row) error {
	if a.json {
		return a.document(doc)
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.out)
	t.SetStyle(plainStyle())
	t.AppendHeader(header)
	t.AppendRows(rows)
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "none")
		return nil
	}
	t.Render()
	return nil
}

// showUnless is show, but for a failure that leaves nothing to show.
func (a *admin) showUnless(err error, doc any, header table.Row, rows []table.Row) error {
	if err != nil && len(rows) == 0 && !a.json {
		return err
	}
	return errors.Join(a.show(doc, header, rows), err)
}

// document writes JSON.
func (a *admin) document(doc any) error { return writeJSON(a.out, doc) }

// plainStyle is how all tables look.
func plainStyle() table.Style {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	return style
}

// done says what was done, unless a program reads.
func (a *admin) done(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.out, format+"\n", args...)
	}
}

// stamp writes a time in ms for people; what is not known is a dash.
func stamp(millis int64) string {
	if millis <= 0 {
		return "-"
	}
	return time.UnixMilli(millis).Format("2006-01-02 15:04:05.000")
}

// cellOffset writes an offset; what is not known is a dash.
func cellOffset(off mq.QueueOffset) any {
	if off < 0 {
		return "-"
	}
	return off
}
