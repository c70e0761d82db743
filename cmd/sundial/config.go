package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/config"
)

func configCommand() *cobra.Command {
	var s settings
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force and where each is from; check a file; explain a key",
		Long: `Prints every setting that serve with the same flags would use, and where it is from.
A file that serve would refuse is refused here too, with everything that is wrong with it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, _, err := s.read()
			if err != nil {
				return err
			}
			return printSettings(cmd.OutOrStdout(), all, asJSON)
		},
	}
	s.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.AddCommand(configCheckCommand(), &cobra.Command{
		Use:   "explain KEY",
		Short: "Say what a key of RocketMQ's or ours does, its values and its default",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := config.Explain(args[0])
			if err != nil {
				return &usageError{err}
			}
			fmt.Fprint(cmd.OutOrStdout(), text)
			return nil
		},
	})
	return cmd
}

func configCheckCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a configuration file, or that it is good",
		Long: `Reads FILE as serve -c FILE would. In the file of a node that is name server only,
as RocketMQ's namesrv.conf, listenPort is the name server's: say --roles namesrv.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.file = args[0]
			all, roles, err := s.read()
			if err != nil {
				return err
			}
			for _, w := range all.Warnings {
				fmt.Fprintln(cmd.OutOrStdout(), w)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is good, for a node that is %s\n", args[0], strings.ReplaceAll(roles.String(), ",", " and "))
			return nil
		},
	}
	s.registerRoles(cmd.Flags())
	return cmd
}

func printSettings(out io.Writer, all *config.Settings, asJSON bool) error {
	if asJSON {
		type entry struct {
			Key    string `json:"key"`
			Value  string `json:"value"`
			Origin string `json:"origin"`
		}
		doc := struct {
			Settings []entry  `json:"settings"`
			Warnings []string `json:"warnings"`
		}{Warnings: append([]string{}, all.Warnings...)}
		for _, e := range all.Effective() {
			doc.Settings = append(doc.Settings, entry(e))
		}
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"key", "value", "from"})
	for _, e := range all.Effective() {
		t.AppendRow(table.Row{e.Key, e.Value, e.Origin})
	}
	fmt.Fprintln(out, t.Render())
	for _, w := range all.Warnings {
		fmt.Fprintln(out, "WARNING", w)
	}
	return nil
}
