package record

import (
	"bytes"
	"iter"

	"github.com/sundial-mq/sundial/internal/mq"
)

// A property block is a row of pairs: name 0x01 value 0x02. The last 0x02 may be
// missing (clients before 5.0). As RocketMQ's parser reads it, the first 0x01
// of a pair ends the name, a pair without a name, a 0x01 or a value is no
// property, and of two properties with one name the later counts.

// Property returns the value of one property, aliasing props. It does not
// allocate. A name must not contain 0x01 or 0x02.
func Property(props []byte, name string) (value []byte, ok bool) {
	for len(props) > 0 {
		n := len(name)
		end := -1
		if len(props) > n && props[n] == mq.PropNameEnd && string(props[:n]) == name {
			end = bytes.IndexByte(props[n+1:], mq.PropValueEnd)
			if end < 0 {
				end = len(props)
			} else {
				end += n + 1
			}
			if end > n+1 && n > 0 {
				value, ok = props[n+1:end:end], true
			}
		} else if end = bytes.IndexByte(props, mq.PropValueEnd); end < 0 {
			break
		}
		props = props[min(end+1, len(props)):]
	}
	return value, ok
}

// EachProperty yields name and value of each property in the order of the
// block, duplicates included, aliasing props.
func EachProperty(props []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for pair := range pairs(props) {
			at := bytes.IndexByte(pair, mq.PropNameEnd)
			if at > 0 && at+1 < len(pair) && !yield(pair[:at:at], pair[at+1:len(pair):len(pair)]) {
				return
			}
		}
	}
}

// AppendProperty appends one property to the block dst, with the separator
// before it that older clients leave out. A value must not contain 0x02; an
// empty one appends nothing, because no reader would see it. An earlier
// property of that name stays where it is and no longer counts.
func AppendProperty(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	if n := len(dst); n > 0 && dst[n-1] != mq.PropValueEnd {
		dst = append(dst, mq.PropValueEnd)
	}
	dst = append(dst, name...)
	dst = append(dst, mq.PropNameEnd)
	dst = append(dst, value...)
	return append(dst, mq.PropValueEnd)
}

// AppendWithout appends the pairs of props, but for those with one of the
// names, to the block dst.
func AppendWithout(dst, props []byte, names ...string) []byte {
next:
	for pair := range pairs(props) {
		for _, name := range names {
			if hasName(pair, name) {
				continue next
			}
		}
		if n := len(dst); n > 0 && dst[n-1] != mq.PropValueEnd {
			dst = append(dst, mq.PropValueEnd)
		}
		dst = append(dst, pair...)
		dst = append(dst, mq.PropValueEnd)
	}
	return dst
}

// SetProperty returns a new block in which name has that value and stands last;
// an empty value removes it. props is not changed.
func SetProperty(props []byte, name, value string) []byte {
	dst := make([]byte, 0, len(props)+len(name)+len(value)+3)
	return AppendProperty(AppendWithout(dst, props, name), name, value)
}

// RemoveProperty returns props without the property: itself if it has none of
// that name, else a new block.
func RemoveProperty(props []byte, name string) []byte {
	for pair := range pairs(props) {
		if hasName(pair, name) {
			return AppendWithout(make([]byte, 0, len(props)), props, name)
		}
	}
	return props
}

// pairs yields what stands between the separators, but for empty pieces.
func pairs(props []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(props) > 0 {
			end := bytes.IndexByte(props, mq.PropValueEnd)
			rest := end + 1
			if end < 0 {
				end, rest = len(props), len(props)
			}
			if end > 0 && !yield(props[:end]) {
				return
			}
			props = props[rest:]
		}
	}
}

func hasName(pair []byte, name string) bool {
	return len(pair) > len(name) && pair[len(name)] == mq.PropNameEnd && string(pair[:len(name)]) == name
}
