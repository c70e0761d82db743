package mq

import "unicode/utf8"

// JavaHash is Java's String.hashCode of s: a 31-polynomial over UTF-16 code
// units in wrapping 32-bit arithmetic. A byte that is no UTF-8 counts as U+FFFD.
func JavaHash(s string) int32 { return JavaHashOn(0, s) }

// JavaHashOn is the hash of a text that begins with something whose hash is h
// and goes on with s, so that joined texts need not be joined.
func JavaHashOn[T ~string | ~[]byte](h int32, s T) int32 {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			return javaHashWide(h, s[i:])
		}
		h = 31*h + int32(c)
	}
	return h
}

func javaHashWide[T ~string | ~[]byte](h int32, s T) int32 {
	for len(s) > 0 {
		var b [utf8.UTFMax]byte
		r, n := utf8.DecodeRune(b[:copy(b[:], s)])
		s = s[n:]
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xD800 + r>>10
			h = 31*h + 0xDC00 + r&0x3FF
			continue
		}
		h = 31*h + r
	}
	return h
}

// TagsCode is what a consume queue entry holds for a message with these tags:
// the sign-extended [JavaHash], 0 for no tags.
func TagsCode(tags string) int64 { return int64(JavaHash(tags)) }
