package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rule replaces a value that must differ between two runs by a word that names its kind.
type rule struct {
	re *regexp.Regexp
	to string
}

func ruleOf(re, to string) rule { return rule{regexp.MustCompile(re), to} }

// left holds lines that are left out: they say where the tool stood, or where RocketMQ's pages are, not what was answered.
var left = regexp.MustCompile(`^(\tat .*|\t\.\.\. \d+ more|For more information, please visit the url, \S+|See https://rocketmq\.apache\.org/\S+ for further details\.)$`)

// rules hold for every case, in this order. README.md says them in words.
var rules = []rule{
	// Moments.
	ruleOf(`\b20\d\d-\d\d-\d\d[ T#,]+\d\d:\d\d:\d\d([.,:]\d{3})?\b`, "TIME"),
	ruleOf(`\b20\d\d-\d\d-\d\d[ T#,]+\d\d:\d\d\b`, "TIME"),
	ruleOf(`\b20\d{12}(\d{3})?\b`, "TIME"),
	ruleOf(`\b1[5-9]\d{11}\b`, "MILLIS"),
	// Message ids: unique ids hold the producer's address, process and clock, offset ids the broker's address and a log position.
	ruleOf(`\b[0-9A-F]{32,60}\b`, "MSGID"),
	// Log positions: what lies between two messages depends on who else wrote.
	ruleOf(`\b(commitLogOffset|preparedTransactionOffset|physicOffset)=[1-9]\d*`, "$1=POSITION"),
	ruleOf(`(MILLIS@.*@MSGID@)[1-9]\d*$`, "${1}POSITION"),
	// Process ids and hash codes of the client's Java objects.
	ruleOf(`(\$\$Lambda\$)[0-9]+/0x[0-9a-f]+@[0-9a-f]+`, "${1}N"),
	ruleOf(`(\w)@[0-9a-f]{5,8}\b`, "${1}@HASH"),
	// What is left of ports: clients' own.
	ruleOf(`\b(127\.0\.0\.1):\d{4,5}\b`, "$1:PORT"),
	// The machine's own addresses.
	ruleOf(`\b(?:1[013-9]\d|12[0-689]|2\d\d|[1-9]\d|[1-9])\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`, "HOST"),
	// How long something took, and how much there was in a second.
	ruleOf(`\b(Consume TPS|Topic Put TPS): \d+\.\d+`, "$1: N"),
	ruleOf(`\bRT: +\d+ ?ms\b`, "RT: N ms"),
}

// normalise makes the answers of two runs comparable.
func (c *testCase) normalise(text string, s *side) string {
	if c.json {
		text = sortedJSON(text)
	}
	known := strings.NewReplacer(
		s.namesrv, "{namesrv}", s.broker, "{broker}",
		fmt.Sprintf("127.0.0.1:%d", 10909+s.offset), "{fast}", fmt.Sprintf("127.0.0.1:%d", 10912+s.offset), "{ha}",
		s.dir+"/work", "{dir}", s.dir, "{side}")
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, line := range lines {
		line = strings.TrimRight(line, " \r")
		if c.cut != nil && c.cut.MatchString(line) {
			break
		}
		if left.MatchString(line) || c.drop != nil && c.drop.MatchString(line) || c.keep != nil && !c.keep.MatchString(line) {
			continue
		}
		after := known.Replace(line)
		for _, list := range [][]rule{rules, c.rules} {
			for _, r := range list {
				after = r.re.ReplaceAllString(after, r.to)
			}
		}
		if after != line {
			after = blanks.ReplaceAllString(after, "  ") // what was replaced had another width
		}
		kept = append(kept, after)
	}
	text = strings.Join(kept, "\n")
	text = strings.TrimRight(text, "\n")
	if c.once || c.sort {
		lines := strings.Split(text, "\n")
		if c.sort {
			slices.Sort(lines)
		}
		if c.once {
			lines = distinct(lines)
		}
		text = strings.Join(lines, "\n")
	}
	return text
}

var (
	blanks      = regexp.MustCompile(` {2,}`)
	placeholder = regexp.MustCompile(`\{[a-z][a-z0-9]*(\.[a-z]+)?\}`)
)

// distinct keeps the first of equal lines.
func distinct(lines []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(lines, func(l string) bool { was := seen[l]; seen[l] = true; return was })
}

// sortedJSON writes a JSON text again with sorted keys; what is none is left alone.
func sortedJSON(text string) string {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return text
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	enc.Encode(v)
	return out.String() + strings.TrimLeft(text[dec.InputOffset():], "\n")
}

// show is what is kept of a case: the command with its placeholders, exit code and outputs.
func (c *testCase) show(r result, files map[string]string, s *side) string {
	var b strings.Builder
	fmt.Fprintf(&b, "$ mqadmin %s\n", c.line())
	switch {
	case r.stopped:
		b.WriteString("runs on; was stopped\n")
	case r.exit != 0:
		fmt.Fprintf(&b, "exit %d\n", r.exit)
	}
	part := func(title, text string) {
		if text = c.normalise(text, s); text != "" {
			fmt.Fprintf(&b, "--- %s\n%s\n", title, text)
		}
	}
	part("stdout", r.out)
	part("stderr", r.err)
	for _, name := range c.files {
		text, ok := files[name]
		if !ok {
			text = "(not made)"
		}
		part("file "+name, text)
	}
	return b.String()
}
