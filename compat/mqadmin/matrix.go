package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Outcome is what came out of a case: what RocketMQ printed beside what Sundial printed.
type Outcome string

// Outcomes. All but Same have to be declared in the matrix, with the reason.
const (
	Same    Outcome = "same"
	Differs Outcome = "differs"
	Refused Outcome = "refused"
	NA      Outcome = "not applicable"
	// Unexplained is a difference that nobody declared: it fails the run.
	Unexplained Outcome = "DIFFERS, NOT EXPLAINED"
)

// item is one line of the matrix with what belongs to it.
type item struct {
	line    int
	section string // set for "== ..."
	file    string // a file to write before what follows; words holds its text
	client  string // "5.5.0" or "4.9.8" for a step of a client
	capture string // name of a step's answer
	words   []string
	c       *testCase
}

// testCase is one call of mqadmin.
type testCase struct {
	ID      string // name of the sub-command, with a number behind it from the second on
	Section string
	Args    []string
	Want    Outcome
	Why     string // why it is not the same, or what is not compared

	timeout time.Duration
	until   *regexp.Regexp // run again until the output matches
	sort    bool           // the order of lines says nothing
	once    bool           // lines that repeat are kept once
	rules   []rule
	keep    *regexp.Regexp // only these lines are compared
	drop    *regexp.Regexp // these lines are not
	cut     *regexp.Regexp // neither this line nor what follows is
	files   []string       // files that the command makes, relative to the work directory
	json    bool           // the output or files are JSON: keys sorted, indented
}

// readMatrix reads the script of steps and cases.
func readMatrix(path string) ([]*item, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var items []*item
	section, seen := "", map[string]int{}
	var last *testCase
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		line := scan.Text()
		it := &item{line: n}
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "== "):
			section = trimmed[3:]
			it.section = section
		case strings.HasPrefix(line, "+ "):
			name, text, _ := strings.Cut(trimmed[2:], " ")
			it.file, it.words = name, []string{text}
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "4> "):
			it.client = "5.5.0"
			if line[0] == '4' {
				it.client = "4.9.8"
			}
			_, rest, _ := strings.Cut(line, "> ")
			if it.words, err = split(rest); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n, err)
			}
			if len(it.words) > 2 && it.words[1] == "=" {
				it.capture, it.words = it.words[0], it.words[2:]
			}
		case strings.HasPrefix(line, "$ "):
			words, err := split(line[2:])
			if err != nil || len(words) == 0 {
				return nil, fmt.Errorf("%s:%d: no command: %v", path, n, err)
			}
			id := words[0]
			if seen[id]++; seen[id] > 1 {
				id = fmt.Sprintf("%s-%d", id, seen[id])
			}
			last = &testCase{ID: id, Section: section, Args: words, Want: Same, timeout: 20 * time.Second}
			it.c = last
		case strings.HasPrefix(line, "  ") && last != nil:
			if err := last.attribute(trimmed); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n, err)
			}
			continue
		default:
			return nil, fmt.Errorf("%s:%d: not a line of a matrix: %s", path, n, line)
		}
		items = append(items, it)
	}
	return items, scan.Err()
}

func (c *testCase) attribute(text string) (err error) {
	key, value, _ := strings.Cut(text, ": ")
	switch key {
	case "differs":
		c.Want, c.Why = Differs, value
	case "refused":
		c.Want, c.Why = Refused, value
	case "n/a":
		c.Want, c.Why = NA, value
	case "timeout":
		c.timeout, err = time.ParseDuration(value)
	case "until":
		c.until, err = regexp.Compile(value)
	case "keep":
		c.keep, err = regexp.Compile(value)
	case "drop":
		c.drop, err = regexp.Compile(value)
	case "cut":
		c.cut, err = regexp.Compile(value)
	case "note":
		c.Why = value
	case "sort":
		c.sort = true
	case "once":
		c.once = true
	case "json":
		c.json = true
	case "files":
		c.files = strings.Fields(value)
	case "rule":
		from, to, ok := strings.Cut(value, " => ")
		if !ok {
			return fmt.Errorf("a rule is REGEXP => TEXT: %s", value)
		}
		re, err := regexp.Compile("(?m)" + from)
		if err != nil {
			return err
		}
		c.rules = append(c.rules, rule{re: re, to: to})
	default:
		return fmt.Errorf("no attribute %q", key)
	}
	return err
}

// split cuts a line into words at blanks; double or single quotes keep them together.
func split(s string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, rune(0)
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case r == ' ':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c does not end", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// line is a case's command as somebody would type it, placeholders kept.
func (c *testCase) line() string {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		if words[i] = w; w == "" || strings.ContainsAny(w, " *|;{}\"") && !strings.HasPrefix(w, "{") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}
