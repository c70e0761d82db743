package protocol

import (
	"fmt"
	"math"
	"strconv"

	"github.com/sundial-mq/sundial/internal/mq"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// parseInt reads a decimal number as Java does: an optional sign, then digits,
// within the range of 32 or 64 bits.
func parseInt(s string, min, max int64) (int64, bool) {
	i, neg := 0, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		i, neg = 1, s[0] == '-'
	}
	if i == len(s) || len(s)-i > 19 {
		return 0, false
	}
	var n uint64
	for ; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = 10*n + uint64(c) // 19 digits cannot overflow 64 bits
	}
	switch {
	case neg && n <= 1<<63:
		if v := -int64(n); v >= min {
			return v, true
		}
	case !neg && n <= math.MaxInt64:
		if v := int64(n); v <= max {
			return v, true
		}
	}
	return 0, false
}

// fieldInt32 reads a header field into dst.
func fieldInt32(name, value string, dst *int32) error {
	n, ok := parseInt(value, math.MinInt32, math.MaxInt32)
	if !ok {
		return badField(name, value, "a 32-bit number")
	}
	*dst = int32(n)
	return nil
}

func fieldInt64(name, value string, dst *int64) error {
	n, ok := parseInt(value, math.MinInt64, math.MaxInt64)
	if !ok {
		return badField(name, value, "a 64-bit number")
	}
	*dst = n
	return nil
}

// fieldBool reads a boolean as Java's parseBoolean: "true" in any case is true,
// all else is false.
func fieldBool(s string) bool {
	return len(s) == 4 && s[0]|0x20 == 't' && s[1]|0x20 == 'r' && s[2]|0x20 == 'u' && s[3]|0x20 == 'e'
}

func badField(name, value, want string) error {
	if len(value) > 64 {
		value = value[:64] + "..."
	}
	return fmt.Errorf("%w: field %s is %q, want %s", mq.ErrInvalid, name, value, want)
}

func missingField(name string) error {
	return fmt.Errorf("%w: missing field %s", mq.ErrInvalid, name)
}
