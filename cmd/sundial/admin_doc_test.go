package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the list of commands in docs/ADMIN.md")

const (
	adminDoc       = "../../docs/ADMIN.md"
	commandsMarker = "<!-- commands -->\n"
)

// adminTree is every admin command that does something, by its words after admin.
func adminTree() map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var walk func(cmd *cobra.Command, words string)
	walk = func(cmd *cobra.Command, words string) {
		for _, sub := range cmd.Commands() {
			name := strings.TrimSpace(words + " " + sub.Name())
			if sub.Runnable() {
				all[name] = sub
			}
			walk(sub, name)
		}
	}
	walk(adminCommand(), "")
	return all
}

// The list of commands in docs/ADMIN.md is that of the program.
func TestAdminDocIsFresh(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(adminDoc)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(text), commandsMarker)
	if !found {
		t.Fatalf("%s has no line %s", adminDoc, commandsMarker)
	}
	want := commandList()
	if *update {
		if err := os.WriteFile(adminDoc, []byte(head+commandsMarker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s does not list what the program has: go test ./cmd/sundial -run AdminDoc -update", adminDoc)
	}
}

func commandList() string {
	var b strings.Builder
	tree := adminTree()
	for _, name := range sortedKeys(tree) {
		cmd := tree[name]
		use := strings.TrimSpace(strings.TrimSuffix(name, cmd.Name()) + cmd.Use)
		fmt.Fprintf(&b, "\n### `%s`\n\n%s.\n", use, cmd.Short)
		var flags []string
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				flags = append(flags, "`--"+f.Name+"`")
			}
		})
		if len(flags) > 0 {
			fmt.Fprintf(&b, "Flags: %s.\n", strings.Join(flags, ", "))
		}
		if shape := cmd.Annotations[jsonShape]; shape != "" {
			fmt.Fprintf(&b, "JSON: `%s`\n", shape)
		}
	}
	return b.String()
}

// Each sub-command of mqadmin 5.5.0 has a row that leads to commands there are, or
// says why to none; and no admin command is missing from the page.
func TestAdminDocLeadsFromMqadmin(t *testing.T) {
	t.Parallel()
	names, err := os.ReadFile("testdata/mqadmin-5.5.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(adminDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## For those who know mqadmin")
	table, _, _ = strings.Cut(table, "## Dead letters")
	tree := adminTree()
	rows := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| ([A-Za-z]+) \| (.*) \|$`)
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, m := range row.FindAllStringSubmatch(table, -1) {
		if m[1] == "mqadmin" {
			continue
		}
		if rows[m[1]] {
			t.Errorf("%s has two rows", m[1])
		}
		rows[m[1]] = true
		leads := quoted.FindAllStringSubmatch(m[2], -1)
		if len(leads) == 0 && !strings.HasPrefix(m[2], "not served: ") {
			t.Errorf("%s leads nowhere and does not say why", m[1])
		}
		for _, to := range leads {
			if tree[to[1]] == nil {
				t.Errorf("%s leads to `%s`, there is no such command", m[1], to[1])
			}
		}
	}
	want := strings.Fields(string(names))
	for _, name := range want {
		if !rows[name] {
			t.Errorf("mqadmin's %s has no row", name)
		}
	}
	for name := range rows {
		if !slices.Contains(want, name) {
			t.Errorf("%s is no sub-command of mqadmin", name)
		}
	}
}

// Every admin command says what its JSON holds, every command that destroys has
// --yes and --dry-run, and none that takes --yes goes without --dry-run.
func TestAdminCommandsHaveManners(t *testing.T) {
	t.Parallel()
	for name, cmd := range adminTree() {
		if cmd.HasSubCommands() && cmd.Args == nil {
			continue // it only holds others
		}
		if cmd.Annotations[jsonShape] == "" {
			t.Errorf("admin %s does not say what its JSON document holds: wrap it in describe", name)
		}
		if cmd.Flags().Lookup("yes") != nil && cmd.Flags().Lookup("dry-run") == nil {
			t.Errorf("admin %s has --yes and no --dry-run: wrap it in destroys", name)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("admin %s: its short help is %q, it must be a sentence without its full stop", name, cmd.Short)
		}
	}
}
