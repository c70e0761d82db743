package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTableIsFresh holds docs/MQADMIN.md against the matrix and the recorded answers.
func TestTableIsFresh(t *testing.T) {
	t.Parallel()
	cases, a := kept(t)
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := table(cases, a); string(have) != want {
		t.Errorf("%s is not what the recorded answers say: run `go run . table` in compat/mqadmin\n%s", page, diff("page", string(have), "answers", want))
	}
}

// TestRecordedAnswersAreExplained fails when a recorded answer of Sundial differs from RocketMQ's without a declared reason.
func TestRecordedAnswersAreExplained(t *testing.T) {
	t.Parallel()
	cases, a := kept(t)
	for _, p := range problems(cases, a) {
		t.Error(p)
	}
	for _, c := range cases {
		if c.Want != Same && c.Why == "" {
			t.Errorf("%s is declared as %q without a reason", c.ID, c.Want)
		}
	}
}

// TestRecordedAnswersTellNoMachine looks for paths and addresses of the machine that recorded.
func TestRecordedAnswersTellNoMachine(t *testing.T) {
	t.Parallel()
	cases, a := kept(t)
	leak := regexp.MustCompile(`/(tmp|home|root|work|Users|var)/[\w.-]+|\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	for _, c := range cases {
		for _, text := range []string{a.rocketmq[c.ID], a.sundial[c.ID]} {
			for _, found := range leak.FindAllString(text, -1) {
				if !strings.HasPrefix(found, "127.0.0.") && !slices.Contains([]string{"/tmp/rocketmq", "/tmp/fixed-MILLIS.before", "/tmp/fixed-MILLIS.after"}, found) {
					t.Errorf("%s tells %s", c.ID, found)
				}
			}
		}
	}
}

func kept(t *testing.T) ([]*testCase, *answers) {
	t.Helper()
	items, err := readMatrix("matrix.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := casesOf(items)
	a, err := readRecorded(cases)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if a.rocketmq[c.ID] == "" {
			t.Errorf("nothing is recorded of %s: run `go run . record`", c.ID)
		}
	}
	return cases, a
}

func TestNormalise(t *testing.T) {
	t.Parallel()
	s := &side{namesrv: "127.0.0.1:9876", broker: "127.0.0.1:10911", dir: "/d/sundial"}
	for _, tt := range []struct{ name, give, want string }{
		{"addresses", "127.0.0.1:10911 127.0.0.1:9876 127.0.0.1:10909 /127.0.0.1:41234", "{broker} {namesrv} {fast} /127.0.0.1:PORT"},
		{"moments", "a 2026-12-01 01:02:03,456 b 1796090074277", "a TIME b MILLIS"},
		{"another width", "a    127.0.0.1:10911    b", "a  {broker}  b"},
		{"untouched widths", "a    b   ", "a    b"},
		{"hosts", "10.1.2.3@PID 127.0.0.2 192.168.0.1 0.0.0.0 1.5", "HOST@PID 127.0.0.2 HOST 0.0.0.0 1.5"},
		{"ids", "7F00000100002A9F0000000000000000 x FD0000000000000000000000000000027AC230946E09003631360000", "MSGID x MSGID"},
		{"positions", "commitLogOffset=0, commitLogOffset=268,", "commitLogOffset=0, commitLogOffset=POSITION,"},
		{"stacks", "E: why\n\tat a.b.C(D.java:1)\n\t... 3 more\nCaused by: f\n", "E: why\nCaused by: f"},
		{"pages", "E\nFor more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ", "E"},
		{"paths", "export /d/sundial/work/a.json, store /d/sundial/store", "export {dir}/a.json, store {side}/store"},
	} {
		if got := (&testCase{}).normalise(tt.give, s); got != tt.want {
			t.Errorf("%s: %q became %q, want %q", tt.name, tt.give, got, tt.want)
		}
	}
	c := &testCase{json: true}
	if got, want := c.normalise(`{"b":1,"a":{"time":1796090074277}}`, s), "{\n  \"a\": {\n  \"time\": MILLIS\n  },\n  \"b\": 1\n}"; got != want {
		t.Errorf("JSON became %s", got)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		want       Outcome
		real, ours string
		out        Outcome
		wrong      int
	}{
		{"same", Same, "a\n", "a\n", Same, 0},
		{"not explained", Same, "a\n", "b\n", Unexplained, 1},
		{"explained", Differs, "a\n", "b\n", Differs, 0},
		{"explained, and the same", Differs, "a\n", "a\n", Same, 1},
		{"refused", Refused, "ok\n", "CODE: 3  DESC: request type 1 (X) not supported: because\n", Refused, 0},
		{"refused without saying so", Refused, "ok\n", "java.lang.Error\n", Unexplained, 1},
		{"the tool breaks", Differs, "ok\n", "java.lang.NullPointerException\n", Differs, 1},
		{"the tool hangs", NA, "ok\n", "runs on; was stopped\n", NA, 1},
	} {
		c := &testCase{ID: "c", Want: tt.want, Why: "why"}
		a := &answers{map[string]string{"c": tt.real}, map[string]string{"c": tt.ours}}
		if got := a.outcome(c); got != tt.out {
			t.Errorf("%s: outcome %q, want %q", tt.name, got, tt.out)
		}
		if wrong := problems([]*testCase{c}, a); len(wrong) != tt.wrong {
			t.Errorf("%s: problems %q, want %d", tt.name, wrong, tt.wrong)
		}
	}
}

func TestMatrixIsReadWholly(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/m"
	for _, tt := range []struct{ text, want string }{
		{"$ a -b 'c d'\n  differs: why\n", ""},
		{"  differs: why\n", "not a line"},
		{"$ a\n  nonsense: why\n", "no attribute"},
		{"$ a 'b\n", "does not end"},
		{"$ a\n  rule: x\n", "a rule is"},
	} {
		if err := os.WriteFile(name, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		items, err := readMatrix(name)
		if tt.want == "" && (err != nil || len(items) != 1 || items[0].c.Args[2] != "c d" || items[0].c.Want != Differs) {
			t.Errorf("%q: %v, %v", tt.text, items, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
}
