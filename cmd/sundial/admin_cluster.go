package main

import (
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/protocol"
)

func clusterCommand(a *admin) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "List the brokers and how they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.members(cmd.Context())
			if err != nil {
				return err
			}
			type state struct {
				member
				Runtime map[string]string `json:"runtime,omitempty"`
				Error   string            `json:"error,omitempty"`
			}
			var doc []state
			var rows []table.Row
			for _, m := range all {
				s := state{member: m}
				var info protocol.KVTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetBrokerRuntimeInfo, nil, &info); err != nil {
					s.Error = err.Error()
				}
				s.Runtime = info.Table
				doc = append(doc, s)
				boot, _ := strconv.ParseInt(info.Table["bootTimestamp"], 10, 64)
				what := strings.TrimSpace(info.Table["product"] + " " + info.Table["brokerVersionDesc"])
				if s.Error != "" {
					what = s.Error
				}
				rows = append(rows, table.Row{m.Cluster, m.Name, m.ID, m.Addr, what,
					first(info.Table["putTps"]), first(info.Table["getTransferredTps"]), stamp(boot)})
			}
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
				return nil
			}
			return a.show(doc, table.Row{"cluster", "broker", "id", "address", "version", "in/s", "out/s", "since"}, rows)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show everything the brokers tell")
	return cmd
}

// first is the first number of RocketMQ's rates: that of the last 10 seconds.
func first(rates string) string {
	f := strings.Fields(rates)
	if len(f) == 0 {
		return "-"
	}
	return f[0]
}
