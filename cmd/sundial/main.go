// Command sundial is a message broker that RocketMQ's clients talk to: the
// broker and its name server, the tools to look after them, and a demonstration.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

// run is main with an exit code: 0 done, 1 failed, 2 used wrongly.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "sundial:", err)
	if _, missing := errors.AsType[*notFoundError](err); missing {
		return exitNotFound
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
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
	return root
}
