package filter_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sundial-mq/sundial/internal/filter"
)

// The naive evaluator: an expression is its text and a function from properties
// to true, false or nil.
type message map[string]string

type condition struct {
	text string
	eval func(message) any // bool or nil
}

type operand struct {
	text string
	eval func(message) any // string, float64, bool or nil
	kind string            // property, number, text
}

func naiveNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil
	}
	return 0, false
}

func drawProperty(t *rapid.T) operand {
	name := rapid.SampledFrom([]string{"a", "b", "TAGS", "_x$1", "none"}).Draw(t, "name")
	return operand{name, func(m message) any {
		if v, ok := m[name]; ok {
			return v
		}
		return nil
	}, "property"}
}

func drawNumber(t *rapid.T) operand {
	n := rapid.IntRange(-3, 12).Draw(t, "number")
	f := float64(n)
	text := strconv.Itoa(n)
	if rapid.Bool().Draw(t, "fraction") {
		f += 0.5
		text = strconv.FormatFloat(f, 'f', 2, 64)
	}
	return operand{text, func(message) any { return f }, "number"}
}

var texts = []string{"x", "it's", "1", "10", "2.5", "true", "xx", "价"}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func drawText(t *rapid.T) operand {
	s := rapid.SampledFrom(texts).Draw(t, "text")
	return operand{quoted(s), func(message) any { return s }, "text"}
}

func drawOperand(t *rapid.T, withText bool) operand {
	n := 2
	if withText {
		n = 3
	}
	switch rapid.IntRange(1, n).Draw(t, "operand") {
	case 1:
		return drawProperty(t)
	case 2:
		return drawNumber(t)
	}
	return drawText(t)
}

func naiveEqual(a, b any) any {
	if a == nil || b == nil {
		return nil
	}
	s, ok := a.(string)
	u, okToo := b.(string)
	if ok && okToo {
		return s == u
	}
	x, ok := naiveNumber(a)
	y, okToo := naiveNumber(b)
	if !ok || !okToo {
		return nil
	}
	return x == y
}

func naiveOrder(sign string, a, b any) any {
	x, ok := naiveNumber(a)
	y, okToo := naiveNumber(b)
	if !ok || !okToo {
		return nil
	}
	return map[string]bool{"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[sign]
}

func naiveNot(v any) any {
	if v == nil {
		return nil
	}
	return !v.(bool)
}

// naiveAll is AND, and with decides true OR.
func naiveAll(decides bool, vs ...any) any {
	if slices.Contains(vs, any(decides)) {
		return decides
	}
	if slices.Contains(vs, nil) {
		return nil
	}
	return !decides
}

func drawLeaf(t *rapid.T) condition {
	word := rapid.SampledFrom([]string{" ", "\n", " /* or */ "}).Draw(t, "blank")
	not := rapid.Bool().Draw(t, "not")
	maybe, turn := "", func(v any) any { return v }
	if not {
		maybe, turn = " NOT", naiveNot
	}
	switch rapid.SampledFrom([]string{"compare", "order", "between", "in", "part", "null", "literal", "bare"}).Draw(t, "leaf") {
	case "compare":
		l, r := drawOperand(t, true), drawOperand(t, true)
		if not {
			return condition{l.text + word + "<>" + word + r.text, func(m message) any { return naiveNot(naiveEqual(l.eval(m), r.eval(m))) }}
		}
		return condition{l.text + "=" + r.text, func(m message) any { return naiveEqual(l.eval(m), r.eval(m)) }}
	case "order":
		l, r := drawOperand(t, false), drawOperand(t, false)
		sign := rapid.SampledFrom([]string{"<", "<=", ">", ">="}).Draw(t, "sign")
		return condition{l.text + sign + r.text, func(m message) any { return naiveOrder(sign, l.eval(m), r.eval(m)) }}
	case "between":
		l, lo, hi := drawOperand(t, false), drawProperty(t), drawOperand(t, false)
		return condition{l.text + maybe + word + "between " + lo.text + " AND " + hi.text, func(m message) any {
			v := l.eval(m)
			return turn(naiveAll(false, naiveOrder(">=", v, lo.eval(m)), naiveOrder("<=", v, hi.eval(m))))
		}}
	case "in":
		l := drawProperty(t)
		list := rapid.SliceOfN(rapid.SampledFrom(texts), 1, 12).Draw(t, "list")
		var all []string
		for _, s := range list {
			all = append(all, quoted(s))
		}
		return condition{l.text + maybe + word + "In(" + strings.Join(all, " , ") + ")", func(m message) any {
			v, ok := l.eval(m).(string)
			if !ok {
				return nil
			}
			return turn(slices.Contains(list, v))
		}}
	case "part":
		l := drawProperty(t)
		sub := rapid.SampledFrom(texts).Draw(t, "sub")
		name := rapid.SampledFrom([]string{"CONTAINS", "startsWith", "ENDSWITH"}).Draw(t, "part")
		find := map[string]func(string, string) bool{"CONTAINS": strings.Contains, "startsWith": strings.HasPrefix, "ENDSWITH": strings.HasSuffix}[name]
		return condition{l.text + maybe + word + name + word + quoted(sub), func(m message) any {
			v, ok := l.eval(m).(string)
			return ok && find(v, sub) != not
		}}
	case "null":
		l := drawOperand(t, true)
		return condition{l.text + " IS" + maybe + " null", func(m message) any { return (l.eval(m) == nil) != not }}
	case "literal":
		return rapid.SampledFrom([]condition{
			{"TRUE", func(message) any { return true }}, {"False", func(message) any { return false }}, {"NULL", func(message) any { return nil }},
		}).Draw(t, "literal")
	}
	p := drawProperty(t)
	return condition{p.text, func(m message) any {
		v, ok := p.eval(m).(string)
		if !ok {
			return nil
		}
		return strings.EqualFold(v, "true")
	}}
}

func drawCondition(t *rapid.T, depth int) condition {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "stop") == 0 {
		return drawLeaf(t)
	}
	switch rapid.SampledFrom([]string{"and", "or", "not", "equal"}).Draw(t, "join") {
	case "and":
		a, b := drawCondition(t, depth-1), drawCondition(t, depth-1)
		return condition{"(" + a.text + " and " + b.text + ")", func(m message) any { return naiveAll(false, a.eval(m), b.eval(m)) }}
	case "or":
		a, b, c := drawCondition(t, depth-1), drawCondition(t, depth-1), drawLeaf(t)
		return condition{"(" + a.text + " OR " + b.text + " OR " + c.text + ")", func(m message) any { return naiveAll(true, a.eval(m), b.eval(m), c.eval(m)) }}
	case "not":
		a := drawCondition(t, depth-1)
		return condition{"(NOT " + a.text + ")", func(m message) any { return naiveNot(a.eval(m)) }}
	}
	a, b := drawLeaf(t), rapid.Bool().Draw(t, "bool")
	return condition{"((" + a.text + " AND TRUE) = " + fmt.Sprint(b) + ")", func(m message) any {
		if v := a.eval(m); v != nil {
			return v.(bool) == b
		}
		return nil
	}}
}

func TestSQLAgainstTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCondition(t, 4)
		f, err := filter.Parse(filter.SQL92, c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		for range 5 {
			m := message{}
			for _, name := range []string{"a", "b", "TAGS", "_x$1", "other"} {
				if rapid.Bool().Draw(t, "has") {
					m[name] = rapid.SampledFrom(append([]string{"-1", "3", " 2.5 ", "11"}, texts...)).Draw(t, "value")
				}
			}
			var props []byte
			for _, name := range slices.Sorted(maps.Keys(m)) {
				props = fmt.Appendf(props, "%s\x01%s\x02", name, m[name])
			}
			if got, want := f.Match(props), c.eval(m) == true; got != want {
				t.Fatalf("%s of %q: %v, want %v", c.text, m, got, want)
			}
		}
	})
}
