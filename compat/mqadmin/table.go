package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// answers are the normalised texts of both sides by case ID.
type answers struct {
	rocketmq, sundial map[string]string
}

func casesOf(items []*item) (cases []*testCase) {
	for _, it := range items {
		if it.c != nil {
			cases = append(cases, it.c)
		}
	}
	return cases
}

func recordedPath(side, id string) string { return filepath.Join(recorded, side, id+".txt") }

// readRecorded reads what is kept. Where Sundial prints what RocketMQ prints there is one file.
func readRecorded(cases []*testCase) (*answers, error) {
	a := &answers{map[string]string{}, map[string]string{}}
	for _, c := range cases {
		text, err := os.ReadFile(recordedPath("rocketmq", c.ID))
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		a.rocketmq[c.ID], a.sundial[c.ID] = string(text), string(text)
		if text, err = os.ReadFile(recordedPath("sundial", c.ID)); err == nil {
			a.sundial[c.ID] = string(text)
		} else if !os.IsNotExist(err) {
			return nil, err
		}
	}
	return a, nil
}

// write keeps the answers, and removes those of cases that are gone.
func (a *answers) write(cases []*testCase) error {
	for _, side := range []string{"rocketmq", "sundial"} {
		if err := os.RemoveAll(filepath.Join(recorded, side)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(recorded, side), 0o755); err != nil {
			return err
		}
	}
	for _, c := range cases {
		if err := os.WriteFile(recordedPath("rocketmq", c.ID), []byte(a.rocketmq[c.ID]), 0o644); err != nil {
			return err
		}
		if a.sundial[c.ID] == a.rocketmq[c.ID] {
			continue
		}
		if err := os.WriteFile(recordedPath("sundial", c.ID), []byte(a.sundial[c.ID]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outcome tells what came out of c.
func (a *answers) outcome(c *testCase) Outcome {
	real, ours := a.rocketmq[c.ID], a.sundial[c.ID]
	switch {
	case c.Want == NA:
		return NA
	case real == ours:
		return Same
	case c.Want == Differs, c.Want == Refused && refusal(ours) != "":
		return c.Want
	default:
		return Unexplained
	}
}

// broken finds what no command may leave: a Java exception of the tool's own making, or a run that had to be stopped.
var broken = regexp.MustCompile(`NullPointerException|IndexOutOfBounds|ClassCastException|NumberFormatException|JSONException|TimeoutException`)

var refused = regexp.MustCompile(`(?m)^.*(?:not served|not supported|CODE: 3 |no RocksDB|settings do not change|nothing to trigger|need no control|is no ).*$`)

// refusal is the text by which Sundial says no.
func refusal(text string) string {
	line := refused.FindString(text)
	if _, desc, ok := strings.Cut(line, "DESC: "); ok {
		line = desc
	}
	line, _, _ = strings.Cut(line, " For more information")
	line, _, _ = strings.Cut(line, " BROKER: ")
	return strings.TrimSpace(line)
}

// problems lists what must not be.
func problems(cases []*testCase, a *answers) (out []string) {
	for _, c := range cases {
		real, ours := a.rocketmq[c.ID], a.sundial[c.ID]
		switch o := a.outcome(c); {
		case ours == "":
			out = append(out, c.ID+": there is no answer of Sundial")
		case o == Unexplained:
			out = append(out, fmt.Sprintf("%s: not declared as different\n%s", c.ID, diff("rocketmq", real, "sundial", ours)))
		case o == Same && c.Want != Same:
			out = append(out, fmt.Sprintf("%s: declared as %q, and is the same: take the declaration off", c.ID, c.Want))
		}
		if bad := broken.FindString(ours); bad != "" && !strings.Contains(real, bad) {
			out = append(out, fmt.Sprintf("%s: the tool fails with %s\n%s", c.ID, bad, ours))
		}
		if strings.Contains(ours, "was stopped") && !strings.Contains(real, "was stopped") {
			out = append(out, c.ID+": the tool hangs")
		}
	}
	return out
}

// report prints the table and what is wrong; true if nothing is.
func report(cases []*testCase, old, now *answers, mode string) bool {
	for _, c := range cases {
		fmt.Printf("%-22s %-36s %s\n", now.outcome(c), c.ID, c.reason(now))
	}
	wrong := problems(cases, now)
	if mode == "quick" || mode == "full" {
		for _, c := range cases {
			if mode == "full" && old.rocketmq[c.ID] != now.rocketmq[c.ID] {
				wrong = append(wrong, fmt.Sprintf("%s: RocketMQ prints something else than what is recorded (run `record`)\n%s", c.ID, diff("recorded", old.rocketmq[c.ID], "now", now.rocketmq[c.ID])))
			}
			if now.outcome(c) != Unexplained && now.outcome(c) != Same && old.sundial[c.ID] != now.sundial[c.ID] {
				wrong = append(wrong, fmt.Sprintf("%s: Sundial prints something else than what is recorded (run `sundial`)\n%s", c.ID, diff("recorded", old.sundial[c.ID], "now", now.sundial[c.ID])))
			}
		}
	}
	for _, w := range wrong {
		fmt.Println("--", w)
	}
	fmt.Println(counts(cases, now))
	return len(wrong) == 0
}

func counts(cases []*testCase, a *answers) string {
	n := map[Outcome]int{}
	for _, c := range cases {
		n[a.outcome(c)]++
	}
	text := fmt.Sprintf("%d cases of %d sub-commands", len(cases), len(commandsOf(cases)))
	for _, o := range []Outcome{Same, Differs, Refused, NA, Unexplained} {
		if n[o] > 0 {
			text += fmt.Sprintf(", %d %s", n[o], o)
		}
	}
	return text
}

func commandsOf(cases []*testCase) map[string]bool {
	set := map[string]bool{}
	for _, c := range cases {
		set[c.Args[0]] = true
	}
	return set
}

func (c *testCase) reason(a *answers) string {
	text := c.Why
	if a.outcome(c) == Refused {
		text += ": “" + refusal(a.sundial[c.ID]) + "”"
	}
	return strings.TrimPrefix(text, ": ")
}

// writeTable writes the page that tells users what to expect.
func writeTable(cases []*testCase, a *answers) error {
	return os.WriteFile(page, []byte(table(cases, a)), 0o644)
}

func table(cases []*testCase, a *answers) string {
	var b strings.Builder
	b.WriteString(`# RocketMQ's mqadmin against Sundial

Every sub-command of the mqadmin of RocketMQ 5.5.0 was run by the tool itself against a RocketMQ 5.5.0 (name server and one broker) and
against Sundial, after the same preparations. Compared is everything that is printed, and the files that are made; addresses, times, ids and
the like are replaced by their kind first. The table is made by ` + "`compat/mqadmin`" + `; its README says what is replaced.

* **same**: the same text
* **differs**: works, and prints something else, on purpose
* **refused**: not there in Sundial, and said so
* **not applicable**: needs what a cluster of one broker without replicas does not have

` + counts(cases, a) + ".\n")
	section := ""
	for _, c := range cases {
		if c.Section != section {
			section = c.Section
			fmt.Fprintf(&b, "\n## %s\n\n| command | outcome | remark |\n|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(c.line(), "|", `\|`), a.outcome(c), strings.ReplaceAll(c.reason(a), "|", `\|`))
	}
	return b.String()
}

// diff shows the lines that only one text has.
func diff(left, want, right, got string) string {
	w, g := strings.Split(strings.TrimRight(want, "\n"), "\n"), strings.Split(strings.TrimRight(got, "\n"), "\n")
	// Longest common subsequence; the texts are small.
	n := make([][]int, len(w)+1)
	for i := range n {
		n[i] = make([]int, len(g)+1)
	}
	for i := len(w) - 1; i >= 0; i-- {
		for j := len(g) - 1; j >= 0; j-- {
			if w[i] == g[j] {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	var b strings.Builder
	for i, j := 0, 0; i < len(w) || j < len(g); {
		switch {
		case i < len(w) && j < len(g) && w[i] == g[j]:
			i, j = i+1, j+1
		case j == len(g) || i < len(w) && n[i+1][j] >= n[i][j+1]:
			fmt.Fprintf(&b, "   %-9s %s\n", left, w[i])
			i++
		default:
			fmt.Fprintf(&b, "   %-9s %s\n", right, g[j])
			j++
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
