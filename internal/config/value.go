package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// check reads a value as the key's type says. The result is a bool, int64,
// float64, string, []string or []int.
func (k *Key) check(text string) (any, error) {
	switch k.Type {
	case Bool:
		switch strings.ToLower(text) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	case Int32, Int64, Port:
		low, high := k.bounds()
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil && n >= low && n <= high {
			return n, nil
		}
	case Float:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f, nil
		}
	case Text:
		return text, nil
	case TextFull:
		if text != "" {
			return text, nil
		}
	case Choice:
		if slices.Contains(k.Values, text) {
			return text, nil
		}
	case Words:
		words := list(text, ",")
		if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(k.Values, w) }) {
			return words, nil
		}
	case Hours:
		var hours []int
		for _, part := range list(text, ";") {
			h, err := strconv.Atoi(part)
			if err != nil || h < 0 || h > 23 {
				return nil, errors.New("want " + k.Wants())
			}
			hours = append(hours, h)
		}
		if len(hours) > 0 {
			return hours, nil
		}
	case Path, Paths:
		paths := list(text, ",")
		if k.Type == Path {
			paths = []string{text}
		}
		for _, p := range paths {
			if strings.HasPrefix(p, "~") {
				return nil, errors.New("a leading ~ is for the shell to expand, not for RocketMQ nor Sundial: write the whole path")
			}
		}
		if k.Type == Paths {
			return paths, nil
		}
		if text != "" {
			return text, nil
		}
	case Address:
		if _, err := netip.ParseAddr(text); err == nil {
			return text, nil
		}
	case Peers:
		peers := list(text, ";")
		for _, p := range peers {
			host, port, err := net.SplitHostPort(p)
			n, nerr := strconv.ParseUint(port, 10, 16)
			if err != nil || nerr != nil || n == 0 || host == "" {
				return nil, fmt.Errorf("%q is not host:port; want %s", p, k.Wants())
			}
		}
		return peers, nil
	case Levels:
		if level := badLevel(text); level == "" {
			return text, nil
		} else if text != "" {
			return nil, fmt.Errorf("%q is not a delay; want %s", level, k.Wants())
		}
	}
	return nil, errors.New("want " + k.Wants())
}

// canonical is the one spelling of a value that was checked.
func (k *Key) canonical(text string) string {
	switch k.Type {
	case Bool:
		return strings.ToLower(text)
	case Int32, Int64, Port:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return text
}

func (k *Key) bounds() (low, high int64) {
	low, high = k.Min, k.Max
	if k.Type == Port {
		return low, 65535
	}
	if low == 0 && high == 0 && k.Use != Used { // RocketMQ says only the type
		low, high = -1<<31, maxInt32
		if k.Type == Int64 {
			low, high = -1<<63, maxInt64
		}
	}
	return low, high
}

// Wants is what a value must be, in words.
func (k *Key) Wants() string {
	switch k.Type {
	case Bool:
		return "true or false"
	case Int32, Int64, Port:
		low, high := k.bounds()
		unit := ""
		if k.Unit != "" {
			unit = " (" + k.Unit + ")"
		}
		switch {
		case low == high:
			return strconv.FormatInt(low, 10)
		case high == anyTime || high == maxInt64 || high == maxInt32:
			if low == -1<<31 || low == -1<<63 {
				return "a whole number"
			}
			return fmt.Sprintf("a whole number from %d%s", low, unit)
		}
		return fmt.Sprintf("a whole number from %d to %d%s", low, high, unit)
	case Float:
		return "a number"
	case Text:
		return "text"
	case TextFull:
		return "text that is not empty"
	case Choice:
		return strings.Join(k.Values, " or ")
	case Words:
		return "some of " + strings.Join(k.Values, ", ") + ", separated by commas"
	case Hours:
		return "hours from 0 to 23, separated by semicolons"
	case Path:
		return "a directory"
	case Paths:
		return "directories, separated by commas"
	case Address:
		return "an IP address"
	case Peers:
		return "host:port, several separated by semicolons"
	case Levels:
		return "numbers with s, m, h or d, separated by blanks"
	}
	panic("BUG: a key of unknown type")
}

// list cuts text at the separator and drops what is empty.
func list(text, separator string) (out []string) {
	for part := range strings.SplitSeq(text, separator) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// badLevel is the first word of a level table that is no delay; all of the text
// when there is no word.
func badLevel(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return text + " "
	}
	for _, w := range words {
		number, unit := w[:len(w)-1], w[len(w)-1]
		n, err := strconv.ParseUint(number, 10, 63)
		if err != nil || n == 0 || n > anyTime || !strings.ContainsRune("smhd", rune(unit)) || number[0] == '+' {
			return w
		}
	}
	return ""
}

// store puts a checked value into a field of Settings.
func store(field any, unit string, value any) {
	switch f := field.(type) {
	case *bool:
		*f = value.(bool)
	case *int:
		*f = int(value.(int64))
	case *int32:
		*f = int32(value.(int64))
	case *int64:
		*f = value.(int64)
	case *time.Duration:
		*f = time.Duration(value.(int64)) * map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "h": time.Hour}[unit]
	case *string:
		*f = value.(string)
	case *[]string:
		*f = value.([]string)
	case *[]int:
		*f = value.([]int)
	default:
		panic(fmt.Sprintf("BUG: a setting of type %T", field))
	}
}
