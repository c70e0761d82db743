package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/broker/delay"
	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look into a store directory of RocketMQ's or Sundial's, offline",
		Long: `Reads a store directory (RocketMQ's storePathRootDir) on which no broker runs, and
changes nothing there. It sees the store as a start would: after a crash the end of
the log is read again, and queues are completed in memory. File sizes are found out; those of index files must be given
with --index-slots and --index-entries when they are not RocketMQ's default.`,
	}
	cmd.AddCommand(verifyCommand(), dumpCommand())
	return cmd
}

// storeFlags say how a store was made, where its files do not.
type storeFlags struct {
	slots, entries int
	accept         bool
	json           bool
}

func (f *storeFlags) register(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.slots, "index-slots", 5_000_000, "slots of an index file (maxHashSlotNum)")
	cmd.Flags().IntVar(&f.entries, "index-entries", 20_000_000, "entries of an index file (maxIndexNum)")
	cmd.Flags().BoolVar(&f.accept, "accept-damage", false, "read what is left of a store that a start would refuse as damaged")
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON")
}

// open opens a store for reading, with the sizes that its files have. warnings say
// what is left out; without index none is looked at.
func (f *storeFlags) open(dir string, index bool) (s *storage.Store, cfg storage.Config, warnings []string, err error) {
	disk := vfs.OS()
	if _, err := disk.Stat(dir); err != nil {
		return nil, cfg, nil, err
	}
	if info, err := disk.Stat(filepath.Join(dir, "commitlog")); err != nil || !info.IsDir() {
		return nil, cfg, nil, fmt.Errorf("%s is no store: it has no directory commitlog (a store is RocketMQ's storePathRootDir; a log elsewhere, storePathCommitLog, is not looked for)", dir)
	}
	if running(disk, dir) {
		warnings = append(warnings, "a broker runs on this directory: what it is just writing may be missed or look damaged")
	}
	cfg = storage.DefaultConfig(dir)
	cfg.ReadOnly, cfg.AcceptDamage, cfg.Index = true, f.accept, index
	if size, err := firstFileSize(disk, filepath.Join(dir, "commitlog")); err != nil {
		return nil, cfg, nil, err
	} else if size > 0 {
		cfg.LogFileSize = size
	}
	if size, err := firstFileSize(disk, filepath.Join(dir, "consumequeue")); err != nil {
		return nil, cfg, nil, err
	} else if size > 0 {
		cfg.QueueFileSize = size
	}
	cfg.IndexSlots, cfg.IndexEntries = f.slots, f.entries
	want := int64(40 + 4*f.slots + 20*f.entries)
	if size, err := firstFileSize(disk, filepath.Join(dir, "index")); err != nil {
		return nil, cfg, nil, err
	} else if index && size > 0 && size != want {
		cfg.Index = false
		warnings = append(warnings, fmt.Sprintf("the key index is left out: its files have %d bytes, %d slots and %d entries make %d (--index-slots, --index-entries)", size, f.slots, f.entries, want))
	}
	s, err = storage.Open(disk, cfg)
	return s, cfg, warnings, err
}

// running reports whether a broker holds the lock of a store.
func running(disk vfs.FS, dir string) bool {
	path := filepath.Join(dir, "lock")
	if _, err := disk.Stat(path); err != nil {
		return false // never opened, and Lock would make the file
	}
	l, err := disk.Lock(path)
	if err == nil {
		err = l.Close()
	}
	return errors.Is(err, vfs.ErrLocked)
}

// checkDocuments finds documents in config/ that cannot be read.
func checkDocuments(disk vfs.FS, dir string) error {
	var errs []error
	for _, name := range []string{"topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json"} {
		path := filepath.Join(dir, "config", name)
		text, err := disk.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var members map[string]json.RawMessage
		if err == nil {
			err = javajson.Unmarshal(text, &members)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w (a start takes %s.bak in its place)", path, err, name))
		}
	}
	return errors.Join(errs...)
}

// firstFileSize is the size of the first file under dir, 0 when there is none.
func firstFileSize(disk vfs.FS, dir string) (int64, error) {
	entries, err := disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if size, err := firstFileSize(disk, path); size > 0 || err != nil {
				return size, err
			}
			continue
		}
		if info, err := disk.Stat(path); err != nil || info.Size() > 0 {
			return sizeOf(info), err
		}
	}
	return 0, nil
}

func sizeOf(info fs.FileInfo) int64 {
	if info == nil {
		return 0
	}
	return info.Size()
}

func verifyCommand() *cobra.Command {
	var f storeFlags
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every record, every queue entry, every index entry and the documents in config/",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			began := time.Now()
			s, cfg, warnings, err := f.open(args[0], true)
			if err != nil {
				return err
			}
			defer s.Close()
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "WARNING:", w)
			}
			err = errors.Join(s.Check(progressBar(cmd.ErrOrStderr(), f.json)), checkDocuments(vfs.OS(), args[0]))
			report := struct {
				Dir      string         `json:"dir"`
				Min      mq.LogOffset   `json:"minLogOffset"`
				Max      mq.LogOffset   `json:"maxLogOffset"`
				FileSize int64          `json:"commitLogFileSize"`
				Queues   int            `json:"queues"`
				Messages mq.QueueOffset `json:"queueEntries"`
				Seconds  float64        `json:"seconds"`
				Warnings []string       `json:"warnings,omitempty"`
				RocketMQ string         `json:"rocketmq,omitempty"` // whether it can start on the directory as it is
				Problem  string         `json:"problem,omitempty"`
			}{Dir: args[0], Min: s.MinLog(), Max: s.MaxLog(), FileSize: cfg.LogFileSize, Warnings: warnings}
			s.Queues(func(_ mq.QueueKey, lo, hi mq.QueueOffset) {
				report.Queues++
				report.Messages += hi - lo
			})
			report.Seconds = time.Since(began).Seconds()
			if h, ok, herr := delay.ReadHandover(vfs.OS(), filepath.Join(args[0], "sundial")); herr != nil {
				err = errors.Join(err, herr)
			} else if ok {
				report.RocketMQ = h.String()
			}
			if err != nil {
				report.Problem = err.Error()
			}
			if f.json {
				return errors.Join(writeJSON(cmd.OutOrStdout(), report), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: log [%d, %d), files of %d bytes; %d entries in %d queues; %.1f s\n",
				args[0], report.Min, report.Max, report.FileSize, report.Messages, report.Queues, report.Seconds)
			if report.RocketMQ != "" {
				fmt.Fprintln(cmd.OutOrStdout(), report.RocketMQ)
			}
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "everything is in order")
			}
			return err
		},
	}
	f.register(cmd)
	return cmd
}

// progressBar writes how far a check is, on one line, while a person watches.
func progressBar(w io.Writer, quiet bool) func(at, end mq.LogOffset) {
	if quiet || !isTerminal(w) {
		return nil
	}
	last := time.Time{}
	return func(at, end mq.LogOffset) {
		if time.Since(last) < 100*time.Millisecond && at < end {
			return
		}
		last = time.Now()
		percent := 100.0
		if end > 0 {
			percent = 100 * float64(at) / float64(end)
		}
		fmt.Fprintf(w, "\r\x1b[K%5.1f %%  %d of %d bytes of log", percent, at, end)
		if at >= end {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func dumpCommand() *cobra.Command {
	var f storeFlags
	d := dump{}
	cmd := &cobra.Command{
		Use:   "dump DIR",
		Short: "Write what is in a store: its queues, or its messages in the order of the log",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, cfg, warnings, err := f.open(args[0], false)
			if err != nil {
				return err
			}
			defer s.Close()
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "WARNING:", w)
			}
			d.out, d.json, d.fileSize = cmd.OutOrStdout(), f.json, mq.LogOffset(cfg.LogFileSize)
			if d.queues {
				return d.listQueues(s)
			}
			return d.messages(cmd.Context(), s)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&d.queues, "queues", false, "list the queues with their ranges")
	cmd.Flags().StringVar(&d.topic, "topic", "", "only messages of this topic")
	cmd.Flags().Int64Var(&d.from, "from", -1, "begin at this `LOG-OFFSET`, where a message must begin")
	cmd.Flags().Int64Var(&d.max, "max", 0, "end after so many messages")
	return cmd
}

// dump is one run of that command.
type dump struct {
	out       io.Writer
	json      bool
	queues    bool
	topic     string
	from, max int64
	fileSize  mq.LogOffset
}

func (d *dump) listQueues(s *storage.Store) error {
	type queue struct {
		Topic string         `json:"topic"`
		Queue mq.QueueID     `json:"queue"`
		Min   mq.QueueOffset `json:"minOffset"`
		Max   mq.QueueOffset `json:"maxOffset"`
	}
	var all []queue
	s.Queues(func(k mq.QueueKey, lo, hi mq.QueueOffset) { all = append(all, queue{k.Topic, k.ID, lo, hi}) })
	if d.json {
		return writeJSON(d.out, all)
	}
	t := table.NewWriter()
	t.SetOutputMirror(d.out)
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{"topic", "queue", "min offset", "max offset", "messages"})
	for _, q := range all {
		t.AppendRow(table.Row{q.Topic, q.Queue, q.Min, q.Max, q.Max - q.Min})
	}
	t.Render()
	return nil
}

// messages writes a line a message: for people, or a JSON document each.
func (d *dump) messages(ctx context.Context, s *storage.Store) error {
	e := json.NewEncoder(d.out)
	e.SetEscapeHTML(false)
	at := s.MinLog()
	if d.from >= 0 {
		at = mq.LogOffset(d.from)
	}
	written := int64(0)
	for at < s.MaxLog() && ctx.Err() == nil && (d.max == 0 || written < d.max) {
		v, release, err := s.Record(at)
		if errors.Is(err, mq.ErrNotFound) && at != mq.LogOffset(d.from) {
			at = (at/d.fileSize + 1) * d.fileSize // the blank at the end of a file
			continue
		}
		if err != nil {
			return err
		}
		if d.topic == "" || d.topic == string(v.Topic()) {
			written++
			m := viewOf(v)
			if d.json {
				err = e.Encode(m)
			} else {
				_, err = fmt.Fprintf(d.out, "%12d  %s  %s %d @%d  %d bytes  %s\n", m.LogOffset, stamp(m.Stored), m.Topic, m.Queue, m.Offset, m.Size, attributesText(m.Properties))
			}
		}
		at += mq.LogOffset(v.TotalSize())
		release()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
