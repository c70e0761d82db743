// Package javajson reads and writes JSON as RocketMQ's Java programs do. Their
// library, fastjson, writes maps with integer keys as {0:12}, maps whose keys are
// objects as {{"queueId":0}:12}, and says {"$ref":"$.a.b"} for an object it has
// written before; it reads single quotes too. None of that is JSON.
//
// [Unmarshal] reads all of it: [Standard] rewrites it into JSON, in which a key
// that was an object is a string that holds the object, and encoding/json does
// the rest; so the key type of such a map needs UnmarshalText. [Marshal] writes
// ordinary bodies, [MarshalObjectKeys] bodies with object keys, from key types
// with MarshalText, and [MarshalPretty] files.
//
// Memory is linear in the input, nesting is bounded by [MaxDepth].
package javajson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// MaxDepth is how deep objects and arrays may be nested in what Standard reads.
const MaxDepth = 200

// SyntaxError says where the input is not even fastjson's JSON.
type SyntaxError struct {
	Offset int64  // byte in the input
	Msg    string // what is wrong there
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.Msg) }

// Unmarshal reads src into v as encoding/json does, in Java's spelling too.
func Unmarshal(src []byte, v any) error {
	if !bytes.Contains(src, ref) {
		err := json.Unmarshal(src, v)
		if _, bad := err.(*json.SyntaxError); !bad {
			return err
		}
		// A syntax error comes before v is touched.
	}
	std, err := Standard(src)
	if err != nil {
		return err
	}
	return json.Unmarshal(std, v)
}

// Int is an integer that may be written as a string, as some clients do.
type Int int64

// UnmarshalJSON reads 12, "12" and, as 0, null.
func (n *Int) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if len(b) >= 2 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	i, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not an integer", b)
	}
	*n = Int(i)
	return nil
}
