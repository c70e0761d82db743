package filter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

func parse(t testing.TB, expr string) *filter.Filter {
	t.Helper()
	f, err := filter.Parse(filter.TAG, expr)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tagged is a block of properties with this tag among others.
func tagged(tag string) []byte {
	if tag == "" {
		return []byte("a\x011\x02")
	}
	return []byte("a\x011\x02TAGS\x01" + tag + "\x02b\x012\x02")
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr string
		all  bool
		tags []string
	}{
		{"", true, nil}, {"*", true, nil}, {"  ", true, nil}, {" * ", true, nil},
		{"TagA", false, []string{"TagA"}},
		{"TagA||TagB", false, []string{"TagA", "TagB"}},
		{" TagB || TagA||TagB ", false, []string{"TagA", "TagB"}},
		{"TagA|| ||", false, []string{"TagA"}},
		{"TagA | TagB", false, []string{"TagA | TagB"}}, // one bar is part of the tag
		{"TagA||*", false, []string{"*", "TagA"}},       // a tag named *, as in RocketMQ
		{"支付||😀", false, []string{"支付", "😀"}},
	} {
		f := parse(t, c.expr)
		if f.All() != c.all || !slices.Equal(f.Tags(), c.tags) {
			t.Errorf("%q: all %v, tags %q", c.expr, f.All(), f.Tags())
		}
		if g, err := filter.Parse("", c.expr); err != nil || g.All() != f.All() {
			t.Errorf("%q without a type: %v", c.expr, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, expr, want string }{
		{"XPATH", "a", "XPATH"},
		{"tag", "a", "unknown expression type"},
		{filter.TAG, "||", "no tag"},
		{filter.TAG, " || || ", "no tag"},
		{filter.TAG, strings.Repeat("t||", filter.MaxTags+1), "more than 4096"},
	} {
		if _, err := filter.Parse(c.kind, c.expr); !errors.Is(err, mq.ErrSubscriptionParse) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.20q: %v", c.kind, c.expr, err)
		}
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("tag%d", i)
	}
	for _, c := range []struct {
		expr, tags string
		code, text bool
	}{
		{"*", "", true, true}, {"*", "TagA", true, true}, {"", "TagA", true, true},
		{"TagA", "TagA", true, true}, {"TagA", "TagB", false, false}, {"TagA", "", false, false},
		{"TagA||TagB", "TagB", true, true},
		{"AaAa", "BBBB", true, false}, // the hashes are equal
		{"支付", "支付", true, true}, {"😀", "😀", true, true},
		{strings.Join(many, "||"), "tag77", true, true}, {strings.Join(many, "||"), "tag100", false, false},
		{strings.Join(many, "||"), "tag", false, false}, {strings.Join(many, "||"), "tag777", false, false},
	} {
		f := parse(t, c.expr)
		if got := f.MatchCode(mq.TagsCode(c.tags)); got != c.code {
			t.Errorf("%.20q, %q by hash: %v", c.expr, c.tags, got)
		}
		if got := f.Match(tagged(c.tags)); got != c.text {
			t.Errorf("%.20q, %q by text: %v", c.expr, c.tags, got)
		}
	}
	// Only the low 32 bits count: the high ones of a stored code may be anything.
	if f := parse(t, "TagA"); !f.MatchCode(mq.TagsCode("TagA") | 5<<32) {
		t.Error("the high bits of the code count")
	}
	var none *filter.Filter
	if !none.All() || !none.MatchCode(5) || !none.Match(tagged("x")) {
		t.Error("the nil filter does not pass everything")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	few, many := parse(t, "TagA||TagB"), parse(t, "a||b||c||d||e||f||g||h||i||j||TagA")
	tags := tagged("TagA")
	if n := testing.AllocsPerRun(100, func() {
		for _, f := range []*filter.Filter{few, many} {
			if !f.MatchCode(2598919) || !f.Match(tags) {
				t.Error("no match")
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzParse: what passes by text passes by hash, and every tag of an
// expression passes.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "*", "TagA||TagB", " a | b||", "支付||😀"} {
		f.Add(s, "TagA")
	}
	f.Fuzz(func(t *testing.T, expr, tags string) {
		if strings.Contains(tags, "\x02") {
			return // it ends a property
		}
		g, err := filter.Parse("", expr)
		if err != nil {
			if !errors.Is(err, mq.ErrSubscriptionParse) {
				t.Fatal(err)
			}
			return
		}
		if g.Match(tagged(tags)) && !g.MatchCode(mq.TagsCode(tags)) {
			t.Fatalf("%q wants %q by text and not by hash", expr, tags)
		}
		if !g.All() && g.Match(tagged(tags)) != slices.Contains(g.Tags(), tags) {
			t.Fatalf("%q: %q", g.Tags(), tags)
		}
		for _, tag := range g.Tags() {
			if strings.Contains(tag, "\x02") {
				continue
			}
			if !g.Match(tagged(tag)) || !g.MatchCode(mq.TagsCode(tag)) {
				t.Fatalf("%q does not want its own %q", expr, tag)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 5, 50} {
		tags := make([]string, n)
		for i := range tags {
			tags[i] = fmt.Sprintf("tag%d", i)
		}
		f := parse(b, strings.Join(tags, "||"))
		b.Run(fmt.Sprintf("tags=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.MatchCode(2598919)
			}
		})
	}
}
