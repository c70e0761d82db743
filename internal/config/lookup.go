package config

import (
	"fmt"
	"slices"
	"strings"
)

// Keys are all keys of the table: used, then refused, then accepted ones.
func Keys() []Key { return slices.Clone(keys) }

var byName = func() map[string]*Key {
	m := make(map[string]*Key, len(keys))
	for i := range keys {
		m[keys[i].Name] = &keys[i]
	}
	return m
}()

func lookup(name string) *Key { return byName[name] }

// unknown says that there is no such key, and which one was meant.
func unknown(name string) error {
	near := nearest(name)
	if strings.EqualFold(name, near) {
		return fmt.Errorf("unknown key %q: it is written %s", name, near)
	}
	if 2*distance(strings.ToLower(name), strings.ToLower(near)) > len(name) {
		return fmt.Errorf("unknown key %q, which is like no key of RocketMQ's or Sundial's (docs/CONFIG.md lists all)", name)
	}
	return fmt.Errorf("unknown key %q: the nearest known key is %s", name, near)
}

// nearest is the known key with the fewest typing errors to name. Keys that are
// used win over others, then the alphabet decides.
func nearest(name string) string {
	best, bestAt := "", 1<<30
	lower := strings.ToLower(name)
	if len(lower) > 200 {
		lower = lower[:200]
	}
	for i := range keys {
		k := &keys[i]
		apart := len(lower) - len(k.Name)
		if 4*max(apart, -apart) > bestAt {
			continue // so many letters to add or drop alone
		}
		at := 4*distance(lower, strings.ToLower(k.Name)) + int(k.Use)
		if at < bestAt || at == bestAt && k.Name < best {
			best, bestAt = k.Name, at
		}
	}
	return best
}

// distance is the number of letters to add, drop, change or swap with the next
// one that make b of a.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Explain tells everything about a key, or which one was meant.
func Explain(name string) (string, error) {
	k := lookup(name)
	if k == nil {
		return "", unknown(name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", k.Name)
	switch k.Use {
	case Used:
		fmt.Fprintf(&b, "  %s\n", k.Doc)
		fmt.Fprintf(&b, "  value:   %s\n", k.Wants())
		if k.Default != "" {
			fmt.Fprintf(&b, "  default: %s\n", k.Default)
		}
		switch k.Java {
		case "":
			b.WriteString("  a key of RocketMQ's\n")
		case "-":
			b.WriteString("  RocketMQ has no such key\n")
		default:
			fmt.Fprintf(&b, "  a key of RocketMQ's, whose default is %s\n", k.Java)
		}
	case Refused:
		allowed := k.Default
		if allowed == "" {
			allowed = "an empty one"
		}
		fmt.Fprintf(&b, "  A key of RocketMQ's. The only value that Sundial serves is %s: %s.\n", allowed, k.Doc)
	case Accepted:
		fmt.Fprintf(&b, "  A key of RocketMQ's that Sundial reads and does not need: %s.\n", k.Doc)
	}
	return b.String(), nil
}
