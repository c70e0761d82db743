package filter

import (
	"strconv"
	"strings"
)

// Limits of an SQL92 expression.
const (
	// MaxSQL is how many bytes it may have.
	MaxSQL = 64 << 10
	// MaxDepth is how deep parentheses, signs and comparisons of comparisons may
	// lie within each other.
	MaxDepth = 256
)

// parser reads an expression by descent. What it descends into is counted, so
// the stack is bounded; chains of AND and OR are read flat.
type parser struct {
	lex   lexer
	tok   token
	depth int
	names []string // of properties, in the order they come
	slots map[string]int
}

// parseSQL compiles an expression.
func parseSQL(src string) (*program, error) {
	if len(src) > MaxSQL {
		return nil, syntaxError(src, MaxSQL, "the expression has %d bytes, the limit is %d", len(src), MaxSQL)
	}
	p := &parser{lex: lexer{src: src}, slots: map[string]int{}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind == end {
		return nil, p.fail("the expression is empty; to get all messages subscribe to * of type TAG")
	}
	n, err := p.condition()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != end {
		return nil, p.unexpected("an operator, AND, OR or the end")
	}
	return &program{root: n, names: p.names, slots: p.slots}, nil
}

func (p *parser) fail(format string, args ...any) error {
	return syntaxError(p.lex.src, p.tok.at, format, args...)
}

func (p *parser) failAt(n *node, format string, args ...any) error {
	return syntaxError(p.lex.src, n.at, format, args...)
}

// unexpected complains about the token at hand.
func (p *parser) unexpected(want string) error {
	if p.tok.kind == word && strings.EqualFold(p.tok.text, "LIKE") {
		return p.fail("LIKE is not part of RocketMQ's SQL92, write CONTAINS, STARTSWITH or ENDSWITH")
	}
	return p.fail("%v is here where %s was expected", p.tok, want)
}

func (p *parser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

// take passes a keyword or symbol if it is the token at hand.
func (p *parser) take(s string) (bool, error) {
	if (p.tok.kind != keyword && p.tok.kind != symbol) || p.tok.text != s {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) need(s, where string) error {
	ok, err := p.take(s)
	if !ok && err == nil {
		err = p.unexpected(s + " " + where)
	}
	return err
}

// deeper counts a descent; the caller takes one off when it is back.
func (p *parser) deeper() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail("more than %d levels lie within each other", MaxDepth)
	}
	return nil
}

// condition reads what must be true or false: a whole expression.
func (p *parser) condition() (*node, error) { return p.boolean(p.either()) }

// either reads a OR b OR c. Like all that follow it may return a lone operand.
func (p *parser) either() (*node, error) { return p.chain("OR", opOr, p.both) }

// both reads a AND b AND c.
func (p *parser) both() (*node, error) { return p.chain("AND", opAnd, p.negated) }

func (p *parser) chain(joint string, op op, part func() (*node, error)) (*node, error) {
	first, err := part()
	if err != nil {
		return nil, err
	}
	ok, err := p.take(joint)
	if err != nil || !ok {
		return first, err
	}
	if first, err = p.boolean(first, nil); err != nil {
		return nil, err
	}
	all := &node{op: op, at: first.at, kids: []*node{first}}
	for ok {
		n, err := p.boolean(part())
		if err != nil {
			return nil, err
		}
		all.kids = append(all.kids, n)
		if ok, err = p.take(joint); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// negated reads NOT a, any number of times.
func (p *parser) negated() (*node, error) {
	at, nots := p.tok.at, 0
	for {
		ok, err := p.take("NOT")
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		nots++
	}
	if nots == 0 {
		return p.predicate()
	}
	n, err := p.boolean(p.predicate())
	if err != nil || nots%2 == 0 {
		return n, err
	}
	return &node{op: opNot, at: at, left: n}, nil
}

// boolean has a lone operand be a condition: a property is one whose text is
// true or not, a number or a text is none.
func (p *parser) boolean(n *node, err error) (*node, error) {
	if err != nil {
		return nil, err
	}
	switch n.typ() {
	case typeNumber, typeText:
		return nil, p.failAt(n, "this is no condition, it would have to be compared with something")
	}
	return n, nil
}

// predicate reads an operand and what is said of it; a = 1 = TRUE is (a = 1) =
// TRUE.
func (p *parser) predicate() (*node, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	n, err := p.operand()
	for err == nil {
		var next *node
		if next, err = p.tail(n); next == nil {
			break
		}
		n = next
		if err == nil {
			err = p.deeper()
		}
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

var orders = map[string]op{"=": opEqual, "<>": opDiffers, "<": opLess, "<=": opAtMost, ">": opMore, ">=": opAtLeast}

// tail reads one thing that is said of left; nil when there is none.
func (p *parser) tail(left *node) (*node, error) {
	if p.tok.kind == symbol {
		op, ok := orders[p.tok.text]
		if !ok {
			return nil, nil
		}
		return p.comparison(left, op)
	}
	if p.tok.kind != keyword {
		return nil, nil
	}
	if p.tok.text == "IS" {
		return p.isNull(left)
	}
	not, err := p.take("NOT")
	if err != nil {
		return nil, err
	}
	switch {
	case p.tok.kind == keyword && p.tok.text == "BETWEEN":
		return p.between(left, not)
	case p.tok.kind == keyword && p.tok.text == "IN":
		return p.in(left, not)
	case p.tok.kind == keyword && (p.tok.text == "CONTAINS" || p.tok.text == "STARTSWITH" || p.tok.text == "ENDSWITH"):
		return p.part(left, not)
	case not:
		return nil, p.unexpected("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
	}
	return nil, nil
}

func (p *parser) comparison(left *node, op op) (*node, error) {
	sign := p.tok.text
	if err := p.advance(); err != nil {
		return nil, err
	}
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	for _, n := range [2]*node{left, right} {
		if n.typ() == typeNull {
			return nil, p.failAt(n, "nothing is equal to NULL or compares with it, write IS NULL or IS NOT NULL")
		}
	}
	if op == opEqual || op == opDiffers {
		l, r := left.typ(), right.typ()
		if l == typeBool && (r == typeNumber || r == typeText) || r == typeBool && (l == typeNumber || l == typeText) {
			return nil, p.failAt(right, "a condition can only be compared with TRUE, FALSE, another one or a property")
		}
	} else {
		for _, n := range [2]*node{left, right} {
			if err := p.ordered(n, sign); err != nil {
				return nil, err
			}
		}
	}
	return &node{op: op, at: left.at, left: left, right: right}, nil
}

// ordered makes sure that n may be greater or less than something.
func (p *parser) ordered(n *node, sign string) error {
	switch n.typ() {
	case typeNumber, typeProperty:
		return nil
	case typeNull:
		return p.failAt(n, "nothing compares with NULL")
	}
	return p.failAt(n, "%s orders numbers only, and properties that hold numbers", sign)
}

func (p *parser) isNull(left *node) (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	not, err := p.take("NOT")
	if err != nil {
		return nil, err
	}
	if err := p.need("NULL", "after IS"); err != nil {
		return nil, err
	}
	return &node{op: opIsNull, at: left.at, left: left, not: not}, nil
}

func (p *parser) between(left *node, not bool) (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if err := p.need("AND", "between the bounds of BETWEEN"); err != nil {
		return nil, err
	}
	high, err := p.operand()
	if err != nil {
		return nil, err
	}
	for _, n := range [3]*node{left, low, high} {
		if err := p.ordered(n, "BETWEEN"); err != nil {
			return nil, err
		}
	}
	if low.op == opLiteral && high.op == opLiteral && order(low.val, high.val) == greater {
		return nil, p.failAt(low, "the lower bound is above the upper one")
	}
	return &node{op: opBetween, at: left.at, left: left, right: low, high: high, not: not}, nil
}

func (p *parser) in(left *node, not bool) (*node, error) {
	if left.typ() != typeProperty {
		return nil, p.failAt(left, "only a property can be IN a list")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.need("(", "after IN"); err != nil {
		return nil, err
	}
	n := &node{op: opIn, at: left.at, left: left, not: not}
	for {
		if p.tok.kind != text {
			return nil, p.unexpected("a text in single quotes")
		}
		n.list = append(n.list, p.tok.text)
		if err := p.advance(); err != nil {
			return nil, err
		}
		more, err := p.take(",")
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if err := p.need(")", "or , in the list of IN"); err != nil {
		return nil, err
	}
	if len(n.list) > smallList {
		n.set = make(map[string]bool, len(n.list))
		for _, s := range n.list {
			n.set[s] = true
		}
		n.list = nil
	}
	return n, nil
}

// part reads CONTAINS, STARTSWITH and ENDSWITH.
func (p *parser) part(left *node, not bool) (*node, error) {
	if t := left.typ(); t != typeProperty && t != typeText {
		return nil, p.failAt(left, "%s wants a property before it", p.tok.text)
	}
	n := &node{op: map[string]op{"CONTAINS": opContains, "STARTSWITH": opStarts, "ENDSWITH": opEnds}[p.tok.text], at: left.at, left: left, not: not}
	name := p.tok.text
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != text {
		return nil, p.unexpected("a text in single quotes after " + name)
	}
	n.val = value{kind: isText, text: []byte(p.tok.text)}
	return n, p.advance()
}

// operand reads a literal, a property, or something in parentheses, with signs
// or NOT before it.
func (p *parser) operand() (*node, error) {
	depth := p.depth
	defer func() { p.depth = depth }()
	if err := p.deeper(); err != nil {
		return nil, err
	}
	t := p.tok
	switch t.kind {
	case number:
		return p.number(false)
	case text:
		return &node{op: opLiteral, at: t.at, val: value{kind: isText, text: []byte(t.text)}}, p.advance()
	case word:
		slot, ok := p.slots[t.text]
		if !ok {
			slot = len(p.names)
			p.slots[t.text] = slot
			p.names = append(p.names, t.text)
		}
		return &node{op: opProperty, at: t.at, slot: slot}, p.advance()
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	switch t.text {
	case "TRUE":
		return &node{op: opLiteral, at: t.at, val: value{kind: isBool, truth: yes}}, nil
	case "FALSE":
		return &node{op: opLiteral, at: t.at, val: value{kind: isBool, truth: no}}, nil
	case "NULL":
		return &node{op: opLiteral, at: t.at}, nil
	case "(":
		n, err := p.either()
		if err != nil {
			return nil, err
		}
		return n, p.need(")", "for the ( before")
	case "NOT":
		n, err := p.boolean(p.operand())
		if err != nil {
			return nil, err
		}
		return &node{op: opNot, at: t.at, left: n}, nil
	case "+", "-":
		return p.signed(t)
	}
	p.tok = t
	return nil, p.unexpected("a property, a value or (")
}

// signed reads what comes after a sign.
func (p *parser) signed(sign token) (*node, error) {
	minus := sign.text == "-"
	if minus && p.tok.kind == number {
		n, err := p.number(true)
		if n != nil {
			n.at = sign.at
		}
		return n, err
	}
	n, err := p.operand()
	if err != nil {
		return nil, err
	}
	if t := n.typ(); t != typeNumber && t != typeProperty {
		return nil, p.failAt(n, "a sign wants a number or a property behind it")
	}
	if minus {
		n = &node{op: opMinus, at: sign.at, left: n}
	}
	return n, nil
}

// number reads a number; a minus before it belongs to it, so that the least
// whole number can be written.
func (p *parser) number(minus bool) (*node, error) {
	src := p.tok.text
	if minus {
		src = "-" + src
	}
	n := &node{op: opLiteral, at: p.tok.at}
	if strings.ContainsAny(src, ".eE") {
		f, err := strconv.ParseFloat(src, 64)
		if err != nil {
			return nil, p.fail("the number %s does not fit into a 64-bit floating point number", cut(src))
		}
		n.val = value{kind: isFloat, float: f}
	} else {
		i, err := strconv.ParseInt(strings.TrimRight(src, "lL"), 10, 64)
		if err != nil {
			return nil, p.fail("the whole number %s does not fit into 64 bits, write it with a decimal point", cut(src))
		}
		n.val = value{kind: isInt, int: i}
	}
	return n, p.advance()
}
