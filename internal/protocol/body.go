package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
)

// bodyAppender is a body with maps that are keyed by objects, which standard
// JSON has no words for.
type bodyAppender interface {
	appendBody(dst []byte) ([]byte, error)
}

// EncodeBody writes the JSON of a body as RocketMQ's programs expect it:
// compact, null members left out, message queues as keys where RocketMQ has
// them. Bodies are made of types that always have a JSON form, so it panics
// when one has none.
func EncodeBody(v any) []byte {
	var out []byte
	var err error
	if a, ok := v.(bodyAppender); ok {
		out, err = a.appendBody(nil)
	} else {
		out, err = json.Marshal(v)
	}
	if err != nil {
		panic(fmt.Sprintf("protocol: body %T: %v", v, err))
	}
	return out
}

// DecodeBody reads the JSON of a body into what v points to, in any of the
// spellings of Java's and Go's clients. The error is [mq.ErrInvalid].
func DecodeBody(body []byte, v any) error {
	if len(body) == 0 {
		return fmt.Errorf("%w: the body is empty", mq.ErrInvalid)
	}
	if err := javajson.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: body: %v", mq.ErrInvalid, err)
	}
	return nil
}
