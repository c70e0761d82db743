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
	"time"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// run is main with an exit code: 0 done, 1 failed, 2 used wrongly, those of
// outcomeOf.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once: a person's, not the echo of the
	// first that reaches a process twice, by itself and with its group.
	context.AfterFunc(ctx, func() { time.AfterFunc(echo, stop) })
	err := rootCommand().ExecuteContext(ctx)
	if _, said := errors.AsType[exitCode](err); err != nil && !said {
		fmt.Fprintln(os.Stderr, "sundial:", err)
	}
	return codeOf(err)
}

// echo is for how long a signal after the first is taken for the same one.
const echo = time.Second

// codeOf is the exit code that an error means.
func codeOf(err error) int {
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	_, usage := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return 0
	case usage, strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "required flag"), strings.HasPrefix(err.Error(), "if any flags in the group"):
		return 2 // the last three are cobra's
	}
	return max(1, outcomeOf(err))
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
			if check(c, args) == nil {
				return nil
			}
			said := "nothing"
			if len(args) > 0 {
				said = fmt.Sprintf("%q", args)
				said = said[1 : len(said)-1]
			}
			return &usageError{fmt.Errorf("it is used as: %s; given was %s (see %s --help)", strings.TrimSuffix(c.UseLine(), " [flags]"), said, c.CommandPath())}
		}
	}
	if cmd.HasParent() && !cmd.Runnable() {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return &usageError{fmt.Errorf("%s takes one of %s, not %s (see %s --help)", c.CommandPath(), strings.Join(names, ", "), args[0], c.CommandPath())}
		}
	}
	for _, sub := range cmd.Commands() {
		tidyUse(sub)
	}
}
