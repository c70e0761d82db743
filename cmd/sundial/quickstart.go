package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/node"
	"github.com/sundial-mq/sundial/internal/protocol"
)

func quickstartCommand() *cobra.Command {
	q := quickstart{parcels: []load{{0, 5}, {1, 3}, {2, 3}, {3, 2}}}
	cmd := &cobra.Command{
		Use:   "quickstart",
		Short: "See it work: messages sent, delayed and received before your eyes",
		Long: `Starts a broker with its name server in a temporary directory (or --dir), makes a
topic, sends normal messages and messages with the delay levels 1 to 3 over TCP,
receives them, and shows for each when it was due, when it arrived and how late
it was. Ends with exit code 1 when a message is lost, doubled, changed or early.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tuneRuntime()
			q.out = cmd.OutOrStdout()
			return q.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&q.dir, "dir", "", "keep the data in this directory (default: a temporary one, removed at the end)")
	cmd.Flags().BoolVar(&q.keep, "keep", false, "leave the broker running and print how to point clients at it")
	cmd.Flags().IntVar(&q.portOffset, "port-offset", 0, "add N to RocketMQ's ports (default: those, or free ones when they are taken)")
	return cmd
}

// quickstart is one demonstration.
type quickstart struct {
	dir        string
	keep       bool
	portOffset int
	parcels    []load
	out        io.Writer
}

// load is how many messages of one delay level are sent; level 0 is none.
type load struct{ level, count int }

const (
	quickTopic  = "QuickStart"
	quickGroup  = "quickstart"
	quickQueues = 4
)

func (q *quickstart) run(ctx context.Context) (err error) {
	if q.dir == "" {
		if q.dir, err = os.MkdirTemp("", "sundial-quickstart-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(q.dir)) }()
	}
	if q.dir, err = filepath.Abs(q.dir); err != nil {
		return err
	}
	n, err := q.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	at := n.Addresses()
	fmt.Fprintf(q.out, "%s\nname server %s, broker %s, data in %s\n\n", versionLine(), at.NameServer, at.Broker, q.dir)

	r, err := newRemote()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shows := newShow(q.out)
	show, err := q.demonstrate(ctx, r, at, shows)
	if err != nil {
		return err
	}
	if err := show.verdict(); err != nil {
		return err
	}
	if q.keep {
		q.explain(at)
		return waitForSignal(ctx, n)
	}
	return nil
}

// start runs a node with small files, on RocketMQ's ports or else on free ones.
func (q *quickstart) start(ctx context.Context) (*node.Node, error) {
	cfg := node.DefaultConfig()
	cfg.Dir = q.dir
	cfg.Broker.Store.LogFileSize = 16 << 20
	cfg.Broker.Store.IndexSlots, cfg.Broker.Store.IndexEntries = 50_000, 200_000
	cfg.Broker.Store.QueueFileSize = 20 * 10_000
	cfg.Broker.Store.Reserve, cfg.Broker.Store.Prefault = 1<<20, 1<<20
	cfg.Broker.Store.ProcessID = os.Getpid()
	cfg.ShiftPorts(q.portOffset)
	n, err := node.Start(ctx, cfg)
	if err != nil && q.portOffset == 0 && node.PortInUse(err) {
		cfg.NameServer.Port, cfg.Broker.Port, cfg.Broker.FastPort = 0, 0, -1
		n, err = node.Start(ctx, cfg)
	}
	return n, err
}

// demonstrate sends and receives everything.
func (q *quickstart) demonstrate(ctx context.Context, r *remote, at node.Addresses, s *show) (*show, error) {
	broker := at.Broker.String()
	if _, err := r.ask(ctx, broker, protocol.UpdateAndCreateTopic, &protocol.CreateTopicHeader{
		Topic: quickTopic, DefaultTopic: "TBW102", ReadQueues: quickQueues, WriteQueues: quickQueues, Perm: 6, Filter: "SINGLE_TAG",
	}, nil); err != nil {
		return nil, err
	}
	// The consumer is there before the first message, so that it waits for each.
	c := &consumer{remote: r, broker: broker, topic: quickTopic, group: quickGroup, arrived: s.arrived}
	if err := c.start(ctx, quickQueues); err != nil {
		return nil, err
	}
	defer c.stop()

	p := &producer{remote: r, broker: broker, topic: quickTopic, group: quickGroup}
	number := 0
	for _, parcel := range q.parcels {
		for range parcel.count {
			number++
			sent, err := p.send(ctx, number, parcel.level)
			if err != nil {
				return nil, err
			}
			s.sent(sent)
		}
	}
	s.waitFor(ctx, c.failed, 30*time.Second)
	return s, c.stop()
}

// explain says how to go on with a node that stays.
func (q *quickstart) explain(at node.Addresses) {
	fmt.Fprintf(q.out, `
The broker stays until you press Ctrl-C. Point clients at the name server %[1]s:
  Java      producer.setNamesrvAddr("%[1]s");
  Go        rocketmq.NewProducer(producer.WithNsResolver(primitive.NewPassthroughResolver([]string{"%[1]s"})))
  mqadmin   sh mqadmin clusterList -n %[1]s
  here      sundial admin topic list -n %[1]s
The topic %[2]s has %[3]d queues; others are made when you send to them.
`, at.NameServer, quickTopic, quickQueues)
}

// waitForSignal blocks until the process is told to end or the node ended itself.
func waitForSignal(ctx context.Context, n *node.Node) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.Done():
		return n.Wait()
	}
}
