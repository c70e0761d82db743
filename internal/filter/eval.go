package filter

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/sundial-mq/sundial/internal/bin"
	"github.com/sundial-mq/sundial/internal/mq"
)

// op is what a node does.
type op uint8

const (
	opLiteral op = iota
	opProperty
	opMinus
	opAnd // of kids
	opOr
	opNot
	opEqual
	opDiffers
	opLess
	opAtMost
	opMore
	opAtLeast
	opBetween // left, right to high
	opIn
	opContains
	opStarts
	opEnds
	opIsNull
)

// node is a part of a compiled expression.
type node struct {
	op                op
	not               bool // of the operators that have a NOT within
	at                int  // where it begins in the source
	slot              int  // of a property
	left, right, high *node
	kids              []*node
	val               value
	list              []string // of IN, when it is small
	set               map[string]bool
}

// smallList is how long a list of IN may be to be looked through.
const smallList = 8

// typ is what is known of a node's value before any message.
type typ uint8

const (
	typeNull typ = iota
	typeNumber
	typeText
	typeBool
	typeProperty // text, or nothing
)

func (n *node) typ() typ {
	switch n.op {
	case opProperty:
		return typeProperty
	case opMinus:
		return typeNumber
	case opLiteral:
		switch n.val.kind {
		case isInt, isFloat:
			return typeNumber
		case isText:
			return typeText
		case isNull:
			return typeNull
		}
	}
	return typeBool
}

// truth is SQL's: a comparison with nothing is neither true nor false.
type truth uint8

const (
	unknown truth = iota
	no
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) negated() truth {
	switch t {
	case yes:
		return no
	case no:
		return yes
	}
	return unknown
}

// value is an operand's.
type value struct {
	kind  valueKind
	truth truth
	int   int64
	float float64
	text  []byte
}

type valueKind uint8

const (
	isNull valueKind = iota
	isText
	isInt
	isFloat
	isBool
)

// program is a compiled expression. It is immutable.
type program struct {
	root  *node
	names []string
	slots map[string]int // of names
}

// slots are the values of a program's properties in one message; nil: it has
// none.
type slots [][]byte

// blanks keeps slots. Few programs have more names than fit.
var blanks = sync.Pool{New: func() any { s := make(slots, 0, 16); return &s }}

// match reports whether a message with this block of properties passes.
//
// Budget: one pass over the block, one over the expression, no allocation.
func (p *program) match(props []byte) bool {
	s := blanks.Get().(*slots)
	if cap(*s) < len(p.names) {
		*s = make(slots, len(p.names))
	}
	*s = (*s)[:len(p.names)]
	clear(*s)
	p.collect(props, *s)
	ok := p.root.truth(*s) == yes
	clear(*s) // it points into a message
	blanks.Put(s)
	return ok
}

// collect finds the properties that p asks for. As in RocketMQ's parser the last
// of a name counts, and pairs without name or value do not.
func (p *program) collect(props []byte, into slots) {
	for len(props) > 0 {
		pair := props
		if n := bytes.IndexByte(props, mq.PropValueEnd); n >= 0 {
			pair, props = props[:n], props[n+1:]
		} else {
			props = nil
		}
		n := bytes.IndexByte(pair, mq.PropNameEnd)
		if n <= 0 || n == len(pair)-1 {
			continue
		}
		if slot, ok := p.slot(pair[:n]); ok {
			into[slot] = pair[n+1:]
		}
	}
}

func (p *program) slot(name []byte) (int, bool) {
	if len(p.names) > smallList {
		slot, ok := p.slots[string(name)]
		return slot, ok
	}
	for i, n := range p.names {
		if n == string(name) {
			return i, true
		}
	}
	return 0, false
}

// truth evaluates a condition.
func (n *node) truth(s slots) truth {
	switch n.op {
	case opAnd:
		return n.chain(s, no)
	case opOr:
		return n.chain(s, yes)
	case opNot:
		return n.left.truth(s).negated()
	case opLiteral:
		return n.val.truth
	case opProperty:
		return n.value(s).bool()
	case opIsNull:
		return truthOf((n.left.value(s).kind == isNull) != n.not)
	}
	t := n.predicate(s)
	if n.not {
		return t.negated()
	}
	return t
}

// chain is AND, which no decides, or OR, which yes decides.
func (n *node) chain(s slots, decides truth) truth {
	t := decides.negated()
	for _, k := range n.kids {
		switch k.truth(s) {
		case decides:
			return decides
		case unknown:
			t = unknown
		}
	}
	return t
}

// predicate evaluates a comparison, without its NOT.
func (n *node) predicate(s slots) truth {
	left := n.left.value(s)
	switch n.op {
	case opEqual:
		return equal(left, n.right.value(s))
	case opDiffers:
		return equal(left, n.right.value(s)).negated()
	case opIn:
		return n.in(left)
	case opContains, opStarts, opEnds:
		return n.part(left)
	case opBetween:
		low := among(order(left, n.right.value(s)), same, greater)
		high := among(order(left, n.high.value(s)), same, less)
		switch {
		case low == no || high == no:
			return no
		case low == yes && high == yes:
			return yes
		}
		return unknown
	}
	o := order(left, n.right.value(s))
	switch n.op {
	case opLess:
		return among(o, less, less)
	case opAtMost:
		return among(o, less, same)
	case opMore:
		return among(o, greater, greater)
	default:
		return among(o, greater, same)
	}
}

func (n *node) in(left value) truth {
	if left.kind != isText {
		return unknown
	}
	if n.set != nil {
		return truthOf(n.set[string(left.text)])
	}
	for _, t := range n.list {
		if t == string(left.text) {
			return yes
		}
	}
	return no
}

// part is CONTAINS and its kin. Of nothing, and for the empty text, both they
// and their NOT are false, as in RocketMQ; n.not is undone by the caller.
func (n *node) part(left value) truth {
	sub := n.val.text
	if left.kind != isText || len(sub) == 0 {
		return truthOf(n.not)
	}
	switch n.op {
	case opContains:
		return truthOf(bytes.Contains(left.text, sub))
	case opStarts:
		return truthOf(bytes.HasPrefix(left.text, sub))
	}
	return truthOf(bytes.HasSuffix(left.text, sub))
}

// value evaluates an operand.
func (n *node) value(s slots) value {
	switch n.op {
	case opLiteral:
		return n.val
	case opProperty:
		if t := s[n.slot]; t != nil {
			return value{kind: isText, text: t}
		}
		return value{}
	case opMinus:
		v, ok := n.left.value(s).number()
		switch {
		case !ok:
			return value{}
		case v.kind == isInt && v.int != -v.int:
			v.int = -v.int
		case v.kind == isInt && v.int == 0:
		default:
			v = value{kind: isFloat, float: -v.asFloat()}
		}
		return v
	}
	if t := n.truth(s); t != unknown {
		return value{kind: isBool, truth: t}
	}
	return value{}
}

// bool is what a value says as a condition.
func (v value) bool() truth {
	switch v.kind {
	case isBool:
		return v.truth
	case isText:
		return truthOf(len(v.text) == 4 && bytes.EqualFold(v.text, []byte("true")))
	}
	return unknown
}

// equal compares two values: texts as texts; with a number the text is read as
// one, with a condition as TRUE or anything else.
func equal(a, b value) truth {
	switch {
	case a.kind == isNull || b.kind == isNull:
		return unknown
	case a.kind == isText && b.kind == isText:
		return truthOf(bytes.Equal(a.text, b.text))
	case a.kind == isBool || b.kind == isBool:
		return truthOf(a.bool() == b.bool())
	}
	switch order(a, b) {
	case incomparable:
		return unknown
	case same:
		return yes
	}
	return no
}

// relation is how two numbers stand.
type relation uint8

const (
	incomparable relation = iota // one is no number
	less
	same
	greater
)

func among(r, one, other relation) truth {
	if r == incomparable {
		return unknown
	}
	return truthOf(r == one || r == other)
}

// order compares two values as numbers.
func order(a, b value) relation {
	a, ok := a.number()
	if !ok {
		return incomparable
	}
	if b, ok = b.number(); !ok {
		return incomparable
	}
	if a.kind == isInt && b.kind == isInt {
		switch {
		case a.int < b.int:
			return less
		case a.int > b.int:
			return greater
		}
		return same
	}
	switch x, y := a.asFloat(), b.asFloat(); {
	case x < y:
		return less
	case x > y:
		return greater
	}
	return same
}

func (v value) asFloat() float64 {
	if v.kind == isInt {
		return float64(v.int)
	}
	return v.float
}

// number reads a value as one; a text as Java's Long and Double do, without
// their NaN, infinities and hexadecimals.
func (v value) number() (value, bool) {
	switch v.kind {
	case isInt, isFloat:
		return v, true
	case isText:
		return parseNumber(v.text)
	}
	return value{}, false
}

// parseNumber reads [+-]digits[.digits][e[+-]digits][dDfF] with blanks around
// it. Numbers that are too large for a kind become the next one, at last an
// infinity. Only those allocate.
func parseNumber(b []byte) (value, bool) {
	b = trimBytes(b)
	i, digits, minus := 0, 0, false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		minus = b[i] == '-'
		i++
	}
	var whole int64
	fits := true
	for ; i < len(b) && isDigit(b[i]); i++ {
		d := int64(b[i] - '0')
		digits++
		if whole < (-1<<63+d)/10 {
			fits = false
		} else {
			whole = whole*10 - d // downwards: there is one more below 0
		}
	}
	if i == len(b) && digits > 0 && fits && (minus || whole != -1<<63) {
		if !minus {
			whole = -whole
		}
		return value{kind: isInt, int: whole}, true
	}
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && isDigit(b[i]); i++ {
			digits++
		}
	}
	if digits == 0 {
		return value{}, false
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		from := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		if i == from {
			return value{}, false
		}
	}
	mantissa := b[:i]
	if i < len(b) && (b[i] == 'd' || b[i] == 'D' || b[i] == 'f' || b[i] == 'F') {
		i++
	}
	if i < len(b) {
		return value{}, false
	}
	f, _ := strconv.ParseFloat(bin.String(mantissa), 64) // out of range: the infinity
	return value{kind: isFloat, float: f}, true
}

func trimBytes(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}
