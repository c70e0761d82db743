package javajson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

var ref = []byte("$ref")

// Standard rewrites src into compact JSON: bare keys and single quotes become
// double quotes, object keys become strings, control characters in strings are
// escaped, references are replaced by copies of what they point at. The error
// is a [*SyntaxError] or speaks of a reference.
func Standard(src []byte) ([]byte, error) {
	r := reader{src: src, dst: make([]byte, 0, len(src)+len(src)/8+16)}
	r.value(0, false)
	if r.err == nil && r.blank() {
		r.fail("text behind the end")
	}
	if r.err != nil {
		return nil, r.err
	}
	if r.refs {
		return resolve(r.dst, len(src))
	}
	return r.dst, nil
}

// reader walks src and appends to dst. It keeps its first error, after which all
// methods do nothing.
type reader struct {
	src  []byte
	at   int
	dst  []byte
	refs bool // there is a "$ref" key
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &SyntaxError{Offset: int64(r.at), Msg: fmt.Sprintf(format, args...)}
		r.at = len(r.src)
	}
}

// blank skips blanks and reports whether something follows.
func (r *reader) blank() bool {
	for ; r.at < len(r.src); r.at++ {
		switch r.src[r.at] {
		case ' ', '\t', '\r', '\n':
		default:
			return true
		}
	}
	return false
}

// peek is the next byte that is not blank, 0 at the end.
func (r *reader) peek() byte {
	if r.blank() {
		return r.src[r.at]
	}
	return 0
}

func (r *reader) value(depth int, inKey bool) {
	switch c := r.peek(); {
	case r.err != nil:
	case c == '{':
		r.object(depth+1, inKey)
	case c == '[':
		r.array(depth+1, inKey)
	case c == '"', c == '\'':
		r.text(c)
	case c == '-', '0' <= c && c <= '9':
		r.word(isNumberByte)
		if tok := r.lastWord(isNumberByte); r.err == nil && !json.Valid(tok) {
			r.fail("%.40q is not a number", tok)
		}
	case c == 't', c == 'f', c == 'n':
		r.word(isLetter)
		switch tok := r.lastWord(isLetter); string(tok) {
		case "true", "false", "null":
		default:
			r.fail("unknown word %.40q", tok)
		}
	case c == 0 && r.at == len(r.src):
		r.fail("it ends where a value belongs")
	default:
		r.fail("%q where a value belongs", c)
	}
}

func (r *reader) object(depth int, inKey bool) {
	if depth > MaxDepth {
		r.fail("nested deeper than %d", MaxDepth)
		return
	}
	r.at++
	r.dst = append(r.dst, '{')
	for n := 0; r.err == nil; n++ {
		c := r.peek()
		if c == '}' && n == 0 {
			break
		}
		if n > 0 {
			r.dst = append(r.dst, ',')
		}
		r.key(c, depth, inKey)
		if r.peek() != ':' {
			r.fail("a colon belongs behind a key")
			return
		}
		r.at++
		r.dst = append(r.dst, ':')
		r.value(depth, inKey)
		if c := r.peek(); c == '}' {
			break
		} else if c != ',' {
			r.fail("a comma or } belongs behind a member")
			return
		}
		r.at++
	}
	r.at++
	r.dst = append(r.dst, '}')
}

// key rewrites one key, whose first byte is c, into a string.
func (r *reader) key(c byte, depth int, inKey bool) {
	start := len(r.dst)
	switch {
	case c == '"', c == '\'':
		r.text(c)
		if string(r.dst[start:]) == `"$ref"` {
			r.refs = true
		}
	case c == '{' && inKey:
		// Every level would double the quotes inside.
		r.fail("an object as a key inside a key")
	case c == '{':
		r.object(depth+1, true)
		if r.err == nil {
			r.dst = quoted(r.dst, start)
		}
	case c == '-', isLetter(c), '0' <= c && c <= '9', c == '$':
		r.dst = append(r.dst, '"')
		r.word(isKeyByte)
		if string(r.dst[start:]) == `"$ref` {
			r.refs = true
		}
		r.dst = append(r.dst, '"')
	default:
		r.fail("%q where a key belongs", c)
	}
}

func (r *reader) array(depth int, inKey bool) {
	if depth > MaxDepth {
		r.fail("nested deeper than %d", MaxDepth)
		return
	}
	r.at++
	r.dst = append(r.dst, '[')
	for n := 0; r.err == nil; n++ {
		if r.peek() == ']' && n == 0 {
			break
		}
		if n > 0 {
			r.dst = append(r.dst, ',')
		}
		r.value(depth, inKey)
		if c := r.peek(); c == ']' {
			break
		} else if c != ',' {
			r.fail("a comma or ] belongs behind an element")
			return
		}
		r.at++
	}
	r.at++
	r.dst = append(r.dst, ']')
}

// word copies the bytes that are part of it.
func (r *reader) word(part func(byte) bool) {
	start := r.at
	for r.at < len(r.src) && part(r.src[r.at]) {
		r.at++
	}
	r.dst = append(r.dst, r.src[start:r.at]...)
}

// lastWord is what word has just copied.
func (r *reader) lastWord(part func(byte) bool) []byte {
	start := r.at
	for start > 0 && part(r.src[start-1]) {
		start--
	}
	return r.src[start:r.at]
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func isKeyByte(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '$' || c == '.'
}

// text rewrites a string in either kind of quotes.
func (r *reader) text(quote byte) {
	r.at++
	r.dst = append(r.dst, '"')
	for r.at < len(r.src) {
		c := r.src[r.at]
		switch {
		case c == quote:
			r.at++
			r.dst = append(r.dst, '"')
			return
		case c == '\\':
			r.escape()
		case c == '"':
			r.at++
			r.dst = append(r.dst, '\\', '"')
		case c < ' ':
			r.at++
			r.dst = appendControl(r.dst, c)
		default:
			r.at++
			r.dst = append(r.dst, c)
		}
	}
	r.fail("a string does not end")
}

// escape rewrites what a backslash introduces, fastjson's own kinds too.
func (r *reader) escape() {
	if r.at+1 >= len(r.src) {
		r.fail("a string does not end")
		return
	}
	c := r.src[r.at+1]
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.dst = append(r.dst, '\\', c)
		r.at += 2
	case '\'':
		r.dst = append(r.dst, c)
		r.at += 2
	case 'v':
		r.dst = appendControl(r.dst, '\v')
		r.at += 2
	case '0', '1', '2', '3', '4', '5', '6', '7':
		r.dst = appendControl(r.dst, c-'0')
		r.at += 2
	case 'u', 'x':
		n := 4
		if c == 'x' {
			n = 2
		}
		if r.at+2+n > len(r.src) || !isHex(r.src[r.at+2:r.at+2+n]) {
			r.fail("\\%c without %d hex digits", c, n)
			return
		}
		r.dst = append(r.dst, `\u00`[:6-n]...)
		r.dst = append(r.dst, r.src[r.at+2:r.at+2+n]...)
		r.at += 2 + n
	default:
		r.fail("unknown escape \\%c", c)
	}
}

func isHex(b []byte) bool {
	for _, c := range b {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

func appendControl(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// quoted turns dst[start:], which is JSON, into a string that holds it.
func quoted(dst []byte, start int) []byte {
	inner := bytes.Clone(dst[start:])
	dst = append(dst[:start], '"')
	for _, c := range inner {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
