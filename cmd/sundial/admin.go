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

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func adminCommand() *cobra.Command {
	a := &admin{}
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Look after topics, groups, messages, offsets, delays, transactions and dead letters of a cluster",
		Long: `Asks name servers and brokers, Sundial's or RocketMQ's, and shows tables or, with
--json, one JSON document; its fields are in each command's help. What destroys
something asks first (--yes does not), and --dry-run shows what would be done.

Exit codes: 0 done, 1 failed, 2 used wrongly, 3 what was named is not there, 4 a server
or the person asked said no, 5 nobody answered, 6 some servers did it and others did not.

The name server is --namesrv, else $NAMESRV_ADDR, else 127.0.0.1:9876. docs/ADMIN.md
has the command for each of mqadmin's.`,
		PersistentPreRunE:  func(cmd *cobra.Command, _ []string) error { return a.open(cmd) },
		PersistentPostRunE: func(*cobra.Command, []string) error { return a.remote.Close() },
	}
	f := cmd.PersistentFlags()
	f.StringVarP(&a.namesrv, "namesrv", "n", "", "name servers `HOST:PORT;...`")
	f.StringVarP(&a.broker, "broker", "b", "", "ask this broker only: `NAME or HOST:PORT`")
	f.StringVarP(&a.cluster, "cluster", "c", "", "ask the brokers of this cluster only: `NAME`")
	f.BoolVar(&a.json, "json", false, "write JSON")
	f.DurationVar(&a.timeout, "timeout", callTimeout, "wait so long for each answer")
	// These fail only for flags that are not there.
	_ = cmd.RegisterFlagCompletionFunc("broker", a.flagCompletion("broker"))
	_ = cmd.RegisterFlagCompletionFunc("cluster", a.flagCompletion("cluster"))
	cmd.AddCommand(clusterCommand(a), namesrvCommand(a), brokerCommand(a), topicCommand(a), groupCommand(a), messageCommand(a), delayCommand(a), txnCommand(a), dlqCommand(a), exportCommand(a), importCommand(a))
	return cmd
}

// admin is what all admin commands share.
type admin struct {
	*remote
	namesrv     string
	namesrvFrom string // what namesrv was said by
	broker      string
	cluster     string
	timeout     time.Duration
	json        bool
	dryRun, yes bool // of commands that change something
	out         io.Writer
}

// open is before every command: it finds out whom to ask.
func (a *admin) open(cmd *cobra.Command) error {
	a.out = cmd.OutOrStdout()
	a.namesrvFrom = "--namesrv"
	if a.namesrv == "" {
		a.namesrv, a.namesrvFrom = os.Getenv("NAMESRV_ADDR"), "$NAMESRV_ADDR"
	}
	if a.namesrv == "" {
		a.namesrv, a.namesrvFrom = "127.0.0.1:9876", "the default address"
	}
	if a.timeout <= 0 {
		return &usageError{fmt.Errorf("--timeout is %v, it must be more than nothing", a.timeout)}
	}
	var err error
	a.remote, err = newRemote()
	if err == nil {
		a.remote.timeout = a.timeout
	}
	return err
}

// askNames asks the name servers in turn; the first that answers counts.
func (a *admin) askNames(ctx context.Context, code protocol.Code, header, body any) error {
	var errs []error
	addrs, err := a.nameServers()
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		err := a.askBody(ctx, addr, code, header, body)
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
	return &unreachableError{errors.Join(append([]error{fmt.Errorf("no name server answers (%s; another is named with --namesrv HOST:PORT)", a.namesrvFrom)}, errs...)...)}
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
		if a.cluster != "" && b.Cluster != a.cluster {
			continue
		}
		for id, addr := range b.Addrs {
			all = append(all, member{b.Cluster, b.Name, id, addr})
		}
	}
	if a.cluster != "" && len(all) == 0 {
		return nil, notFound("the name server knows no cluster %s", a.cluster)
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
		return nil, notFound("the name server knows no broker")
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
		if addr, ok := b.Addrs[0]; ok && (a.cluster == "" || b.Cluster == a.cluster) {
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
		return nil, notFound("no broker has topic %s%s", topic, a.meant(ctx, "topic", topic))
	}
	return &r, err
}

// topicTable asks one broker for its topics.
func (a *admin) topicTable(ctx context.Context, m member) (*protocol.TopicTable, error) {
	var t protocol.TopicTable
	err := a.askBody(ctx, m.Addr, protocol.GetAllTopicConfig, &protocol.TopicPageHeader{}, &t)
	if err == nil {
		err = whole(m, "topic", t.Topics)
	}
	return &t, err
}

// groupTable asks one broker for its groups.
func (a *admin) groupTable(ctx context.Context, m member) (*protocol.GroupTable, error) {
	var t protocol.GroupTable
	err := a.askBody(ctx, m.Addr, protocol.GetAllSubscriptionGroupConfig, &protocol.GroupPageHeader{}, &t)
	if err == nil {
		err = whole(m, "group", t.Groups)
	}
	return &t, err
}

// whole refuses a table of a broker that names things without saying what they are.
func whole[V any](m member, kind string, table map[string]*V) error {
	for name, v := range table {
		if v == nil {
			return fmt.Errorf("%s: the answer names %s %q without its settings", m.Addr, kind, name)
		}
	}
	return nil
}

// names lists what there is of a kind: topic, group, broker or cluster.
func (a *admin) names(ctx context.Context, kind string) ([]string, error) {
	found := map[string]bool{}
	switch kind {
	case "topic":
		var list protocol.TopicList
		if err := a.askNames(ctx, protocol.GetAllTopicListFromNameServer, nil, &list); err != nil {
			return nil, err
		}
		return list.Topics, nil
	case "group":
		masters, err := a.masters(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range masters {
			if t, err := a.groupTable(ctx, m); err == nil {
				for name := range t.Groups {
					found[name] = true
				}
			}
		}
	default:
		all, err := a.members(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			found[map[string]string{"broker": m.Name, "cluster": m.Cluster}[kind]] = true
		}
	}
	return sortedKeys(found), nil
}

// meant asks back, as in "; did you mean Orders?", when there is a name like the
// one that was not found.
func (a *admin) meant(ctx context.Context, kind, said string) string {
	names, err := a.names(ctx, kind)
	if err != nil {
		return ""
	}
	if n := nearest(said, names); n != "" && n != said {
		return "; did you mean " + n + "?"
	}
	return ""
}

// completion completes arguments in a shell: the first with names of the first
// kind (see names) and so on.
func (a *admin) completion(kinds ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(kinds) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.complete(cmd, kinds[len(args)])
	}
}

// flagCompletion completes the value of a flag.
func (a *admin) flagCompletion(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.complete(cmd, kind)
	}
}

func (a *admin) complete(cmd *cobra.Command, kind string) ([]string, cobra.ShellCompDirective) {
	a.timeout = completionTimeout
	if err := a.open(cmd); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer a.remote.Close()
	names, err := a.names(cmd.Context(), kind)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completionTimeout is for how long somebody at a keyboard waits for names.
const completionTimeout = 2 * time.Second
