package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/magiconair/properties"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
)

func brokerCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "broker", Short: "Look after single brokers: how they are, traffic, settings, producers, cleaning"}
	cmd.AddCommand(brokerListCommand(a), brokerStatusCommand(a), brokerStatsCommand(a), brokerConfigCommand(a), brokerProducersCommand(a), brokerCleanCommand(a), brokerProbeCommand(a))
	return cmd
}

// brokerListCommand is the cluster's list, where somebody looks for brokers.
func brokerListCommand(a *admin) *cobra.Command {
	cmd := clusterListCommand(a)
	cmd.Use, cmd.Short = "list", "List the brokers and how they are"
	return cmd
}

// codeUpdateConfig is UPDATE_BROKER_CONFIG.
const codeUpdateConfig protocol.Code = 25

func brokerConfigCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show and change settings of running brokers"}
	cmd.AddCommand(brokerConfigGetCommand(a), brokerConfigSetCommand(a))
	return cmd
}

// brokerConfig asks one broker for all settings in force.
func (a *admin) brokerConfig(ctx context.Context, m member) (map[string]string, error) {
	resp, err := a.ask(ctx, m.Addr, protocol.GetBrokerConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	l := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := l.LoadBytes(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", m.Name, err)
	}
	return p.Map(), nil
}

// brokerSetting is one setting of one broker.
type brokerSetting struct {
	Broker string `json:"broker"`
	Key    string `json:"key"`
	Value  string `json:"value"`
}

func brokerConfigGetCommand(a *admin) *cobra.Command {
	var differ bool
	cmd := &cobra.Command{
		Use:   "get [PATTERN...]",
		Short: "Show the settings in force, or some of them",
		Example: `  sundial admin broker config get flushDiskType 'fileReserved*'
  sundial admin broker config get --differ`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var picks []func(string) bool
			for _, arg := range args {
				p, err := pattern([]string{arg})
				if err != nil {
					return err
				}
				picks = append(picks, p)
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []brokerSetting{}
			values := map[string][]string{}
			err = each(masters, func(m member) error {
				all, err := a.brokerConfig(cmd.Context(), m)
				for _, k := range sortedKeys(all) {
					if len(picks) == 0 || slices.ContainsFunc(picks, func(p func(string) bool) bool { return p(k) }) {
						doc = append(doc, brokerSetting{m.Name, k, all[k]})
						values[k] = append(values[k], all[k])
					}
				}
				return err
			})
			if differ {
				doc = slices.DeleteFunc(doc, func(s brokerSetting) bool {
					v := values[s.Key]
					return len(v) == len(masters) && len(slices.Compact(slices.Clone(v))) == 1
				})
			} else if err == nil && len(doc) == 0 {
				return notFound("no broker has such a setting")
			}
			slices.SortStableFunc(doc, func(x, y brokerSetting) int { return cmp.Compare(x.Key, y.Key) })
			var rows []table.Row
			for _, s := range doc {
				rows = append(rows, table.Row{s.Broker, s.Key, folded(s.Value)})
			}
			return a.showUnless(err, doc, table.Row{"broker", "key", "value"}, rows)
		},
	}
	cmd.Flags().BoolVar(&differ, "differ", false, "only what is not the same on all brokers")
	return describe(cmd, []brokerSetting{})
}

func brokerConfigSetCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set KEY=VALUE...",
		Short: "Change settings of running brokers",
		Long: `Changes settings of all brokers (or --broker). A key that a broker does not know is
refused before anything is changed: RocketMQ takes it and does nothing.`,
		Example: `  sundial admin broker config set fileReservedTime=48 --dry-run
  sundial admin broker config set brokerPermission=4 --broker broker-a`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			var body strings.Builder
			for _, arg := range args {
				key, value, ok := strings.Cut(arg, "=")
				if !ok || key == "" || strings.ContainsAny(arg, "\r\n") {
					return &usageError{fmt.Errorf("setting %q, want KEY=VALUE", arg)}
				}
				fmt.Fprintf(&body, "%s=%s\n", key, strings.ReplaceAll(value, `\`, `\\`))
			}
			var steps []step
			for _, m := range masters {
				is, err := a.brokerConfig(cmd.Context(), m)
				if err != nil {
					return err
				}
				var parts []string
				for _, arg := range args {
					key, value, _ := strings.Cut(arg, "=")
					old, known := is[key]
					if !known {
						hint := ""
						if n := nearest(key, sortedKeys(is)); n != "" {
							hint = "; did you mean " + n + "?"
						}
						return notFound("%s has no setting %s%s", m.Name, key, hint)
					}
					parts = append(parts, fmt.Sprintf("%s from %q to %q", key, old, value))
				}
				what := strings.Join(parts, ", ")
				steps = append(steps, step{Where: m.Name, What: "set " + what, do: func(ctx context.Context) (string, error) {
					_, err := a.ask(ctx, m.Addr, codeUpdateConfig, nil, []byte(body.String()))
					return "set " + what, err
				}})
			}
			return a.carryOut(cmd, "", steps)
		},
	}
	return a.changes(cmd)
}

// producerEntry is a producer that is connected to a broker.
type producerEntry struct {
	Broker  string `json:"broker"`
	Group   string `json:"group"`
	Client  string `json:"clientId"`
	Addr    string `json:"addr"`
	Lang    string `json:"language"`
	Version string `json:"version"`
	Seen    int64  `json:"lastUpdateTimestamp"`
}

func brokerProducersCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "producers [PATTERN]",
		Short:   "List the producers that are connected, all or of the groups that a pattern names",
		Example: `  sundial admin broker producers 'shop*'`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := pattern(args)
			if err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []producerEntry{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				var t protocol.ProducerTable
				if err := a.askBody(cmd.Context(), m.Addr, protocol.GetAllProducerInfo, nil, &t); err != nil {
					return err
				}
				for _, group := range sortedKeys(t.Groups) {
					if !matches(group) {
						continue
					}
					for _, c := range t.Groups[group] {
						p := producerEntry{m.Name, group, c.ClientID, c.RemoteIP, c.Language, versionName(c.Version), c.LastUpdate}
						doc = append(doc, p)
						rows = append(rows, table.Row{p.Group, p.Broker, p.Client, p.Addr, p.Lang, p.Version, stamp(p.Seen)})
					}
				}
				return nil
			})
			return a.showUnless(err, doc, table.Row{"group", "broker", "client", "address", "language", "version", "last heard"}, rows)
		},
	}
	return describe(cmd, []producerEntry{})
}

func brokerCleanCommand(a *admin) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Have brokers throw away now what they would throw away later",
	}
	for _, c := range []struct {
		use, short, what string
		code             protocol.Code
	}{
		{"queues", "Delete consume queue files that lead to no message any more", "clean consume queues", protocol.CleanExpiredConsumeQueue},
		{"topics", "Delete queues of topics that are gone", "clean queues of topics that are gone", protocol.CleanUnusedTopic},
		{"log", "Delete log files whose time is over, without waiting for the hour", "delete expired log files", protocol.DeleteExpiredCommitLog},
	} {
		cmd.AddCommand(a.destroys(&cobra.Command{
			Use: c.use, Short: c.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				masters, err := a.masters(cmd.Context())
				if err != nil {
					return err
				}
				var steps []step
				for _, m := range masters {
					steps = append(steps, step{Where: m.Name, What: c.what, do: func(ctx context.Context) (string, error) {
						_, err := a.ask(ctx, m.Addr, c.code, nil, nil)
						return c.what, err
					}})
				}
				return a.carryOut(cmd, "Do that now?", steps)
			},
		}))
	}
	return cmd
}

// probe is how fast a broker answers sends.
type probe struct {
	Cluster string  `json:"cluster"`
	Broker  string  `json:"broker"`
	Sent    int     `json:"sent"`
	Failed  int     `json:"failed"`
	First   float64 `json:"firstMillis"` // with the time to connect
	P50     float64 `json:"p50Millis"`   // of the others
	P99     float64 `json:"p99Millis"`
	Max     float64 `json:"maxMillis"`
	Error   string  `json:"error,omitempty"` // the last
}

func brokerProbeCommand(a *admin) *cobra.Command {
	var count, size int
	var topic string
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Send test messages to every broker and measure how fast it answers",
		Long:  "Sends, one after the other, to the topic that is named after the broker, or to --topic.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || size < 1 {
				return &usageError{errors.New("--count and --size must be 1 or more")}
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := []probe{}
			var rows []table.Row
			err = each(masters, func(m member) error {
				p, err := a.probe(cmd.Context(), m, cmp.Or(topic, m.Name), count, size)
				doc = append(doc, p)
				rows = append(rows, table.Row{p.Cluster, p.Broker, p.Sent, p.Failed, p.First, p.P50, p.P99, p.Max})
				return err
			})
			return a.showUnless(err, doc, table.Row{"cluster", "broker", "sent", "failed", "first ms", "p50 ms", "p99 ms", "max ms"}, rows)
		},
	}
	cmd.Flags().IntVar(&count, "count", 100, "how many messages")
	cmd.Flags().IntVar(&size, "size", 128, "bytes of each")
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "send to this topic")
	return describe(cmd, []probe{})
}

func (a *admin) probe(ctx context.Context, m member, topic string, count, size int) (probe, error) {
	p := probe{Cluster: m.Cluster, Broker: m.Name}
	h := protocol.SendHeader{ProducerGroup: mq.GroupInnerProducer, Topic: topic, DefaultTopic: mq.TopicAutoCreate, DefaultTopicQueues: 4, QueueID: -1}
	body := slices.Repeat([]byte{'x'}, size)
	var took []float64
	var last error
	for i := range count {
		h.BornTime = time.Now().UnixMilli()
		began := time.Now()
		_, err := a.send(ctx, m.Addr, remoting.NewRequest(int32(protocol.SendMessageV2), h.Encode()...), body)
		t := float64(time.Since(began).Microseconds()) / 1000
		if err != nil {
			p.Failed++
			p.Error, last = err.Error(), err
			if _, gone := errors.AsType[*unreachableError](err); gone {
				break
			}
			continue
		}
		if p.Sent++; i == 0 {
			p.First = t
		} else {
			took = append(took, t)
		}
	}
	if slices.Sort(took); len(took) > 0 {
		p.P50, p.P99, p.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return p, last
}
