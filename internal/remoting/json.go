package remoting

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/sundial-mq/sundial/internal/bin"
)

// The JSON header, as RocketMQ writes it: members in alphabetical order, no
// blanks, absent ones left out.
//
//	{"code":0,"extFields":{"queueId":"1"},"flag":1,"language":"JAVA","opaque":7,
//	 "remark":"why","serializeTypeCurrentRPC":"JSON","version":479}
//
// It is read in any order, with blanks, with unknown members, with names and
// numbers in or without quotes (single ones too). Field values are strings;
// numbers, booleans and nested values are taken as their text, null as absent.
//
// Both directions are written by hand because every request and every answer
// passes here: encoding/json takes 12 us to read what takes this about one.

// maxDepth bounds the nesting of values we only pass over.
const maxDepth = 64

func decodeJSON(h []byte, c *Command) error {
	if cap(c.scratch) > 1<<16 {
		c.scratch = nil // one giant header must not be paid for ever after
	}
	c.scratch = c.scratch[:0]
	r := jsonReader{b: h, c: c}
	r.object(false)
	if r.why == "" {
		if r.blanks(); r.i < len(r.b) {
			r.fail("bytes behind the header object")
		}
	}
	if r.why != "" {
		return malformed("JSON header: %s at byte %d of %d", r.why, r.i, len(h))
	}
	return nil
}

// jsonReader walks over b. The first thing wrong stays in why, and i moves to
// the end of b, so that every loop ends by itself.
type jsonReader struct {
	b   []byte
	i   int
	c   *Command
	why string
}

func (r *jsonReader) fail(why string) {
	if r.why == "" {
		r.why = why
		r.b = r.b[:r.i:r.i]
	}
}

// peek returns the next byte that is not blank, 0 at the end.
func (r *jsonReader) peek() byte {
	if r.i < len(r.b) && r.b[r.i] > ' ' {
		return r.b[r.i]
	}
	return r.blanks()
}

func (r *jsonReader) blanks() byte {
	for ; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case ' ', '\t', '\r', '\n':
		default:
			return r.b[r.i]
		}
	}
	return 0
}

// object reads the header object, or with fields the extFields object in it.
func (r *jsonReader) object(fields bool) {
	if r.peek() != '{' {
		r.fail("no object")
		return
	}
	r.i++
	if r.peek() == '}' {
		r.i++
		return
	}
	if fields {
		if r.usual() {
			return
		}
		if len(r.c.Fields) > 0 && r.peek() == '}' { // a comma too many, see below
			r.i++
			return
		}
	}
	for {
		key := r.name()
		if r.peek() != ':' {
			r.fail("no colon after a name")
			return
		}
		r.i++
		if fields {
			r.field(key)
		} else {
			r.member(key)
		}
		switch r.peek() {
		case ',':
			r.i++
			if r.peek() == '}' { // a comma too many is forgiven, as RocketMQ does
				r.i++
				return
			}
		case '}':
			r.i++
			return
		default:
			r.fail("neither comma nor closing brace after a value")
			return
		}
	}
}

// usual reads header fields as RocketMQ itself writes them, all in quotes and
// without blanks. It stops before the first member that is not so, which is left
// to object, and reports whether it got to the end. It does nothing that object
// does not do; it takes half the time.
func (r *jsonReader) usual() (end bool) {
	b, i := r.b, r.i
	fields := r.c.Fields
	for len(fields) < MaxFields {
		if i >= len(b) || b[i] != '"' {
			break
		}
		k := i + 1
		for k < len(b) && b[k] != '"' && b[k] != '\\' {
			k++
		}
		if k+2 >= len(b) || b[k] != '"' || b[k+1] != ':' || b[k+2] != '"' {
			break
		}
		at := k + 3
		v := find(b, at, '"', '\\')
		if v >= len(b) {
			break
		}
		value := b[at:v]
		if b[v] == '\\' {
			if value = r.escaped(at, v, '"'); r.why != "" {
				return true
			}
			v = r.i - 1 // the closing quote
		}
		if v+1 >= len(b) || b[v+1] != ',' && b[v+1] != '}' {
			break
		}
		fields = append(fields, Field{bin.String(b[i+1 : k]), bin.String(value)})
		i = v + 2
		if b[v+1] == '}' {
			end = true
			break
		}
	}
	r.c.Fields, r.i = fields, i
	return end
}

// member reads the value of a member of the header.
func (r *jsonReader) member(key []byte) {
	switch string(key) {
	case "code":
		r.c.Code = r.int32()
	case "flag":
		r.c.Flag = r.int32()
	case "opaque":
		r.c.Opaque = r.int32()
	case "version":
		r.c.Version = r.int32()
	case "language":
		v, _ := r.value()
		if len(v) > 0 && v[0] >= '0' && v[0] <= '9' {
			n, ok := parseInt32(v)
			if !ok || n < 0 || n >= int32(len(languageNames)) {
				n = int32(Other)
			}
			r.c.Language = Language(n)
		} else {
			r.c.Language = languageByName(bin.String(v))
		}
	case "remark":
		v, _ := r.value()
		r.c.Remark = bin.String(v)
	case "extFields":
		r.c.Fields = r.c.Fields[:0]
		if r.peek() == '{' {
			r.object(true)
		} else if _, null := r.value(); !null {
			r.fail("extFields is no object")
		}
	default:
		r.value()
	}
}

// field reads the value of a header field.
func (r *jsonReader) field(key []byte) {
	v, null := r.value()
	if null {
		return
	}
	if len(r.c.Fields) == MaxFields {
		r.fail("more than " + strconv.Itoa(MaxFields) + " header fields")
		return
	}
	r.c.Fields = append(r.c.Fields, Field{bin.String(key), bin.String(v)})
}

// name reads the name of a member.
func (r *jsonReader) name() []byte {
	switch c := r.peek(); {
	case c == '"':
		return r.quoted('"')
	case c == '\'':
		return r.quoted('\'')
	default:
		return r.bare()
	}
}

// value reads any value as text: what a string means, the letters of a number
// or boolean, the whole text of an object or array. null has no text.
func (r *jsonReader) value() (text []byte, null bool) {
	switch c := r.peek(); c {
	case '"', '\'':
		return r.quoted(c), false
	case '{', '[':
		return r.nested(), false
	}
	text = r.bare()
	if string(text) == "null" {
		return nil, true
	}
	return text, false
}

func (r *jsonReader) int32() int32 {
	v, null := r.value()
	if null {
		return 0
	}
	n, ok := parseInt32(v)
	if !ok {
		r.fail("not a number of 32 bits")
	}
	return n
}

func parseInt32(v []byte) (int32, bool) {
	neg := false
	if len(v) > 1 && v[0] == '-' {
		neg, v = true, v[1:]
	}
	if len(v) == 0 || len(v) > 10 {
		return 0, false
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return int32(n), n == int64(int32(n))
}

// bare reads letters without quotes: a number, a word, a name.
func (r *jsonReader) bare() []byte {
	at := r.i
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z',
			c == '-', c == '+', c == '.', c == '_', c == '$':
			r.i++
			continue
		}
		break
	}
	if at == r.i {
		r.fail("neither a name nor a value")
	}
	return r.b[at:r.i]
}

// nested passes over an object or array and returns its text. Only brackets
// and strings are looked at.
func (r *jsonReader) nested() []byte {
	at := r.i
	var open [maxDepth]byte
	depth := 0
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case '{', '[':
			if depth == maxDepth {
				r.fail("nested too deep")
				return nil
			}
			open[depth] = c + 2 // '{'+2 == '}', '['+2 == ']'
			depth++
		case '}', ']':
			if depth--; open[depth] != c {
				r.fail("brackets do not match")
				return nil
			}
			if depth == 0 {
				r.i++
				return r.b[at:r.i]
			}
		case '"', '\'':
			r.i++
			for r.i < len(r.b) && r.b[r.i] != c {
				if r.b[r.i] == '\\' {
					r.i++
				}
				r.i++
			}
			r.i = min(r.i, len(r.b))
		}
		if r.i < len(r.b) {
			r.i++
		}
	}
	r.fail("a bracket is not closed")
	return nil
}

// quoted reads a string, whose opening quote is next.
func (r *jsonReader) quoted(quote byte) []byte {
	r.i++
	at := r.i
	if at+1 < len(r.b) && r.b[at+1] == quote && r.b[at] != '\\' && r.b[at] != quote {
		r.i += 2 // one letter: what the names of a send header and half its values are
		return r.b[at : at+1 : at+1]
	}
	i := find(r.b, at, quote, '\\')
	if i < len(r.b) && r.b[i] == quote {
		r.i = i + 1
		return r.b[at:i:i]
	}
	return r.escaped(at, i, quote)
}

// escaped reads on in a string that began at at and whose first escape is at i.
// What it means goes to scratch: room for the rest of the header is made at
// once, so that this happens at most once a header.
func (r *jsonReader) escaped(at, i int, quote byte) []byte {
	if cap(r.c.scratch)-len(r.c.scratch) < len(r.b)-at {
		r.c.scratch = make([]byte, 0, len(r.b)-at)
	}
	s := r.c.scratch
	begin := len(s)
	s = append(s, r.b[at:i]...)
	for i < len(r.b) {
		if r.b[i] == quote {
			r.i = i + 1
			r.c.scratch = s
			return s[begin:len(s):len(s)]
		}
		// r.b[i] is a backslash.
		if i+1 >= len(r.b) {
			break
		}
		e := r.b[i+1]
		i += 2
		switch e {
		case 'u':
			u, ok := hex4(r.b, i)
			if !ok {
				r.i = i
				r.fail("bad \\u escape")
				return nil
			}
			i += 4
			if u >= 0xD800 && u < 0xDC00 && i+1 < len(r.b) && r.b[i] == '\\' && r.b[i+1] == 'u' {
				if low, ok := hex4(r.b, i+2); ok && low >= 0xDC00 && low < 0xE000 {
					u = (u-0xD800)<<10 + (low - 0xDC00) + 0x10000
					i += 6
				}
			}
			if u < utf8.RuneSelf {
				s = append(s, byte(u))
			} else {
				s = utf8.AppendRune(s, u) // half a surrogate pair becomes U+FFFD
			}
		case 'n':
			s = append(s, '\n')
		case 't':
			s = append(s, '\t')
		case 'r':
			s = append(s, '\r')
		case 'b':
			s = append(s, '\b')
		case 'f':
			s = append(s, '\f')
		case '"', '\'', '\\', '/':
			s = append(s, e)
		default:
			r.i = i - 2
			r.fail("unknown escape")
			return nil
		}
		next := find(r.b, i, quote, '\\')
		s = append(s, r.b[i:next]...)
		i = next
	}
	r.i = len(r.b)
	r.fail("a string is not closed")
	return nil
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var u rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// find returns the place of the first x or y in b from i on, len(b) if there
// is none. It looks at eight bytes at a time: v-1 borrows into the top bit of
// exactly the first byte that is zero.
func find(b []byte, i int, x, y byte) int {
	wx, wy := uint64(x)*eachByte, uint64(y)*eachByte
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		vx, vy := w^wx, w^wy
		if m := ((vx-eachByte)&^vx | (vy-eachByte)&^vy) & topBits; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(b); i++ {
		if b[i] == x || b[i] == y {
			return i
		}
	}
	return len(b)
}

func appendJSON(dst []byte, c *Command) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	// An answer has the object even without fields: Java clients look into that
	// of a send answer without asking whether it is there.
	if len(c.Fields) > 0 || c.IsResponse() {
		dst = append(dst, `,"extFields":{`...)
		for i := range c.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, c.Fields[i].Key)
			dst = append(dst, ':')
			dst = appendQuoted(dst, c.Fields[i].Value)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	dst = append(dst, `,"language":"`...)
	if int(c.Language) < len(languageNames) {
		dst = append(dst, languageNames[c.Language]...)
	} else {
		dst = append(dst, languageNames[Other]...)
	}
	dst = append(dst, `","opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != "" {
		dst = append(dst, `,"remark":`...)
		dst = appendQuoted(dst, c.Remark)
	}
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":`...)
	dst = strconv.AppendInt(dst, int64(c.Version), 10)
	return append(dst, '}')
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	b := bin.Bytes(s)
	from := 0
	for i := plain(b, 0); i < len(b); i = plain(b, from) {
		dst = append(dst, b[from:i]...)
		from = i + 1
		switch c := b[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, b[from:]...)
	return append(dst, '"')
}

// plain returns the place of the first byte of b from i on that must be escaped:
// a quote, a backslash, or one below the blank.
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^('"'*eachByte), w^('\\'*eachByte)
		if m := ((q-eachByte)&^q | (s-eachByte)&^s | (w-' '*eachByte)&^w) & topBits; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(b)
}
