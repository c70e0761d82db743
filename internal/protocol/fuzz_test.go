package protocol

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// pairs reads "k=v" lines as header fields.
func pairs(text string) []remoting.Field {
	var out []remoting.Field
	for line := range strings.SplitSeq(text, "\n") {
		k, v, _ := strings.Cut(line, "=")
		out = append(out, remoting.Field{Key: k, Value: v})
	}
	return out
}

// A header that reads is written so that it reads as the same.
func FuzzHeaders(f *testing.F) {
	f.Add("a=pg\nb=t\nc=TBW102\nd=4\ne=0\nf=0\ng=1\nh=0\ni=x\nj=0\nk=TRUE\nl=3\nm=false\nn=b")
	f.Add("producerGroup=pg\ntopic=t\ndefaultTopic=TBW102\ndefaultTopicQueueNums=4\nqueueId=0\nsysFlag=0\nbornTimestamp=1\nflag=0")
	f.Add("consumerGroup=g\ntopic=t\nqueueId=0\nqueueOffset=0\nmaxMsgNums=32\nsysFlag=6\ncommitOffset=0\nsuspendTimeoutMillis=15000\nsubVersion=0\nsubscription=*")
	f.Add("offset=1\ngroup=g\ndelayLevel=-1\nmaxReconsumeTimes=")
	f.Fuzz(func(t *testing.T, text string) {
		c := &remoting.Command{Code: 310, Fields: pairs(text)}
		var s, s2 SendHeader
		if DecodeSend(c, &s) == nil {
			if err := DecodeSend(&remoting.Command{Code: 310, Fields: s.Encode()}, &s2); err != nil || !reflect.DeepEqual(s, s2) {
				t.Errorf("send: %+v, %+v, %v", s, s2, err)
			}
		}
		var p, p2 PullHeader
		if DecodePull(c, &p) == nil {
			p.RequestSource, p.MaxMsgBytes = -1, max(p.MaxMsgBytes, 0) // not written
			if err := DecodePull(&remoting.Command{Fields: p.Encode()}, &p2); err != nil || p != p2 {
				t.Errorf("pull: %+v, %+v, %v", p, p2, err)
			}
		}
		for _, h := range headers {
			if h.request == nil {
				continue
			}
			v, again := reflect.New(reflect.TypeOf(h.request)), reflect.New(reflect.TypeOf(h.request))
			if DecodeFields(c.Fields, v.Interface()) != nil {
				continue
			}
			if err := DecodeFields(EncodeFields(v.Interface()), again.Interface()); err != nil || !reflect.DeepEqual(v.Interface(), again.Interface()) {
				t.Errorf("%T: %+v, %+v, %v", h.request, v, again, err)
			}
		}
	})
}

// A body that reads is written so that it reads as the same.
func FuzzBodies(f *testing.F) {
	for _, r := range recorded {
		if src := readFixture(f, r.file); len(src) < 2000 {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, r := range recorded {
			v := r.body()
			if DecodeBody(src, v) != nil {
				continue
			}
			text := EncodeBody(v)
			again := r.body()
			if err := DecodeBody(text, again); err != nil {
				t.Errorf("%T: what we wrote we can't read: %v in %s", v, err, text)
			} else if text2 := EncodeBody(again); !bytes.Equal(text, text2) {
				t.Errorf("%T: %s, read and written again %s", v, text, text2)
			}
		}
	})
}
