package mq

import "unicode/utf8"

// JavaHash is Java's String.hashCode of s: a 31-polynomial over UTF-16 code
// units in wrapping 32-bit arithmetic. Invalid UTF-8 counts as U+FFFD, as in
// Java's decoder.
func JavaHash(s string) int32 {
	var h int32
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			continue
		}
		return javaHashWide(h, s[i:])
	}
	return h
}

func javaHashWide(h int32, s string) int32 {
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + int32(0xD800+r>>10)
			h = 31*h + int32(0xDC00+r&0x3FF)
			continue
		}
		h = 31*h + int32(r)
	}
	return h
}

// TagsCode is what a consume queue entry holds for a message with these tags:
// the sign-extended [JavaHash], 0 for no tags.
func TagsCode(tags string) int64 { return int64(JavaHash(tags)) }
