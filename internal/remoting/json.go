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
		if !fields && r.usualMember() {
			continue
		}
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
	text := bin.String(b)
	fields := r.c.Fields
	for len(fields) < MaxFields {
		// The shortest field and what follows it is "a":"", so these are there or
		// the header is cut short.
		if i < 0 || i+7 > len(b) || b[i] != '"' {
			break
		}
		k := i + 2
		if b[k] != '"' || b[i+1] == '"' || b[i+1] == '\\' { // not one letter
			k = near(b, i+1)
		}
		if k+3 >= len(b) || b[k] != '"' || b[k+1] != ':' || b[k+2] != '"' {
			break
		}
		at := k + 3
		v := near(b, at)
		if v+1 >= len(b) {
			break
		}
		f := Field{text[i+1 : k], text[at:v]}
		if b[v] == '\\' {
			f.Value = bin.String(r.escaped(at, v, '"'))
			if r.why != "" {
				return true
			}
			if v = r.i - 1; v+1 >= len(b) { // the closing quote
				break
			}
		}
		next := b[v+1]
		if next != ',' && next != '}' {
			break
		}
		fields = append(fields, f)
		i = v + 2
		if next == '}' {
			end = true
			break
		}
	}
	r.c.Fields, r.i = fields, i
	return end
}

// usualMember reads a member of the header, and the comma behind it, if it is one
// that occurs in every header and is written as RocketMQ writes it. Otherwise it
// reads nothing, and object does.
func (r *jsonReader) usualMember() bool {
	b := r.b[r.i:]
	var to *int32
	size := 0
	switch {
	case len(b) < 12:
		return false
	case string(b[:7]) == `"code":`:
		to, size = &r.c.Code, 7
	case string(b[:7]) == `"flag":`:
		to, size = &r.c.Flag, 7
	case string(b[:9]) == `"opaque":`:
		to, size = &r.c.Opaque, 9
	case string(b[:12]) == `"language":"`:
		for _, l := range [...]struct {
			text string
			l    Language
		}{{`JAVA",`, Java}, {`GO",`, Go}} {
			if rest := b[12:]; len(rest) >= len(l.text) && string(rest[:len(l.text)]) == l.text {
				r.c.Language = l.l
				r.i += 12 + len(l.text)
				return true
			}
		}
		return false
	default:
		return false
	}
	n, i := int32(0), size
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + int32(b[i]-'0')
		i++
	}
	if d := i - size; d < 1 || d > 9 || i+1 >= len(b) || b[i] != ',' || b[i+1] != '"' {
		return false
	}
	*to = n
	r.i += i + 1
	return true
}

// near returns the place of the first quote or backslash in b from i on. Most
// names and values are short, many of one letter.
func near(b []byte, i int) int {
	if i+1 < len(b) && b[i+1] == '"' && b[i] != '"' && b[i] != '\\' {
		return i + 1
	}
	if i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		q, s := w^'"'*eachByte, w^'\\'*eachByte
		if m := ((q-eachByte)&^q | (s-eachByte)&^s) & topBits; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	return find(b, i, '"', '\\')
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
	// Few digits and what ends them: the usual case.
	n, i := int32(0), r.i
	for i < len(r.b) && r.b[i]-'0' <= 9 {
		n = n*10 + int32(r.b[i]-'0')
		i++
	}
	if d := i - r.i; d > 0 && d < 10 && i < len(r.b) && (r.b[i] == ',' || r.b[i] == '}') {
		r.i = i
		return n
	}
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
// once, so that this happens at most once a header, and what is read is never
// shorter than what it means.
func (r *jsonReader) escaped(at, i int, quote byte) []byte {
	b := r.b
	begin := len(r.c.scratch)
	if cap(r.c.scratch)-begin < len(b)-at {
		begin, r.c.scratch = 0, make([]byte, 0, len(b)-at)
	}
	s := r.c.scratch[:cap(r.c.scratch)]
	n := begin + copy(s[begin:], b[at:i])
	wq := uint64(quote) * eachByte
	for i < len(b) {
		if b[i] == quote {
			r.i = i + 1
			r.c.scratch = s[:n]
			return s[begin:n:n]
		}
		// b[i] is a backslash. The separators of properties come first.
		if i+6 <= len(b) && binary.BigEndian.Uint32(b[i:]) == 0x5C753030 && b[i+4] == '0' && b[i+5]-'0' <= 9 {
			s[n] = b[i+5] - '0'
			n++
			i += 6
		} else {
			size, wide, why := unescape(s[n:], b[i:])
			if why != "" {
				r.i = i
				r.fail(why)
				return nil
			}
			n += wide
			i += size
		}
		for i+8 <= len(b) && n+8 <= len(s) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(s[n:], w) // what is too much of it is written over
			vq, vs := w^wq, w^'\\'*eachByte
			if m := ((vq-eachByte)&^vq | (vs-eachByte)&^vs) & topBits; m != 0 {
				k := bits.TrailingZeros64(m) >> 3
				i, n = i+k, n+k
				break
			}
			i, n = i+8, n+8
		}
		for i < len(b) && b[i] != quote && b[i] != '\\' {
			s[n] = b[i]
			i, n = i+1, n+1
		}
	}
	r.i = len(b)
	r.fail("a string is not closed")
	return nil
}

// unescape writes what the escape at the beginning of b means to dst, which is no
// shorter than b. It returns the sizes of both.
func unescape(dst, b []byte) (size, wide int, why string) {
	if len(b) < 2 {
		return 0, 0, "a string is not closed"
	}
	switch e := b[1]; e {
	case 'u':
		u, ok := hex4(b, 2)
		if !ok {
			return 0, 0, "bad \\u escape"
		}
		size = 6
		if u >= 0xD800 && u < 0xDC00 && len(b) > 7 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := hex4(b, 8); ok && low >= 0xDC00 && low < 0xE000 {
				u = (u-0xD800)<<10 + (low - 0xDC00) + 0x10000
				size = 12
			}
		}
		return size, utf8.EncodeRune(dst, u), "" // half a surrogate pair becomes U+FFFD
	case 'n':
		dst[0] = '\n'
	case 't':
		dst[0] = '\t'
	case 'r':
		dst[0] = '\r'
	case 'b':
		dst[0] = '\b'
	case 'f':
		dst[0] = '\f'
	case '"', '\'', '\\', '/':
		dst[0] = e
	default:
		return 0, 0, "unknown escape"
	}
	return 2, 1, ""
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
