package main

import "github.com/spf13/cobra"

func brokerCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "broker", Short: "Look after single brokers"}
	cmd.AddCommand(brokerListCommand(a))
	return cmd
}

// brokerListCommand is the cluster's list, where somebody looks for brokers.
func brokerListCommand(a *admin) *cobra.Command {
	cmd := clusterListCommand(a)
	cmd.Use, cmd.Short = "list", "List the brokers and how they are"
	return cmd
}
