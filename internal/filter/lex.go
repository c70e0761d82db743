package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sundial-mq/sundial/internal/mq"
)

// SyntaxError says what is wrong with an SQL92 expression, and where. It wraps
// [mq.ErrSubscriptionParse].
type SyntaxError struct {
	Line, Column int    // from 1; the column in characters
	Excerpt      string // what is around the place, with ^ before the culprit
	Text         string
}

func (e *SyntaxError) Error() string {
	at := fmt.Sprintf("column %d", e.Column)
	if e.Line > 1 {
		at = fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	}
	return fmt.Sprintf("%v: SQL92, %s: %s, here: %s", mq.ErrSubscriptionParse, at, e.Text, e.Excerpt)
}

func (e *SyntaxError) Unwrap() error { return mq.ErrSubscriptionParse }

// excerptSide is how many bytes an excerpt shows on either side of the culprit.
const excerptSide = 30

func syntaxError(src string, at int, format string, args ...any) *SyntaxError {
	before := src[:at]
	start := strings.LastIndexByte(before, '\n') + 1
	from, to := max(0, at-excerptSide), min(len(src), at+excerptSide)
	for from > 0 && !utf8.RuneStart(src[from]) {
		from--
	}
	for to < len(src) && !utf8.RuneStart(src[to]) {
		to++
	}
	excerpt := src[from:at] + "^" + src[at:to]
	if from > 0 {
		excerpt = "..." + excerpt
	}
	if to < len(src) {
		excerpt += "..."
	}
	excerpt = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, excerpt)
	return &SyntaxError{
		Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:]) + 1,
		Excerpt: excerpt, Text: fmt.Sprintf(format, args...),
	}
}

// kind is the kind of a token.
type kind uint8

const (
	end     kind = iota
	word         // a name, not a keyword
	text         // 'text'
	number       // 12, 12L, 1.5e3
	symbol       // = <> < <= > >= ( ) , + -
	keyword      // in upper case in token.text
)

// keywords are RocketMQ's, in any case.
var keywords = map[string]bool{
	"NOT": true, "AND": true, "OR": true, "BETWEEN": true, "IN": true, "TRUE": true, "FALSE": true, "NULL": true, "IS": true,
	"CONTAINS": true, "STARTSWITH": true, "ENDSWITH": true,
}

const longestKeyword = len("STARTSWITH")

// token is a piece of an expression.
type token struct {
	kind kind
	at   int    // byte offset
	text string // as written; keywords in upper case, strings without quotes
}

func (t token) String() string {
	switch t.kind {
	case end:
		return "the end"
	case text:
		return "the text '" + cut(t.text) + "'"
	}
	return fmt.Sprintf("%q", cut(t.text))
}

// cut shortens what is shown of something long.
func cut(s string) string {
	const most = 24
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// lexer cuts an expression into tokens.
type lexer struct {
	src string
	at  int
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// peek is the byte at i, 0 behind the end.
func (l *lexer) peek(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	at := l.at
	if at == len(l.src) {
		return token{kind: end, at: at}, nil
	}
	switch c := l.src[at]; {
	case isLetter(c):
		for l.at < len(l.src) && (isLetter(l.src[l.at]) || isDigit(l.src[l.at])) {
			l.at++
		}
		name := l.src[at:l.at]
		if len(name) <= longestKeyword {
			if upper := strings.ToUpper(name); keywords[upper] {
				return token{keyword, at, upper}, nil
			}
		}
		return token{word, at, name}, nil
	case isDigit(c) || c == '.' && isDigit(l.peek(at+1)):
		l.number()
		return token{number, at, l.src[at:l.at]}, nil
	case c == '\'':
		return l.text()
	}
	return l.symbol()
}

// skip passes blanks and comments.
func (l *lexer) skip() error {
	for l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			l.at++
		case c == '-' && l.peek(l.at+1) == '-':
			n := strings.IndexAny(l.src[l.at:], "\r\n")
			if n < 0 {
				n = len(l.src) - l.at
			}
			l.at += n
		case c == '/' && l.peek(l.at+1) == '*':
			n := strings.Index(l.src[l.at+2:], "*/")
			if n < 0 {
				return syntaxError(l.src, l.at, "the comment has no end")
			}
			l.at += n + 4
		default:
			return nil
		}
	}
	return nil
}

// number passes digits, a fraction, an exponent, or the L of a whole number.
func (l *lexer) number() {
	digits := func() {
		for isDigit(l.peek(l.at)) {
			l.at++
		}
	}
	digits()
	whole := true
	if l.peek(l.at) == '.' {
		whole = false
		l.at++
		digits()
	}
	if e := l.peek(l.at); e == 'e' || e == 'E' {
		n := l.at + 1
		if s := l.peek(n); s == '+' || s == '-' {
			n++
		}
		if isDigit(l.peek(n)) {
			whole = false
			l.at = n
			digits()
		}
	}
	if e := l.peek(l.at); whole && (e == 'l' || e == 'L') {
		l.at++
	}
}

// text reads 'text', in which ” is one quote.
func (l *lexer) text() (token, error) {
	at := l.at
	for i := at + 1; ; i += 2 {
		n := strings.IndexByte(l.src[i:], '\'')
		if n < 0 {
			return token{}, syntaxError(l.src, at, "the text that begins here has no closing quote")
		}
		if i += n; l.peek(i+1) != '\'' {
			l.at = i + 1
			return token{text, at, strings.ReplaceAll(l.src[at+1:i], "''", "'")}, nil
		}
	}
}

func (l *lexer) symbol() (token, error) {
	at := l.at
	rest := l.src[at:]
	for _, s := range [...]string{"<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-"} {
		if strings.HasPrefix(rest, s) {
			if s == "=" && l.peek(at+1) == '=' {
				return token{}, syntaxError(l.src, at, `"==" is no operator, write "="`)
			}
			l.at += len(s)
			return token{symbol, at, s}, nil
		}
	}
	c, _ := utf8.DecodeRuneInString(rest)
	switch {
	case strings.HasPrefix(rest, "!="):
		return token{}, syntaxError(l.src, at, `"!=" is no operator, write "<>"`)
	case c == '"' || c == '`':
		return token{}, syntaxError(l.src, at, "texts stand in single quotes ('text'), names of properties in none")
	case c == '*' || c == '/' || c == '%':
		return token{}, syntaxError(l.src, at, "there is no arithmetic in filters")
	case c == '.':
		return token{}, syntaxError(l.src, at, "a name has no dot: filters reach properties whose names are letters of ASCII, digits, _ and $")
	case c >= utf8.RuneSelf && c != utf8.RuneError:
		return token{}, syntaxError(l.src, at, "%q has no meaning here: filters reach properties whose names are letters of ASCII, digits, _ and $; texts stand in single quotes", c)
	}
	return token{}, syntaxError(l.src, at, "%q has no meaning here", c)
}
