package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
)

// The manners of the admin commands, the same for all:
//
//   - what a command shows is a table for people and, with --json, one JSON
//     document whose field names are in its help ([describe]);
//   - what changes something is a list of [step]s that [admin.carryOut] does:
//     --dry-run shows them only, and what destroys is asked about before;
//   - the exit code says how it ended, see [codeOf].

// Exit codes of the admin commands, beside 0 (done), 1 (failed) and 2 (used
// wrongly).
const (
	exitNotFound    = 3 // what was named is not there
	exitRefused     = 4 // a server said no, or the person asked did
	exitUnreachable = 5 // nobody answered
	exitPartial     = 6 // some servers did it, others did not
)

// notFoundError ends the process with exitNotFound.
type notFoundError struct{ text string }

func (e *notFoundError) Error() string { return e.text }

func notFound(format string, args ...any) error { return &notFoundError{fmt.Sprintf(format, args...)} }

// refusedError ends the process with exitRefused.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

func refused(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// unreachableError ends the process with exitUnreachable.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// partialError ends the process with exitPartial.
type partialError struct {
	done, of int
	err      error
}

func (e *partialError) Error() string {
	return fmt.Sprintf("%v\n%d of %d were done, the others failed", e.err, e.done, e.of)
}
func (e *partialError) Unwrap() error { return e.err }

// outcomeOf is the exit code of what went wrong between here and the servers, 0 when
// it is none of that. Who could not be reached may have what others have not, so
// that comes first.
func outcomeOf(err error) int {
	if _, ok := errors.AsType[*partialError](err); ok {
		return exitPartial
	}
	if _, ok := errors.AsType[*unreachableError](err); ok {
		return exitUnreachable
	}
	if _, ok := errors.AsType[*refusedError](err); ok {
		return exitRefused
	}
	if _, ok := errors.AsType[*notFoundError](err); ok {
		return exitNotFound
	}
	if _, ok := errors.AsType[*protocol.ResponseError](err); !ok {
		return 0
	}
	for _, missing := range []error{mq.ErrNoTopic, mq.ErrNoGroup, mq.ErrNotFound, mq.ErrConsumerOffline, mq.ErrNotSubscribed} {
		if errors.Is(err, missing) {
			return exitNotFound
		}
	}
	return exitRefused
}

// each asks or changes one broker after the other and joins what goes wrong; when
// some did well it is a [partialError].
func each(all []member, do func(member) error) error {
	var errs []error
	for _, m := range all {
		if err := do(m); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil && len(errs) < len(all) {
		return &partialError{len(all) - len(errs), len(all), err}
	}
	return errors.Join(errs...)
}

// step is one change on one server.
type step struct {
	Where  string `json:"where"` // the server
	What   string `json:"what"`  // what is to happen, as in "delete topic Orders, 3 messages"
	Done   bool   `json:"done"`
	Result string `json:"result,omitempty"` // what happened, as in "topic Orders is deleted"
	Error  string `json:"error,omitempty"`

	do func(context.Context) (result string, err error)
}

// changeReport is the JSON document of every command that changes something.
type changeReport struct {
	DryRun bool   `json:"dryRun"` // nothing was done
	Steps  []step `json:"steps"`
}

// changes gives a command that changes something its flag and its help.
func (a *admin) changes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "say what would be done, and do nothing")
	return describe(cmd, changeReport{})
}

// destroys is changes for a command that is asked about first.
func (a *admin) destroys(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "do it without asking")
	return a.changes(cmd)
}

// carryOut does the steps one after the other, also when one fails, and tells what
// came of each. A question is asked before the first when it is not empty; "" is
// for what destroys nothing.
func (a *admin) carryOut(cmd *cobra.Command, question string, steps []step) error {
	report := changeReport{DryRun: a.dryRun, Steps: steps}
	if a.dryRun {
		var rows []table.Row
		for _, s := range steps {
			rows = append(rows, table.Row{s.Where, s.What})
		}
		return a.show(report, table.Row{"where", "would be done"}, rows)
	}
	if len(steps) > 0 {
		if err := a.agreed(cmd, question, steps); err != nil {
			return err
		}
	}
	var errs []error
	for i := range steps {
		s := &steps[i]
		result, err := s.do(cmd.Context())
		if s.Result, s.Done = result, err == nil; err != nil {
			s.Error = err.Error()
			errs = append(errs, fmt.Errorf("%s: %w", s.Where, err))
			continue
		}
		a.done("%s: %s", s.Where, result)
	}
	err := errors.Join(errs...)
	if err != nil && len(errs) < len(steps) {
		err = &partialError{len(steps) - len(errs), len(steps), err}
	}
	if a.json {
		return errors.Join(a.document(report), err)
	}
	return err
}

// agreed asks the person who is there whether to go on with what the steps would
// do. Where nobody is, it takes --yes.
func (a *admin) agreed(cmd *cobra.Command, question string, steps []step) error {
	if question == "" || a.yes {
		return nil
	}
	out := cmd.ErrOrStderr()
	for _, s := range steps {
		fmt.Fprintf(out, "%s: %s\n", s.Where, s.What)
	}
	nobody := refused("%s Nobody can be asked here, and nothing was done: say --yes, or look with --dry-run", question)
	in := cmd.InOrStdin()
	if f, ok := in.(*os.File); ok && !isTerminal(f) {
		return nobody
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		return nobody
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return refused("nothing was done")
	}
	return nil
}

// describe says in a command's help, and so in docs/ADMIN.md, what its JSON
// document holds: the fields of doc.
func describe(cmd *cobra.Command, doc any) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[jsonShape] = shapeOf(reflect.TypeOf(doc))
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	before, _, _ := strings.Cut(cmd.Long, "\n\nJSON: ") // the last to describe it is right
	cmd.Long = before + "\n\nJSON: " + text.WrapSoft(cmd.Annotations[jsonShape], 100)
	return cmd
}

// jsonShape is the annotation that holds the fields of a command's JSON document.
const jsonShape = "json"

// shapeOf writes the fields of a JSON document as in [{topic, queues: [{id}]}].
// What is a value is left out but for its name.
func shapeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Slice, reflect.Array:
		return "[" + shapeOf(t.Elem()) + "]"
	case reflect.Map:
		return "{NAME: " + shapeOf(t.Elem()) + "}"
	case reflect.Struct:
		return "{" + strings.Join(fieldsOf(t), ", ") + "}"
	}
	return "..."
}

func fieldsOf(t reflect.Type) []string {
	var fields []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			fields = append(fields, fieldsOf(inner)...)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if shape := shapeOf(f.Type); shape != "..." && shape != "[...]" {
			name += ": " + shape
		}
		fields = append(fields, name)
	}
	return fields
}

// show writes rows: as a table, or as JSON what doc holds.
func (a *admin) show(doc any, header table.Row, rows []table.Row) error {
	if a.json {
		return a.document(doc)
	}
	t := table.NewWriter()
	t.SetOutputMirror(a.out)
	t.SetStyle(plainStyle())
	t.AppendHeader(header)
	t.AppendRows(rows)
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "none")
		return nil
	}
	t.Render()
	return nil
}

// showUnless is show, but for a failure that leaves nothing to show.
func (a *admin) showUnless(err error, doc any, header table.Row, rows []table.Row) error {
	if err != nil && len(rows) == 0 {
		return err
	}
	return errors.Join(a.show(doc, header, rows), err)
}

// document writes JSON.
func (a *admin) document(doc any) error { return writeJSON(a.out, doc) }

// plainStyle is how all tables look.
func plainStyle() table.Style {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	return style
}

// done says what was done, unless a program reads.
func (a *admin) done(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.out, format+"\n", args...)
	}
}

// stamp writes a time in ms for people; what is not known is a dash.
func stamp(millis int64) string {
	if millis <= 0 {
		return "-"
	}
	return time.UnixMilli(millis).Format("2006-01-02 15:04:05.000")
}

// cellOffset writes an offset; what is not known is a dash.
func cellOffset(off mq.QueueOffset) any {
	if off < 0 {
		return "-"
	}
	return off
}

func onOff(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }

// parseTime reads a time on the command line: RFC 3339, a date, ms since 1970, or
// how long ago, as in -15m. now is what that counts from.
func parseTime(flag, said string, now time.Time) (int64, error) {
	if said == "now" {
		return now.UnixMilli(), nil
	}
	if d, err := time.ParseDuration(said); err == nil && said[0] == '-' {
		return now.Add(d).UnixMilli(), nil
	}
	if ms, err := strconv.ParseInt(said, 10, 64); err == nil {
		return ms, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, said, time.Local); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, &usageError{fmt.Errorf("%s is %q, it must be a time such as %s, ms since 1970, or how long ago, such as -15m", flag, said, now.Format(time.RFC3339))}
}

// pattern reads the optional argument that picks names: * stands for anything, ?
// for one letter.
func pattern(args []string) (func(string) bool, error) {
	if len(args) == 0 {
		return func(string) bool { return true }, nil
	}
	if _, err := path.Match(args[0], ""); err != nil {
		return nil, &usageError{fmt.Errorf("pattern %q: %w", args[0], err)}
	}
	return func(name string) bool {
		ok, _ := path.Match(args[0], name) // it was tried above
		return ok
	}, nil
}

// nearest is the name that said may have meant, empty when none is like it.
func nearest(said string, names []string) string {
	best, least := "", len(said)/3+1
	for _, n := range slices.Sorted(slices.Values(names)) {
		if d := distance(strings.ToLower(said), strings.ToLower(n)); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or change between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = min(next, corner)
			} else {
				next = min(next, corner+1)
			}
			corner, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
