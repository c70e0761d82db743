package record_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/record"
)

// block writes properties the way tests read: = for 0x01 and ; for 0x02.
func block(s string) []byte { return []byte(strings.NewReplacer("=", "\x01", ";", "\x02").Replace(s)) }

func shown(b []byte) string {
	return strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(b))
}

// javaProperties is RocketMQ's parser, plainly: the reference.
func javaProperties(props string) map[string]string {
	m := map[string]string{}
	for pair := range strings.SplitSeq(props, "\x02") {
		if name, value, ok := strings.Cut(pair, "\x01"); ok && name != "" && value != "" {
			m[name] = value
		}
	}
	return m
}

func TestProperty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ props, want, why string }{
		{"", "", "nothing"},
		{"K=v;", "v", "one property"},
		{"K=v", "v", "no separator at the end, as clients before 5.0 write"},
		{"A=b;K=v;C=d;", "v", "in the middle"},
		{"K=v;K=w;", "w", "the later of two counts"},
		{"K=v;K=;", "v", "an empty value is no property"},
		{"K=;", "", "an empty value alone"},
		{"K", "", "a name without value"},
		{"K;K=v", "v", "a pair without 0x01 before"},
		{"=v;", "", "no name"},
		{"K=a=b;", "a=b", "the first 0x01 counts"},
		{"XK=v;", "", "another name that ends so"},
		{"KX=v;", "", "another name that begins so"},
		{"A=K=v;", "", "a value that looks like it"},
		{";;K=v;;", "v", "empty pairs"},
		{"K=v;A", "v", "garbage behind"},
	} {
		got, ok := record.Property(block(c.props), "K")
		if string(got) != string(block(c.want)) || ok != (c.want != "") {
			t.Errorf("%s (%s): %q, %v", c.why, c.props, got, ok)
		}
	}
}

func TestAppendProperty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ props, want string }{
		{"", "K=v;"},
		{"A=b;", "A=b;K=v;"},
		{"A=b", "A=b;K=v;"},
		{"K=w;", "K=w;K=v;"},
	} {
		if got := shown(record.AppendProperty(block(c.props), "K", "v")); got != c.want {
			t.Errorf("to %s: %s, want %s", c.props, got, c.want)
		}
	}
	if got := shown(record.AppendProperty(block("A=b"), "K", "")); got != "A=b" {
		t.Errorf("an empty value: %s", got)
	}
}

func TestSetAndRemoveProperty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ props, set, removed string }{
		{"", "K=v;", ""},
		{"A=b;", "A=b;K=v;", "A=b;"},
		{"A=b", "A=b;K=v;", "A=b"},
		{"K=w;A=b;K=x;", "A=b;K=v;", "A=b;"},
		{"K=w", "K=v;", ""},
		{"K=", "K=v;", ""},
		{"K;A=b", "K;A=b;K=v;", "K;A=b"},
	} {
		in := block(c.props)
		spare := append(in, "what stands behind in the same array"...)
		if got := shown(record.SetProperty(spare[:len(in)], "K", "v")); got != c.set {
			t.Errorf("set in %s: %s, want %s", c.props, got, c.set)
		}
		if got := shown(record.RemoveProperty(spare[:len(in)], "K")); got != c.removed {
			t.Errorf("removed from %s: %s, want %s", c.props, got, c.removed)
		}
		if string(spare) != string(block(c.props))+"what stands behind in the same array" {
			t.Errorf("%s was changed to %q", c.props, spare)
		}
	}
	if got := shown(record.SetProperty(block("K=v;A=b;"), "K", "")); got != "A=b;" {
		t.Errorf("set to nothing: %s", got)
	}
	if got := shown(record.AppendWithout(block("Z=1"), block("A=b;K=v;C=d;E"), "K", "C")); got != "Z=1;A=b;E;" {
		t.Errorf("AppendWithout: %s", got)
	}
}

// TestPropertiesLikeJava compares every function with a plain parser on
// blocks of every shape.
func TestPropertiesLikeJava(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkProperties(t, rapid.SliceOfN(rapid.SampledFrom([]byte("\x01\x02KA\x01\x02vK")), 0, 24).Draw(t, "props"))
	})
}

func checkProperties(t interface{ Fatalf(string, ...any) }, props []byte) {
	before := bytes.Clone(props)
	want := javaProperties(string(props))
	got := map[string]string{}
	for name, value := range record.EachProperty(props) {
		got[string(name)] = string(value)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("EachProperty of %q (-java +got):\n%s", props, d)
	}
	for _, name := range []string{"K", "A", "KA", "v", "missing"} {
		value, ok := record.Property(props, name)
		if w, has := want[name]; ok != has || string(value) != w {
			t.Fatalf("Property %s of %q: %q %v, want %q %v", name, props, value, ok, w, has)
		}
	}
	set := javaProperties(string(record.SetProperty(props, "K", "new")))
	removed := javaProperties(string(record.RemoveProperty(props, "K")))
	delete(want, "K")
	if d := cmp.Diff(want, removed); d != "" {
		t.Fatalf("RemoveProperty of %q (-want +got):\n%s", props, d)
	}
	want["K"] = "new"
	if d := cmp.Diff(want, set); d != "" {
		t.Fatalf("SetProperty of %q (-want +got):\n%s", props, d)
	}
	if !bytes.Equal(before, props) {
		t.Fatalf("%q became %q", before, props)
	}
}
