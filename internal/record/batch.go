package record

import (
	"fmt"
	"iter"

	"github.com/sundial-mq/sundial/internal/mq"
)

// BatchItem is one message of a batch as it comes over the wire. Its slices
// alias the batch. The size, magic and checksum that stand there count nothing.
type BatchItem struct {
	Flag       int32
	Body       []byte
	Properties []byte
}

// Batch yields the messages of a batch in order. The first item that is not
// whole yields an error, wrapping [mq.ErrIllegalMessage], that says which item
// and what is wrong with it, and ends the iteration. An empty batch yields
// nothing.
func Batch(body []byte) iter.Seq2[BatchItem, error] {
	return func(yield func(BatchItem, error) bool) {
		rest := body
		for n := 0; len(rest) > 0; n++ {
			item, size, err := batchItem(rest)
			if err != nil {
				err = fmt.Errorf("%w: batch item %d at byte %d: %w", mq.ErrIllegalMessage, n, len(body)-len(rest), err)
				yield(BatchItem{}, err)
				return
			}
			if !yield(item, nil) {
				return
			}
			rest = rest[size:]
		}
	}
}

func batchItem(b []byte) (item BatchItem, size int, err error) {
	if len(b) < batchFixed {
		return item, 0, fmt.Errorf("%d bytes left, an item has at least %d", len(b), batchFixed)
	}
	n := int(int32(be32(b[batchLength:])))
	if n < 0 || n > len(b)-batchFixed {
		return item, 0, fmt.Errorf("body length %d with %d bytes left", n, len(b)-batchFixed)
	}
	at := batchLength + 4 + n
	p := int(b[at])<<8 | int(b[at+1])
	at += 2
	switch {
	case p > MaxProperties:
		return item, 0, fmt.Errorf("property length %d, a record holds at most %d", p, MaxProperties)
	case p > len(b)-at:
		return item, 0, fmt.Errorf("property length %d with %d bytes left", p, len(b)-at)
	}
	bodyAt := batchLength + 4
	return BatchItem{
		Flag: int32(be32(b[batchFlag:])),
		Body: b[bodyAt : bodyAt+n : bodyAt+n], Properties: b[at : at+p : at+p],
	}, at + p, nil
}
