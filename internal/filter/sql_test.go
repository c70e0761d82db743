package filter_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

// block makes a block of properties of "a=1;b=2".
func block(pairs string) []byte {
	var b []byte
	for pair := range strings.SplitSeq(pairs, ";") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			b = fmt.Appendf(b, "%s\x01%s\x02", name, value)
		}
	}
	return b
}

// differs are the answers that are not RocketMQ's on purpose. The reasons stand
// in docs/COMPATIBILITY.md.
var differs = map[string]string{
	// A number is a number, whatever Java class the literal has there.
	"a > 1|a=2.5": "true", "a = 1|a=1.0": "true", "a = 1|a= 1": "true", "a = 1000|a=1e3": "true", "a BETWEEN 1 AND 5|a=2.5": "true",
	"a > 1.0|a=NaN": "false", "a > 1.0|a=Infinity": "false", "a > 1.0|a=0x1p3": "false",
	"-a < 0|a=5": "true", "a = 05|a=5": "true", "01 = 1|": "true", "a = 0.0|a=-0.0": "true",
	"a = -9223372036854775808|a=-9223372036854775808": "true", "-9223372036854775808 < 0|": "true",
	// What cannot be compared is unknown, and does not spoil what is beside it.
	"a > 1 OR b = 'x'|a=abc;b=x": "true",
	// A property by itself is a condition.
	"a|a=true": "true", "TRUE AND a|a=true": "true", "NOT a|a=true": "false",
	// NOT binds less than comparisons, as in SQL.
	"NOT a = 1 AND b = 1|a=2;b=1": "true", "NOT NOT a = 1|a=1": "true", "NOT a BETWEEN 1 AND 5|a=7": "true", "NOT a IS NULL|": "false", "NOT a IS NULL|a=1": "true",
	"a = 1 AND NOT b = 2|a=1;b=3": "true", "a = 1 AND (NOT b = 2)|a=1;b=3": "true",
	// RocketMQ stops reading where it does not understand, and takes what it has.
	"a LIKE 'x'|a=x": "refused", "a = 1)|a=1": "refused", "a = 1 b|a=1": "refused", "a b|a=1": "refused", "a-b = 1|a-b=1": "refused", "a = 1d|a=1": "refused",
	"a = 1f|a=1": "refused", "a = 1.5.5|a=1": "refused", "a = 'x' 'y'|a=x": "refused", "a - - b = 1|a=1": "refused",
	// Conditions that make no sense are refused.
	"1 CONTAINS '1'|": "refused", "- 'x' = 1|": "refused", "a CONTAINS 'x' CONTAINS 'y'|a=x": "refused",
}

// What RocketMQ's own filter said to the same expressions and messages.
func TestF01SQLAsInRocketMQ(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/rocketmq.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unescape := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\f`, "\f", `\b`, `\`)
	used := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "# ") {
			continue
		}
		part := strings.Split(lines.Text(), "\t")
		key, want := part[0]+"|"+part[1], part[2]
		if want == "null" || want == "failed" {
			want = "false"
		}
		theirs := want
		if d, ok := differs[key]; ok {
			want, used[key] = d, true
		}
		got := "refused"
		g, err := filter.Parse(filter.SQL92, unescape.Replace(part[0]))
		if err == nil {
			got = fmt.Sprint(g.Match(block(unescape.Replace(part[1]))))
		} else if !errors.Is(err, mq.ErrSubscriptionParse) {
			t.Errorf("%s: %v is not a parse error", key, err)
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s, RocketMQ %s", key, got, err, want, part[2])
		}
		if d, ok := differs[key]; ok && d == theirs {
			t.Errorf("%s is listed as different and is not", key)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for key := range differs {
		if !used[key] {
			t.Errorf("%s is listed as different and not in the file", key)
		}
	}
}

func TestF01BadSQLSaysWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr         string
		line, column int
		want         string
	}{
		{"a >>> 3", 1, 4, `">" is here where a property, a value or ( was expected, here: a >^>> 3`},
		{"", 1, 1, "the expression is empty"},
		{" -- nothing", 1, 12, "the expression is empty"},
		{"a = 1 AND\n  b == 2", 2, 5, `write "="`},
		{"a != 1", 1, 3, `write "<>"`},
		{"a = 'it", 1, 5, "no closing quote"},
		{"a /* x", 1, 3, "comment has no end"},
		{`a = "x"`, 1, 5, "single quotes"},
		{"a LIKE 'x%'", 1, 3, "write CONTAINS"},
		{"价格 > 1", 1, 1, "names are letters of ASCII"},
		{"a = '价格' AND c ! 1", 1, 16, "'!' has no meaning here, here: a = '价格' AND c ^! 1"},
		{"a.b = 1", 1, 2, "no dot"},
		{"a = NULL", 1, 5, "write IS NULL"},
		{"a > 'x'", 1, 5, "> orders numbers only"},
		{"a > TRUE", 1, 5, "orders numbers only"},
		{"TRUE = 1", 1, 8, "can only be compared with TRUE"},
		{"a BETWEEN 5 AND 1", 1, 11, "above the upper one"},
		{"a BETWEEN 1 OR 2", 1, 13, "AND between the bounds"},
		{"a IN (1)", 1, 7, "a text in single quotes"},
		{"a IN ('x'", 1, 10, "the end is here where ) or ,"},
		{"1 IN ('x')", 1, 1, "only a property"},
		{"a CONTAINS b", 1, 12, "a text in single quotes after CONTAINS"},
		{"a NOT = 1", 1, 7, "BETWEEN, IN, CONTAINS"},
		{"(a = 1", 1, 7, "the end is here where )"},
		{"a = 1)", 1, 6, "an operator, AND, OR or the end"},
		{"1", 1, 1, "this is no condition"},
		{"a = 1 AND 'x'", 1, 11, "this is no condition"},
		{"a * 2 = 4", 1, 3, "no arithmetic"},
		{"a = 9223372036854775808", 1, 5, "does not fit into 64 bits"},
		{"a = 1e999", 1, 5, "does not fit"},
		{"a IS 1", 1, 6, "NULL after IS"},
		{"-TRUE = 1", 1, 2, "a sign wants"},
		{strings.Repeat("(", 1000) + "a = 1" + strings.Repeat(")", 1000), 1, 257, "more than 256 levels"},
		{strings.Repeat("- ", 1000) + "a = 1", 1, 513, "more than 256 levels"},
		{"a = 1" + strings.Repeat(" = TRUE", 1000), 0, 0, "more than 256 levels"},
		{"a = 1 OR b = " + strings.Repeat("1", filter.MaxSQL), 1, filter.MaxSQL + 1, "has 65549 bytes, the limit is 65536"},
	} {
		_, err := filter.Parse(filter.SQL92, c.expr)
		syntax, ok := errors.AsType[*filter.SyntaxError](err)
		switch {
		case !ok || !errors.Is(err, mq.ErrSubscriptionParse):
			t.Errorf("%.60q: %v", c.expr, err)
		case !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400:
			t.Errorf("%.60q: %v; want %q", c.expr, err, c.want)
		case c.line > 0 && (syntax.Line != c.line || syntax.Column != c.column):
			t.Errorf("%.60q: line %d, column %d; want %d, %d", c.expr, syntax.Line, syntax.Column, c.line, c.column)
		}
	}
}

// The largest expressions are read and evaluated.
func TestSQLOf64KB(t *testing.T) {
	t.Parallel()
	var or []string
	for i := range 4500 {
		or = append(or, fmt.Sprintf("a='%04d'", i))
	}
	var list []string
	for i := range 8000 {
		list = append(list, fmt.Sprintf("'%05d'", i))
	}
	for _, c := range []struct{ expr, yes, no string }{
		{strings.Join(or, " OR "), "a=4499", "a=4500"},
		{"a IN (" + strings.Join(list, ",") + ")", "a=07999", "a=08000"},
		{strings.Repeat("NOT ", 16000) + "a = 1", "a=1", "a=2"},
		{strings.Repeat("(", 250) + "a = 1" + strings.Repeat(")", 250), "a=1", "a=2"},
		{"a = '" + strings.Repeat("x", filter.MaxSQL-6) + "'", "a=" + strings.Repeat("x", filter.MaxSQL-6), "a=x"},
	} {
		f, err := filter.Parse(filter.SQL92, c.expr)
		if err != nil {
			t.Errorf("%.40q of %d bytes: %v", c.expr, len(c.expr), err)
			continue
		}
		if !f.Match(block(c.yes)) || f.Match(block(c.no)) || f.Match(nil) {
			t.Errorf("%.40q of %d bytes does not match what it should", c.expr, len(c.expr))
		}
	}
}

func TestSQLLooksAtProperties(t *testing.T) {
	t.Parallel()
	f, err := filter.Parse(filter.SQL92, "a = 'x' AND b IS NULL")
	if err != nil {
		t.Fatal(err)
	}
	for props, want := range map[string]bool{
		"a\x01x\x02": true, "a\x01x": true, "a\x01y\x02a\x01x\x02": true, "a\x01x\x02a\x01y\x02": false,
		"a\x01x\x02b\x01\x02": true, "a\x01x\x02b\x011\x02": false, "a\x01x\x02\x01z\x02": true, "\x02\x02a\x01x\x02\x02": true,
		"": false, "a": false, "aa\x01x\x02": false, "A\x01x\x02": false,
	} {
		if got := f.Match([]byte(props)); got != want {
			t.Errorf("%q: %v", props, got)
		}
	}
	if !f.SQL() || f.All() || !f.MatchCode(5) {
		t.Error("an SQL92 filter decides by properties only")
	}
	// More properties than are looked through.
	var terms []string
	var props string
	for i := range 40 {
		terms = append(terms, fmt.Sprintf("p%d = %d", i, i))
		props += fmt.Sprintf("p%d=%d;", i, i)
	}
	if f, err = filter.Parse(filter.SQL92, strings.Join(terms, " AND ")); err != nil {
		t.Fatal(err)
	}
	if !f.Match(block(props)) || f.Match(block(strings.Replace(props, "p39=39", "p39=38", 1))) {
		t.Error("forty properties")
	}
}

var samples = []string{
	"a > 1", "TAGS IN ('TagA','TagB') AND price BETWEEN 10 AND 20.5", "a NOT CONTAINS 'x' OR b STARTSWITH 'it''s'",
	"NOT (a IS NULL) AND - b >= -1.5e3 -- end", "(a = TRUE) <> (b = FALSE)", "a /* c */ NOT BETWEEN b AND c",
}

func TestSQLDoesNotAllocate(t *testing.T) {
	props := block("a=2;TAGS=TagB;price=12.5;b=-7;c=true;KEYS=x;UNIQ_KEY=7F00000107B473D16E93")
	for _, expr := range samples {
		f, err := filter.Parse(filter.SQL92, expr)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(200, func() { f.Match(props) }); n != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", expr, n)
		}
	}
}

// FuzzSQL: whatever is written, it is read or refused with a place within it,
// and what is read looks at any block without a panic.
func FuzzSQL(f *testing.F) {
	for _, s := range slices.Concat(samples, []string{"", "a", "(((", "'", "a >>> 3", "--", "/*", "1e", "a = 1 = TRUE"}) {
		f.Add(s, []byte("a\x011\x02b\x01x\x02"))
	}
	f.Fuzz(func(t *testing.T, expr string, props []byte) {
		g, err := filter.Parse(filter.SQL92, expr)
		if err != nil {
			syntax, ok := errors.AsType[*filter.SyntaxError](err)
			if !ok || syntax.Line < 1 || syntax.Column < 1 || syntax.Line > len(expr)+1 {
				t.Fatalf("%q: %v", expr, err)
			}
			return
		}
		if got := g.Match(props); got != g.Match(props) {
			t.Fatal("two answers to one question")
		}
		_ = g.Match(nil)
	})
}

func BenchmarkSQL(b *testing.B) {
	props := block("KEYS=k1;UNIQ_KEY=7F00000107B473D16E93000000000000;WAIT=true;TAGS=TagB;a=2;price=12.5;region=hz;CLUSTER=DefaultCluster;MSG_REGION=DefaultRegion;TRACE_ON=true")
	for _, c := range []struct{ name, expr string }{
		{"one", "a > 1"}, {"three", "a > 1 AND region = 'hz' AND price < 20.5"}, {"in", "region IN ('hz','bj') AND TAGS IS NOT NULL"},
	} {
		f, err := filter.Parse(filter.SQL92, c.expr)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Match(props)
			}
		})
	}
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = filter.Parse(filter.SQL92, "a > 1 AND region = 'hz' AND price < 20.5")
		}
	})
}
