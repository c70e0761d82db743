package javajson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// References are followed at most this deep and written out to at most this
// many times the input, so that a few of them cannot stand for gigabytes.
const (
	maxRefDepth  = 32
	maxRefLength = 1024
	maxGrowth    = 8
	freeGrowth   = 64 << 10
)

// resolve replaces each {"$ref":"$.a.b[0]"} in std, which is JSON, by what stands
// there. Paths that do not start at the root ("..", "@") are not resolved but
// refused: fastjson writes them for objects that contain themselves.
func resolve(std []byte, srcLen int) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(std))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	w := expander{root: root, limit: maxGrowth*srcLen + freeGrowth}
	if err := w.append(root, 0); err != nil {
		return nil, err
	}
	return w.dst, nil
}

type expander struct {
	root  any
	dst   []byte
	limit int
}

func (w *expander) append(v any, depth int) error {
	if len(w.dst) > w.limit {
		return fmt.Errorf("JSON references: written out they take more than %d bytes", w.limit)
	}
	switch v := v.(type) {
	case map[string]any:
		if path, ok := v["$ref"].(string); ok && len(v) == 1 {
			if depth == maxRefDepth {
				return fmt.Errorf("JSON reference %.100q: more than %d lead to each other", path, maxRefDepth)
			}
			target, err := w.find(path)
			if err != nil {
				return err
			}
			return w.append(target, depth+1)
		}
		w.dst = append(w.dst, '{')
		comma := false
		for key, member := range v {
			if comma {
				w.dst = append(w.dst, ',')
			}
			comma = true
			w.dst = appendString(w.dst, key)
			w.dst = append(w.dst, ':')
			if err := w.append(member, depth); err != nil {
				return err
			}
		}
		w.dst = append(w.dst, '}')
	case []any:
		w.dst = append(w.dst, '[')
		for i, element := range v {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			if err := w.append(element, depth); err != nil {
				return err
			}
		}
		w.dst = append(w.dst, ']')
	case string:
		w.dst = appendString(w.dst, v)
	case json.Number:
		w.dst = append(w.dst, v...)
	case bool:
		w.dst = strconv.AppendBool(w.dst, v)
	default:
		w.dst = append(w.dst, "null"...)
	}
	return nil
}

// find walks a path: $ then .name or [index] or ['name'], any number of times. A
// name may hold dots: the shortest that is there counts, a backslash
// protects the character behind it.
func (w *expander) find(path string) (any, error) {
	rest, ok := strings.CutPrefix(path, "$")
	if !ok || len(path) > maxRefLength {
		return nil, fmt.Errorf("JSON reference %.100q: only paths from the root ($) of at most %d bytes are followed", path, maxRefLength)
	}
	v := w.root
	for rest != "" {
		next, more, ok := step(v, rest)
		if !ok {
			return nil, fmt.Errorf("JSON reference %.100q: nothing stands there", path)
		}
		v, rest = next, more
	}
	return v, nil
}

func step(v any, path string) (next any, rest string, ok bool) {
	switch {
	case path[0] == '[':
		inner, rest, closed := strings.Cut(path[1:], "]")
		if !closed {
			return nil, "", false
		}
		if a, isArray := v.([]any); isArray {
			i, err := strconv.Atoi(inner)
			if err != nil || i < 0 || i >= len(a) {
				return nil, "", false
			}
			return a[i], rest, true
		}
		m, _ := v.(map[string]any)
		next, ok = m[strings.Trim(inner, `'"`)]
		return next, rest, ok
	case path[0] == '.':
		m, _ := v.(map[string]any)
		var name strings.Builder
		for i := 1; i <= len(path); i++ {
			if i == len(path) || path[i] == '.' || path[i] == '[' {
				if next, ok = m[name.String()]; ok {
					return next, path[i:], true
				}
			}
			if i < len(path) {
				if path[i] == '\\' && i+1 < len(path) {
					i++
				}
				name.WriteByte(path[i])
			}
		}
	}
	return nil, "", false
}
