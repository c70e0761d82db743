package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// metadata is what "export" writes and "import" reads: what there is, by broker.
type metadata struct {
	Format  int                       `json:"format"` // 1
	Brokers map[string]brokerMetadata `json:"brokers"`
}

type brokerMetadata struct {
	Topics  map[string]*mq.TopicConfig               `json:"topics"`
	Groups  map[string]*mq.GroupConfig               `json:"groups"`
	Offsets map[string]map[mq.QueueID]mq.QueueOffset `json:"offsets,omitempty"` // by topic@group and queue
	Config  map[string]string                        `json:"config,omitempty"`
}

const metadataFormat = 1

func exportCommand(a *admin) *cobra.Command {
	var offsets, config, system bool
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write topics and groups of a cluster to a file, to keep or to import elsewhere",
		Example: `  sundial admin export cluster.json --offsets
  sundial admin export | jq '.brokers[].topics | keys'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			doc := metadata{metadataFormat, map[string]brokerMetadata{}}
			err = each(masters, func(m member) error {
				b, err := a.metadataOf(cmd.Context(), m, offsets, config, system)
				if err == nil {
					doc.Brokers[m.Name] = *b
				}
				return err
			})
			if len(doc.Brokers) == 0 {
				return err
			}
			if len(args) == 0 || args[0] == "-" {
				return errors.Join(a.document(doc), err)
			}
			text, jsonErr := json.MarshalIndent(doc, "", "  ")
			if jsonErr != nil {
				return jsonErr
			}
			if err := os.WriteFile(args[0], append(text, '\n'), 0o644); err != nil {
				return err
			}
			for _, name := range sortedKeys(doc.Brokers) {
				a.done("%s: %d topics, %d groups are in %s", name, len(doc.Brokers[name].Topics), len(doc.Brokers[name].Groups), args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&offsets, "offsets", false, "with the progress of groups")
	cmd.Flags().BoolVar(&config, "config", false, "with the settings in force")
	cmd.Flags().BoolVar(&system, "all", false, "with the broker's own topics and groups")
	return describe(cmd, metadata{})
}

func (a *admin) metadataOf(ctx context.Context, m member, offsets, config, system bool) (*brokerMetadata, error) {
	topics, err := a.topicTable(ctx, m)
	if err != nil {
		return nil, err
	}
	groups, err := a.groupTable(ctx, m)
	if err != nil {
		return nil, err
	}
	own, err := a.systemTopics(ctx, m)
	if err != nil {
		return nil, err
	}
	b := &brokerMetadata{Topics: topics.Topics, Groups: groups.Groups}
	if !system {
		maps.DeleteFunc(b.Topics, func(name string, _ *mq.TopicConfig) bool { return kindOf(name, own) == "system" })
		maps.DeleteFunc(b.Groups, func(name string, _ *mq.GroupConfig) bool { return mq.SystemGroup(name) })
	}
	if offsets {
		var all protocol.ConsumerOffsets
		if err := a.askBody(ctx, m.Addr, protocol.GetAllConsumerOffset, nil, &all); err != nil {
			return nil, err
		}
		b.Offsets = map[string]map[mq.QueueID]mq.QueueOffset{}
		for key, queues := range all.Offsets {
			_, group, _ := strings.Cut(key, "@")
			if !system && mq.SystemGroup(group) {
				continue
			}
			b.Offsets[key] = map[mq.QueueID]mq.QueueOffset{}
			for id, off := range queues {
				b.Offsets[key][mq.QueueID(id)] = off
			}
		}
	}
	if config {
		if b.Config, err = a.brokerConfig(ctx, m); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func importCommand(a *admin) *cobra.Command {
	var offsets bool
	var from string
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make or change topics and groups as a file says that export wrote",
		Long: `Makes the topics and groups of a file on the brokers of the same name, or with --from
those of one broker in the file on all brokers (or --broker). What is there and not in
the file stays. Settings in the file are not imported. - reads standard input.`,
		Example: `  sundial admin import cluster.json --dry-run
  sundial admin import old.json --from broker-a --broker broker-b`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := readMetadata(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			masters, err := a.masters(cmd.Context())
			if err != nil {
				return err
			}
			if _, ok := doc.Brokers[from]; from != "" && !ok {
				return notFound("%s has no broker %s, it has %s", args[0], from, strings.Join(sortedKeys(doc.Brokers), ", "))
			}
			var steps []step
			for _, m := range masters {
				name := m.Name
				if from != "" {
					name = from
				}
				b, ok := doc.Brokers[name]
				if !ok {
					continue
				}
				some, err := a.importSteps(cmd.Context(), m, &b, offsets)
				if err != nil {
					return err
				}
				steps = append(steps, some...)
			}
			if len(steps) == 0 && from == "" && !slices.ContainsFunc(masters, func(m member) bool { _, ok := doc.Brokers[m.Name]; return ok }) {
				return notFound("%s knows %s, and none of them is here: say whose to take with --from", args[0], strings.Join(sortedKeys(doc.Brokers), ", "))
			}
			if len(steps) == 0 && !a.json {
				a.done("nothing is to be done: everything is as the file says")
				return nil
			}
			question := ""
			if offsets {
				question = "Replace the progress of groups?"
			}
			return a.carryOut(cmd, question, steps)
		},
	}
	cmd.Flags().BoolVar(&offsets, "offsets", false, "with the progress of groups, where the file has it")
	cmd.Flags().StringVar(&from, "from", "", "take what the file has of this `BROKER`")
	return a.destroys(cmd)
}

func readMetadata(in io.Reader, path string) (*metadata, error) {
	text, err := []byte(nil), error(nil)
	if path == "-" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &usageError{err}
	}
	var doc metadata
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", path, err)}
	}
	if doc.Format != metadataFormat {
		return nil, &usageError{fmt.Errorf("%s has format %d, it must be %d: export writes it", path, doc.Format, metadataFormat)}
	}
	return &doc, nil
}

// importSteps are what is to be done so that a broker has what b says.
func (a *admin) importSteps(ctx context.Context, m member, b *brokerMetadata, offsets bool) ([]step, error) {
	is, err := a.metadataOf(ctx, m, offsets, false, true)
	if err != nil {
		return nil, err
	}
	var steps []step
	for _, name := range sortedKeys(b.Topics) {
		want, have := b.Topics[name], is.Topics[name]
		if have != nil && sameJSON(want, have) {
			continue
		}
		var attributes []string
		for _, k := range sortedKeys(want.Attributes) {
			attributes = append(attributes, "+"+k+"="+want.Attributes[k])
		}
		verb := "make"
		if have != nil {
			verb = "change to"
		}
		steps = append(steps, a.topicStep(m, want, attributes, verb))
	}
	for _, name := range sortedKeys(b.Groups) {
		want, have := b.Groups[name], is.Groups[name]
		if have != nil && sameJSON(want, have) {
			continue
		}
		verb := "make"
		if have != nil {
			verb = "change to"
		}
		steps = append(steps, a.groupStep(m, want, verb))
	}
	if !offsets {
		return steps, nil
	}
	for _, key := range sortedKeys(b.Offsets) {
		topic, group, _ := strings.Cut(key, "@")
		if maps.Equal(b.Offsets[key], is.Offsets[key]) {
			continue
		}
		what := fmt.Sprintf("progress of group %s in %d queues of topic %s", group, len(b.Offsets[key]), topic)
		steps = append(steps, step{Where: m.Name, What: "set the " + what, do: func(ctx context.Context) (string, error) {
			for _, id := range slices.Sorted(maps.Keys(b.Offsets[key])) {
				if _, err := a.ask(ctx, m.Addr, protocol.UpdateConsumerOffset, &protocol.UpdateConsumerOffsetHeader{
					ConsumerGroup: group, Topic: topic, QueueID: int32(id), CommitOffset: int64(b.Offsets[key][id]),
				}, nil); err != nil {
					return "", err
				}
			}
			return what, nil
		}})
	}
	return steps, nil
}

// sameJSON reports whether two values are written alike.
func sameJSON(x, y any) bool {
	a, errA := json.Marshal(x)
	b, errB := json.Marshal(y)
	return errA == nil && errB == nil && string(a) == string(b)
}
