package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shape is a parsed description of a JSON document, as describe writes it.
type shape struct {
	list   *shape
	named  *shape // a map
	fields map[string]*shape
}

// parseShape reads the description at the start of s and returns what is left.
func parseShape(s string) (*shape, string) {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(s, "..."):
		return &shape{}, s[3:]
	case strings.HasPrefix(s, "["):
		inner, rest := parseShape(s[1:])
		return &shape{list: inner}, rest[1:]
	case strings.HasPrefix(s, "{NAME: "):
		inner, rest := parseShape(s[len("{NAME: "):])
		return &shape{named: inner}, rest[1:]
	}
	out := &shape{fields: map[string]*shape{}}
	for s = s[1:]; s[0] != '}'; {
		s = strings.TrimPrefix(s, ", ")
		n := strings.IndexAny(s, ":,}")
		name := s[:n]
		if s = s[n:]; s[0] == ':' {
			out.fields[name], s = parseShape(s[1:])
		} else {
			out.fields[name] = &shape{}
		}
	}
	return out, s[1:]
}

// check finds what a document has that its description does not tell.
func (s *shape) check(v any, at string) error {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			inner := s.list
			if inner == nil {
				inner = &shape{}
			}
			if err := inner.check(e, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			inner := s.named
			if inner == nil {
				if inner = s.fields[k]; inner == nil {
					return fmt.Errorf("%s has %q, its description does not", at, k)
				}
			}
			if err := inner.check(e, at+"."+k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Every JSON document has the fields that its command's help tells, and no others.
func TestAdminJSONIsAsDescribed(t *testing.T) {
	t.Parallel()
	a, r := dlqBroker(t)
	file := filepath.Join(t.TempDir(), "cluster.json")
	a.bury(r, "T", "dead", "k", "tag")
	a.run(0, "message send T --body later --level 3 --keys d")
	a.prepare(r, "T", "open")
	a.run(0, "topic create Old")
	a.run(0, "group create old")
	a.run(0, "group reset g T --to earliest --yes")
	tree := adminTree()
	for _, line := range []string{
		"cluster", "cluster list", "cluster health --all", "broker list", "broker status", "broker stats", "broker config get", "broker producers", "broker probe --count 3",
		"topic list", "topic show T", "topic groups T", "topic entries T --queue 0", "topic allocate T a b", "topic update Old --perm r --dry-run", "topic update Old --perm r",
		"topic delete Old --dry-run", "topic delete Old --yes", "topic create Old --queues 1",
		"group list", "group show g", "group progress g --clients", "group reset g T --to latest --dry-run", "group skip g T --yes", "group clone g old --yes",
		"group update old --retries 1", "group delete old --yes",
		"message send T --body x", "message list T", "message find --topic T --key k", "message consume T --end --max 1",
		"dlq list", "dlq show g", "dlq redrive g --all", "dlq purge g --yes",
		"txn list", "txn show id-open", "txn resolve id-open --as rollback --dry-run", "txn resolve id-open --as resume", "delay", "message send T --body t --keys later --due 2h", "delay list", "delay list --timed", "delay find T later", "delay show T later",
		"delay count", "delay count --until 3h", "delay histogram", "delay reschedule T --key later --to 3h", "delay cancel T --key later --dry-run", "delay fire T --key later", "delay aside", "export --offsets --config", "export " + file, "import " + file + " --dry-run",
		"namesrv list", "namesrv route T", "namesrv topics",
	} {
		words := strings.Fields(line)
		n := len(words)
		for ; n > 0 && tree[strings.Join(words[:n], " ")] == nil; n-- {
		}
		cmd := tree[strings.Join(words[:n], " ")]
		if cmd == nil {
			t.Errorf("admin %s: no such command", line)
			continue
		}
		if line == "export "+file {
			a.run(0, line)
			continue
		}
		var doc any
		a.json(&doc, line)
		want, rest := parseShape(cmd.Annotations[jsonShape])
		if rest != "" {
			t.Fatalf("admin %s: %q is left of its description", line, rest)
		}
		if err := want.check(doc, "it"); err != nil {
			t.Errorf("admin %s: %v", line, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || !json.Valid(text) {
		t.Errorf("%s: %v", text, err)
	}
}
