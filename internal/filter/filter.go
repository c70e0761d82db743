// Package filter decides which messages of a topic a consumer wants. It knows
// the expression of a subscription and nothing of who asks.
//
// A message passes in two steps: [Filter.MatchCode] looks at the hash in the
// consume queue, without touching the message, and lets some through that do not
// belong; [Filter.MatchTags] looks at the text. RocketMQ's broker does the first
// only and leaves the second to its clients.
//
// Expressions of type TAG are served. SQL92 is refused with an error that says
// so, never passed unfiltered.
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
}

// Parse reads an expression. The empty type is TAG; a TAG expression is tags
// separated by ||, blanks around them not counting, or * or nothing for all
// messages. The error wraps [mq.ErrSubscriptionParse].
func Parse(exprType, expr string) (*Filter, error) {
	switch exprType {
	case "", TAG:
	case SQL92:
		return nil, fmt.Errorf("%w: SQL92 expressions are not served yet, subscribe by tags (expression %.100q)", mq.ErrSubscriptionParse, expr)
	default:
		return nil, fmt.Errorf("%w: unknown expression type %.100q, use TAG", mq.ErrSubscriptionParse, exprType)
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

// Tags are the tags of the expression, sorted; the caller must not change them.
func (f *Filter) Tags() []string { return f.tags }

// MatchCode reports whether a message whose consume queue entry has this tags
// code may be wanted. RocketMQ compares the low 32 bits.
func (f *Filter) MatchCode(tagsCode int64) bool {
	if f == nil || f.all {
		return true
	}
	code := int32(tagsCode)
	if len(f.codes) <= 8 {
		return slices.Contains(f.codes, code)
	}
	_, found := slices.BinarySearch(f.codes, code)
	return found
}

// MatchTags reports whether a message with this TAGS property is wanted; tags
// is empty for a message that has none. It does not allocate.
func (f *Filter) MatchTags(tags []byte) bool {
	if f == nil || f.all {
		return true
	}
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
