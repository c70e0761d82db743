package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/protocol"
)

func clusterCommand(a *admin) *cobra.Command {
	cmd := clusterListCommand(a)
	cmd.Use = "cluster"
	cmd.AddCommand(clusterListCommand(a), clusterHealthCommand(a))
	return cmd
}

// brokerState is a broker and what it tells of itself.
type brokerState struct {
	member
	Runtime map[string]string `json:"runtime,omitempty"`
	Error   string            `json:"error,omitempty"` // why it tells nothing
}

// states asks all brokers how they are. One that does not answer is in the list
// with its error, and in err.
func (a *admin) states(ctx context.Context) ([]brokerState, error) {
	all, err := a.members(ctx)
	if err != nil {
		return nil, err
	}
	if a.broker != "" {
		if all, err = a.masters(ctx); err != nil {
			return nil, err
		}
	}
	doc := []brokerState{}
	err = each(all, func(m member) error {
		s := brokerState{member: m}
		var info protocol.KVTable
		err := a.askBody(ctx, m.Addr, protocol.GetBrokerRuntimeInfo, nil, &info)
		if err != nil {
			s.Error = err.Error()
		}
		s.Runtime = info.Table
		doc = append(doc, s)
		return err
	})
	return doc, err
}

func clusterListCommand(a *admin) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the brokers and how they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc, err := a.states(cmd.Context())
			if verbose && !a.json {
				for _, s := range doc {
					rows := []table.Row{}
					for _, k := range sortedKeys(s.Runtime) {
						rows = append(rows, table.Row{k, s.Runtime[k]})
					}
					a.done("%s %d at %s", s.Name, s.ID, s.Addr)
					if err := a.show(nil, table.Row{"what", "value"}, rows); err != nil {
						return err
					}
				}
				return err
			}
			var rows []table.Row
			for _, s := range doc {
				boot, _ := strconv.ParseInt(s.Runtime["bootTimestamp"], 10, 64)
				what := strings.TrimSpace(s.Runtime["product"] + " " + s.Runtime["brokerVersionDesc"])
				if s.Error != "" {
					what = "does not answer"
				}
				rows = append(rows, table.Row{s.Cluster, s.Name, s.ID, s.Addr, what, first(s.Runtime["putTps"]), first(s.Runtime["getTransferredTps"]), stamp(boot)})
			}
			return a.showUnless(err, doc, table.Row{"cluster", "broker", "id", "address", "version", "in/s", "out/s", "since"}, rows)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show everything the brokers tell")
	return describe(cmd, []brokerState{})
}

// first is the first number of RocketMQ's rates: that of the last 10 seconds.
func first(rates string) string {
	f := strings.Fields(rates)
	if len(f) == 0 {
		return "-"
	}
	return f[0]
}
