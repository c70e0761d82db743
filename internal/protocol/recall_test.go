package protocol

import (
	"errors"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
)

func TestRecallHandle(t *testing.T) {
	t.Parallel()
	// As RocketMQ 5.5.0 gave it to a client.
	const java = "djEgcmF3LXRvcGljIGJyb2tlci1hIDE3OTYwNzEwNDUwMDEgUkFXVElNRUQ="
	h, err := ParseRecallHandle(java)
	if want := (RecallHandle{"raw-topic", "broker-a", 1796071045001, "RAWTIMED", -1}); err != nil || h != want {
		t.Errorf("%+v, %v; want %+v", h, err, want)
	}
	if h.String() != java {
		t.Errorf("written as %s", h)
	}
	h.Seq = 42
	if again, err := ParseRecallHandle(h.String()); err != nil || again != h {
		t.Errorf("%+v is read as %+v, %v", h, again, err)
	}
	for _, s := range []string{"", "bm90IGEgaGFuZGxl", "!", "djIgdCBiIDEgdQ==", "djEgdCBiIHggdQ=="} {
		if h, err := ParseRecallHandle(s); !errors.Is(err, mq.ErrIllegalOperation) {
			t.Errorf("%q is read as %+v, %v", s, h, err)
		}
	}
}

func FuzzParseRecallHandle(f *testing.F) {
	f.Add("djEgcmF3LXRvcGljIGJyb2tlci1hIDE3OTYwNzEwNDUwMDEgUkFXVElNRUQ=")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseRecallHandle(s)
		if err != nil {
			return
		}
		if again, err := ParseRecallHandle(h.String()); err != nil || again != h {
			t.Errorf("%q: %+v, then %+v, %v", s, h, again, err)
		}
	})
}
