// Package filter decides which messages of a topic a consumer wants. It knows
// the expression of a subscription and nothing of who asks.
//
// A message passes in two steps: [Filter.MatchCode] looks at the hash in the
// consume queue, without touching the message, and lets some through that do not
// belong; [Filter.Match] looks at the properties. RocketMQ's broker does only the
// first for tags and leaves the second to its clients.
//
// There are two types of expressions. TAG is a list of tags. SQL92 is a condition
// on properties:
//
//	condition  = conjunction { OR conjunction }
//	conjunction = factor { AND factor }
//	factor     = { NOT } predicate
//	predicate  = operand { tail }
//	tail       = ( "=" | "<>" | "<" | "<=" | ">" | ">=" ) operand
//	           | IS [ NOT ] NULL
//	           | [ NOT ] BETWEEN operand AND operand
//	           | [ NOT ] IN "(" text { "," text } ")"
//	           | [ NOT ] ( CONTAINS | STARTSWITH | ENDSWITH ) text
//	operand    = number | text | TRUE | FALSE | NULL | property
//	           | ( "+" | "-" | NOT ) operand | "(" condition ")"
//
// Keywords may have any case, names of properties are letters of ASCII, digits,
// _ and $. Texts stand in single quotes, a quote in one is doubled. -- and /* */
// enclose comments. Logic has three values: what is said of a property that a
// message does not have, or of one that holds no number where a number is wanted,
// is neither true nor false, and the message passes only when the whole is true.
// CONTAINS and its kin are the exception, as in RocketMQ: of a missing property
// they are false, with NOT and without.
//
// An expression that cannot be read is an error with its place
// ([SyntaxError]), never a filter that passes everything. Length and depth are
// bounded, so no expression costs more than its length times the messages.
package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
)

// Types of expressions (ExpressionType).
const (
	TAG   = "TAG"
	SQL92 = "SQL92"
)

// MaxTags bounds the tags of one expression.
const MaxTags = 4096

// Filter is a parsed expression. It is immutable and safe for concurrent use.
// The nil Filter passes everything.
type Filter struct {
	tags  []string // sorted, without duplicates; empty: everything passes
	codes []int32  // sorted, without duplicates
	all   bool
	sql   *program // of SQL92
}

// Parse reads an expression. The empty type is TAG; a TAG expression is tags
// separated by ||, blanks around them not counting, or * or nothing for all
// messages. SQL92 is in the package comment. The error wraps [mq.ErrSubscriptionParse].
func Parse(exprType, expr string) (*Filter, error) {
	switch exprType {
	case "", TAG:
	case SQL92:
		sql, err := parseSQL(expr)
		if err != nil {
			return nil, err
		}
		return &Filter{sql: sql}, nil
	default:
		return nil, fmt.Errorf("%w: unknown expression type %.100q, use TAG or SQL92", mq.ErrSubscriptionParse, exprType)
	}
	if expr = trim(expr); expr == "" || expr == "*" {
		return &Filter{all: true}, nil
	}
	f := new(Filter)
	for tag := range strings.SplitSeq(expr, "||") {
		if tag = trim(tag); tag == "" {
			continue
		}
		if len(f.tags) == MaxTags {
			return nil, fmt.Errorf("%w: more than %d tags", mq.ErrSubscriptionParse, MaxTags)
		}
		f.tags = append(f.tags, tag)
		f.codes = append(f.codes, mq.JavaHash(tag))
	}
	if len(f.tags) == 0 {
		return nil, fmt.Errorf("%w: no tag in %.100q", mq.ErrSubscriptionParse, expr)
	}
	slices.Sort(f.tags)
	f.tags = slices.Compact(f.tags)
	slices.Sort(f.codes)
	f.codes = slices.Compact(f.codes)
	return f, nil
}

// trim takes off what Java's String.trim takes off.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// All reports whether every message passes.
func (f *Filter) All() bool { return f == nil || f.all }

// SQL reports whether the expression is of type SQL92, so that hashes of tags
// decide nothing.
func (f *Filter) SQL() bool { return f != nil && f.sql != nil }

// Tags are the tags of the expression, sorted; the caller must not change them.
func (f *Filter) Tags() []string { return f.tags }

// MatchCode reports whether a message whose consume queue entry has this tags
// code may be wanted. RocketMQ compares the low 32 bits.
func (f *Filter) MatchCode(tagsCode int64) bool {
	if f == nil || f.all || f.sql != nil {
		return true
	}
	code := int32(tagsCode)
	if len(f.codes) <= 8 {
		return slices.Contains(f.codes, code)
	}
	_, found := slices.BinarySearch(f.codes, code)
	return found
}

// Match reports whether a message with this block of properties is wanted. It
// does not allocate.
func (f *Filter) Match(props []byte) bool {
	switch {
	case f == nil || f.all:
		return true
	case f.sql != nil:
		return f.sql.match(props)
	}
	var tags [1][]byte
	tagsOnly.collect(props, tags[:])
	return f.matchTags(tags[0])
}

// tagsOnly is the program that knows the property TAGS.
var tagsOnly = &program{names: []string{mq.PropTags}}

// matchTags reports whether a message with this TAGS property is wanted; tags
// is empty for a message that has none.
func (f *Filter) matchTags(tags []byte) bool {
	if len(f.tags) <= 8 {
		for _, t := range f.tags {
			if t == string(tags) {
				return true
			}
		}
		return false
	}
	_, found := slices.BinarySearchFunc(f.tags, tags, func(t string, tags []byte) int { return -compareBytes(tags, t) })
	return found
}

func compareBytes(b []byte, s string) int {
	for i := range min(len(b), len(s)) {
		if b[i] != s[i] {
			return int(b[i]) - int(s[i])
		}
	}
	return len(b) - len(s)
}
