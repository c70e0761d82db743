// Command sundial is a message broker that RocketMQ's clients talk to: the
// broker and its name server, the tools to look after them, and a demonstration.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// run is main with an exit code: 0 done, 1 failed, 2 used wrongly.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := rootCommand().ExecuteContext(ctx)
	if _, said := errors.AsType[exitCode](err); err != nil && !said {
		fmt.Fprintln(os.Stderr, "sundial:", err)
	}
	return codeOf(err)
}

// codeOf is the exit code that an error means.
func codeOf(err error) int {
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	if _, missing := errors.AsType[*notFoundError](err); missing {
		return exitNotFound
	}
	_, usage := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return 0
	case usage, strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "required flag"):
		return 2 // the last two are cobra's
	}
	return 1
}

// exitCode ends the process with that code; everything was said already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// usageError is the user's mistake on the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sundial",
		Short: "A message broker for RocketMQ clients, in one binary",
		Long: `Sundial is a message broker that RocketMQ's clients talk to, with delays kept to the millisecond.

  sundial quickstart     see it work: messages sent, delayed and received before your eyes
  sundial serve          run a broker with its name server here, on RocketMQ's ports`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(serveCommand(), quickstartCommand(), adminCommand(), configCommand(), storeCommand(), benchCommand(), versionCommand())
	tidyUse(root)
	return root
}

// tidyUse makes mistakes in arguments usage errors, and has commands that only
// hold others say so.
func tidyUse(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{fmt.Errorf("%w (see %s --help)", err, c.CommandPath())}
			}
			return nil
		}
	}
	if cmd.HasParent() && !cmd.Runnable() {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			said := "nothing"
			if len(args) > 0 {
				said = args[0]
			}
			return &usageError{fmt.Errorf("%s takes one of %s, not %s (see %s --help)", c.CommandPath(), strings.Join(names, ", "), said, c.CommandPath())}
		}
	}
	for _, sub := range cmd.Commands() {
		tidyUse(sub)
	}
}
