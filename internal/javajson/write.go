package javajson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal is encoding/json without its escapes for HTML, compact.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalObjectKeys writes v compactly, and every key whose text is a JSON object
// as that object: {{"brokerName":"b","queueId":0,"topic":"t"}:12}. A map's key
// type gives that text by MarshalText.
func MarshalObjectKeys(v any) ([]byte, error) {
	std, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, 0, len(std))
	for i := 0; i < len(std); {
		if std[i] != '"' {
			dst = append(dst, std[i])
			i++
			continue
		}
		end := stringEnd(std, i)
		if end < len(std) && std[end] == ':' && std[i+1] == '{' {
			var key string
			if err := json.Unmarshal(std[i:end], &key); err != nil {
				return nil, err
			}
			if json.Valid([]byte(key)) {
				dst = append(dst, key...)
				i = end
				continue
			}
		}
		dst = append(dst, std[i:end]...)
		i = end
	}
	return dst, nil
}

// MarshalPretty writes v as RocketMQ writes its files: a line for each member,
// indented by tabs, no blank behind the colon, numbers of an array in one line. Members of structs come in the
// order of their fields, which RocketMQ's readers do not mind.
func MarshalPretty(v any) ([]byte, error) {
	std, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, 0, len(std)+len(std)/2)
	depth := 0
	line := func() {
		dst = append(dst, '\n')
		for range depth {
			dst = append(dst, '\t')
		}
	}
	for i := 0; i < len(std); i++ {
		switch c := std[i]; c {
		case '"':
			end := stringEnd(std, i)
			dst = append(dst, std[i:end]...)
			i = end - 1
		case '{', '[':
			if end := flatEnd(std, i); end > i {
				dst = append(dst, std[i:end]...)
				i = end - 1
				continue
			}
			dst = append(dst, c)
			depth++
			line()
		case '}', ']':
			depth--
			line()
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			line()
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

// flatEnd is the index behind what opens at b[at] if fastjson writes it in one
// line: an empty object or array, or an array of numbers; else at.
func flatEnd(b []byte, at int) int {
	end := at + 1
	for b[at] == '[' && (b[end] == ',' || isNumberByte(b[end])) {
		end++
	}
	if b[end] == b[at]+2 { // ] is [ plus 2, as } is { plus 2
		return end + 1
	}
	return at
}

// stringEnd is the index behind the string that starts at b[at].
func stringEnd(b []byte, at int) int {
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	panic(fmt.Sprintf("BUG: encoding/json wrote a string without an end at byte %d", at))
}

func appendString(dst []byte, s string) []byte {
	b, err := Marshal(s)
	if err != nil {
		panic("BUG: encoding/json could not write a string: " + err.Error())
	}
	return append(dst, b...)
}
