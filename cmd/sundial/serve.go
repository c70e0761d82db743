package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/node"
)

func serveCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a broker and its name server",
		Long: `Runs a broker and its name server in this process, on RocketMQ's ports (name server
9876, broker 10911 and 10909), with the data in ./sundial-data.

Without a configuration file it listens on the loopback address only: open it with
--listen. With -c it reads RocketMQ's broker.conf and listens where that says, by
default on all addresses. A broker for name servers that run elsewhere, without one here:

  sundial serve --namesrv HOST:PORT

SIGTERM and Ctrl-C stop it clean; a second one, a second later or more, at once.`,
		Example: `  sundial serve --listen 0.0.0.0 --data /var/lib/sundial
  sundial serve -c /etc/rocketmq/broker.conf
  sundial serve --port-offset 100 --data ./second -n 127.0.0.1:9876`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tuneRuntime()
			return serve(cmd.Context(), &s, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// serve runs a node until ctx is done.
func serve(ctx context.Context, s *settings, out, errOut io.Writer) error {
	began := time.Now()
	cfg, warnings, err := s.load()
	if err != nil {
		return err
	}
	cfg.Broker.Store.ProcessID = os.Getpid()
	cfg.Log = slog.New(slog.NewTextHandler(errOut, nil))
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return errors.Join(err, hint(cfg, err))
	}
	banner(out, cfg, n, time.Since(began), s, warnings)
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "stopping: finishing what is under way")
	case <-n.Done():
	}
	if err := n.Wait(); err != nil {
		return err
	}
	fmt.Fprintln(out, "stopped clean")
	return nil
}

// hint is what may help against a start that failed.
func hint(cfg node.Config, err error) error {
	_, damaged := errors.AsType[*mq.CorruptionError](err)
	switch {
	case damaged:
		return errors.New("\"sundial store verify --accept-damage DIR\" shows what is left; docs/OPERATION.md, Damage, says how to go on")
	case node.PortInUse(err) && cfg.Roles.Has(node.NameServer) && cfg.Roles.Has(node.Broker) && strings.Contains(err.Error(), "namesrvListenPort"):
		return errors.New("if that program is the name server to register with, run the broker alone: --namesrv HOST:PORT")
	}
	return nil
}

// banner says what runs, where, and what to do next.
func banner(out io.Writer, cfg node.Config, n *node.Node, took time.Duration, s *settings, warnings []string) {
	at := n.Addresses()
	line := func(name, format string, args ...any) {
		fmt.Fprintf(out, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(out, "%s, ready in %d ms\n", versionLine(), took.Milliseconds())
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		dir = cfg.Dir
	}
	if cfg.Roles.Has(node.NameServer) {
		line("name server", "%s", at.NameServer)
	}
	if cfg.Roles.Has(node.Broker) {
		b := cfg.Broker
		line("broker", "%s (id %d) of cluster %s", b.Name, b.ID, b.Cluster)
		line("", "listens on %s", at.Listen)
		if at.Fast.IsValid() {
			line("", "and for old clients on %s", at.Fast)
		}
		line("", "clients are told %s", at.Broker)
		if a := cfg.Broker.Announce; a.UseAddressServer && len(at.NameServers) == 0 {
			line("", "registers with the name servers that %s names", a.AddressServer)
		}
		if len(at.NameServers) > 0 {
			none := ""
			if !cfg.Roles.Has(node.NameServer) && s.roles == "" {
				none = ", and there is no name server here (--roles namesrv,broker starts one)"
			}
			line("", "registers with %s%s", strings.Join(at.NameServers, ", "), none)
		}
		flush := "asynchronous: a power loss may take the last moments (flushDiskType=SYNC_FLUSH waits for the disk)"
		if b.Store.SyncFlush {
			flush = "synchronous: a message is confirmed when it is on disk"
		}
		line("flush", "%s", flush)
	}
	line("data", "%s", dir)
	if cfg.Roles.Has(node.Broker) {
		line("", "commitlog/ consumequeue/ index/ config/ as RocketMQ has them; sundial/ is ours")
		for _, d := range cfg.Broker.Store.LogDirs {
			line("", "commit log in %s", d)
		}
	}
	if s.file != "" {
		line("settings", "%s", s.file)
	} else {
		line("settings", "defaults; -c FILE reads a broker.conf, --set KEY=VALUE sets one")
	}
	for _, w := range append(warnings, addressWarnings(cfg, at)...) {
		fmt.Fprintf(out, "  WARNING      %s\n", w)
	}
	next(out, cfg, at)
}

// next says where clients are to be pointed: at name servers that know the broker.
func next(out io.Writer, cfg node.Config, at node.Addresses) {
	names := at.NameServers
	if len(names) == 0 && cfg.Roles.Has(node.NameServer) {
		names = []string{at.NameServer.String()}
	}
	if len(names) == 0 {
		fmt.Fprintf(out, "Next: look around with\n  sundial admin topic list -b %s\n", at.Broker)
		return
	}
	fmt.Fprintf(out, "Next: point clients at the name server %s, or look around with\n", strings.Join(names, ";"))
	fmt.Fprintf(out, "  sundial admin cluster -n %s\n", names[0])
}

// addressWarnings say who cannot reach the broker.
func addressWarnings(cfg node.Config, at node.Addresses) []string {
	var w []string
	if !cfg.Roles.Has(node.Broker) {
		if at.NameServer.Addr().IsLoopback() {
			w = append(w, "only programs on this machine can connect; open it with --listen 0.0.0.0")
		}
		return w
	}
	switch own := at.NameServer.String(); {
	case len(at.NameServers) == 0 && cfg.Broker.Announce.UseAddressServer: // it says where they are
	case len(at.NameServers) == 0:
		w = append(w, "the broker registers with no name server, so no client finds it: name some with --namesrv (namesrvAddr)")
	case cfg.Roles.Has(node.NameServer) && len(cfg.Broker.NameServers) > 0 && !mayBeHere(at.NameServers, int(at.NameServer.Port())):
		w = append(w, fmt.Sprintf("the broker registers with %s, not with the name server %s of this process, which knows nothing of it: leave that out with --roles broker", strings.Join(at.NameServers, ", "), own))
	}
	listen, told := at.Listen.Addr(), at.Broker.Addr()
	switch {
	case listen.IsLoopback() && told.IsLoopback():
		w = append(w, "only programs on this machine can connect; open it with --listen 0.0.0.0")
	case listen.IsLoopback():
		w = append(w, fmt.Sprintf("clients are told %s (brokerIP1), but the broker listens on %s only: nobody reaches it there; set --listen", told, listen))
	case told.IsLoopback():
		w = append(w, fmt.Sprintf("clients are told %s: those on other machines will not reach the broker; set brokerIP1 to an address of this machine", told))
	case told.IsPrivate():
		w = append(w, fmt.Sprintf("clients are told %s: those outside of this network will not reach the broker; if there are any, set brokerIP1", told))
	}
	return w
}
