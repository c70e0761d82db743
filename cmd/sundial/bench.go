package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/bench"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func benchCommand() *cobra.Command {
	b := &benchmark{cfg: bench.DefaultDelayConfig()}
	plain := bench.DefaultConfig()
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Load a broker, Sundial's or RocketMQ's, and measure it from outside",
		Long: `Loads a broker over TCP and shows rate and latencies while it runs: percentiles in ms,
and, when --pid names the server's process on this machine, its CPU seconds per
million messages and its memory. --json writes the result as one document.`,
	}
	run := func(use, short string, defaults bench.Config, do func(ctx context.Context) (*bench.Result, error)) *cobra.Command {
		c := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				b.cfg.Config = *b.flags[cmd]
				return b.run(cmd, do)
			},
		}
		b.register(c, defaults)
		cmd.AddCommand(c)
		return c
	}
	run("send", "Send messages and measure how long their answers take", plain, func(ctx context.Context) (*bench.Result, error) {
		return bench.Send(ctx, b.cfg.Config)
	})
	run("consume", "Read everything a topic holds, once; with --count or --duration over and over until that is reached", plain, func(ctx context.Context) (*bench.Result, error) {
		return bench.Consume(ctx, b.cfg.Config)
	})
	d := run("delay", "Send delayed messages and measure how late they come; --level 0 measures from producer to consumer",
		b.cfg.Config, func(ctx context.Context) (*bench.Result, error) { return bench.Delay(ctx, b.cfg) })
	d.Flags().IntVar(&b.cfg.Level, "level", b.cfg.Level, "delay level")
	d.Flags().BoolVar(&b.cfg.Timed, "timed", false, "due times of their own instead of a level: --after and --over")
	d.Flags().DurationVar(&b.cfg.After, "after", 5*time.Second, "when the first timed message is due, from the beginning of the run")
	d.Flags().DurationVar(&b.cfg.Over, "over", 0, "how much later the last is due, the others evenly between; 0 is all in one millisecond")
	d.Flags().StringVar(&b.cfg.Levels, "levels", "", "the broker's table of delay levels, when it is not RocketMQ's")
	d.Flags().DurationVar(&b.cfg.Patience, "patience", b.cfg.Patience, "how long to wait for messages after the last is due")
	return cmd
}

// benchmark is what the bench commands share.
type benchmark struct {
	cfg     bench.DelayConfig
	flags   map[*cobra.Command]*bench.Config
	namesrv string
	pid     int
	binary  bool
	json    bool
}

// register binds a command's flags to settings of its own: each command has
// other defaults.
func (b *benchmark) register(cmd *cobra.Command, defaults bench.Config) {
	if b.flags == nil {
		b.flags = map[*cobra.Command]*bench.Config{}
	}
	c := &defaults
	b.flags[cmd] = c
	f := cmd.Flags()
	f.StringVarP(&b.namesrv, "namesrv", "n", "", "load all brokers that the name servers `HOST:PORT;...` know")
	f.StringVarP(&c.Broker, "broker", "b", c.Broker, "load the broker at `HOST:PORT`")
	f.StringVar(&c.Topic, "topic", c.Topic, "the topic")
	f.StringVar(&c.Group, "group", c.Group, "the group")
	f.IntVar(&c.Conns, "conns", c.Conns, "connections")
	f.Int64Var(&c.Count, "count", c.Count, "end after so many messages")
	f.DurationVar(&c.Duration, "duration", c.Duration, "end after so long")
	if cmd.Name() == "consume" {
		f.IntVar(&c.Queues, "queues", c.Queues, "queues of the topic, with --broker; else the name servers say it")
	} else {
		f.IntVar(&c.Queues, "queues", c.Queues, "queues of the topic on each broker; 0 leaves it as it is")
		f.IntVar(&c.InFlight, "in-flight", c.InFlight, "requests under way on each connection")
		f.IntVar(&c.Size, "size", c.Size, "bytes of a body")
		f.Float64Var(&c.Rate, "rate", c.Rate, "messages a second; 0 is as fast as answers come")
		f.BoolVar(&c.Sync, "sync", c.Sync, "a goroutine for each request, as threads of a Java producer")
	}
	f.BoolVar(&b.binary, "binary", false, "headers in RocketMQ's binary form instead of JSON")
	f.IntVar(&b.pid, "pid", 0, "the server's process, to read its CPU time and memory")
	f.BoolVar(&b.json, "json", false, "write the result as JSON")
}

func (b *benchmark) run(cmd *cobra.Command, do func(context.Context) (*bench.Result, error)) error {
	c := &b.cfg.Config
	if b.namesrv != "" {
		c.NameServers, c.Broker = strings.FieldsFunc(b.namesrv, func(r rune) bool { return r == ';' || r == ',' }), ""
	}
	if b.binary {
		c.Serialize = remoting.Binary
	}
	if b.pid > 0 {
		c.Usage = bench.ProcUsage(b.pid, os.ReadFile)
	}
	if !b.json {
		c.Progress = liveProgress(cmd.ErrOrStderr())
	}
	result, err := do(cmd.Context())
	if err != nil {
		return err
	}
	if b.json {
		return writeJSON(cmd.OutOrStdout(), result)
	}
	showResult(cmd.OutOrStdout(), result)
	if result.Errors > 0 || result.Delay != nil && (result.Delay.Lost > 0 || result.Delay.Twice > 0 || result.Delay.Early > 0) {
		return exitCode(1)
	}
	return nil
}

// liveProgress writes one line a report; on a terminal it stays one line.
func liveProgress(w io.Writer) func(bench.Progress) {
	end, begin := "\n", ""
	if isTerminal(w) {
		begin, end = "\r\x1b[K", ""
	}
	return func(p bench.Progress) {
		total := ""
		if p.Total > 0 {
			total = fmt.Sprintf(" of %d", p.Total)
		}
		fmt.Fprintf(w, "%s%6.1f s  %d%s messages  %.0f/s  p50 %.2f  p99 %.2f  max %.2f ms", begin, p.Elapsed.Seconds(), p.Messages, total, p.Rate,
			p.Latency.P50, p.Latency.P99, p.Latency.Max)
		if p.Server != nil {
			fmt.Fprintf(w, "  server %.1f CPU s/million, %.0f MB", p.Server.CPUPerMillion, p.Server.AnonMB)
		}
		if p.Errors > 0 {
			fmt.Fprintf(w, "  %d errors", p.Errors)
		}
		fmt.Fprint(w, end)
	}
}

func showResult(w io.Writer, r *bench.Result) {
	if isTerminal(w) {
		fmt.Fprint(w, "\r\x1b[K")
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{"what", "value"})
	row := func(name, format string, args ...any) { t.AppendRow(table.Row{name, fmt.Sprintf(format, args...)}) }
	row("run", "%s, topic %s, %d queues, on %s", r.Run, r.Topic, r.Queues, strings.Join(r.Brokers, ", "))
	if r.Run == "consume" {
		row("under way", "%d connections with a pull for each queue, %s headers", r.Conns, r.Header)
	} else {
		row("under way", "%d connections with %d each, %s headers, bodies of %d bytes", r.Conns, r.InFlight, r.Header, r.Size)
	}
	row("messages", "%d in %s", r.Messages, time.Duration(r.Seconds*float64(time.Second)).Round(time.Millisecond))
	if r.Run == "consume" && r.Messages > r.There {
		row("", "the topic has %d: they were read more than once to reach --count or --duration", r.There)
	}
	if r.Delay == nil {
		row("rate", "%.0f/s, %.1f MB/s", r.PerSecond, r.MBPerSec)
	}
	latencies := func(name string, l *bench.Latencies) {
		if l != nil && l.Count > 0 {
			row(name, "p50 %.3f  p90 %.3f  p99 %.3f  p99.9 %.3f  max %.3f ms", l.P50, l.P90, l.P99, l.P999, l.Max)
		}
	}
	switch r.Run {
	case "send":
		latencies("answer", r.Latency)
	case "consume":
		latencies("pull", r.Latency)
	}
	if d := r.Delay; d != nil {
		if r.Run == "latency" {
			latencies("producer to consumer", d.Lateness)
		} else {
			latencies("lateness", d.Lateness)
			latencies("lateness at most", d.LatenessAtMost)
		}
		latencies("answer to a send", d.Send)
		early := fmt.Sprintf("%d early", d.Early)
		if d.Early > 0 {
			early += fmt.Sprintf(" (at most %.3f ms)", d.EarlyMaxMillis)
		}
		row("delivered", "%d sent, %d lost, %d twice, %s", d.Sent, d.Lost, d.Twice, early)
	}
	if r.Server != nil {
		row("server", "%.2f CPU s, %.2f per million messages; %.1f MB at the end, %.1f at most", r.Server.CPUSeconds, r.Server.CPUPerMillion, r.Server.AnonMB, r.Server.PeakAnonMB)
	}
	if r.Errors > 0 {
		row("errors", "%d", r.Errors)
		for _, p := range sortedKeys(r.Problems) {
			row("", "%d: %s", r.Problems[p], p)
		}
	}
	t.Render()
}
