package protocol

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
)

func registration(topics int) *RegisterBrokerBody {
	b := &RegisterBrokerBody{FilterServers: Set[string]{"f1"}, Table: TopicTable{
		DataVersion: mq.DataVersion{Counter: 7, StateVersion: 1, Timestamp: 1700000000000},
		Topics:      Map[string, *mq.TopicConfig]{},
	}}
	for i := range topics {
		name := fmt.Sprintf("topic-%d", i)
		b.Table.Topics[name] = &mq.TopicConfig{Attributes: map[string]string{}, Perm: 6, ReadQueues: 4, WriteQueues: int32(i), Filter: "SINGLE_TAG", Name: name}
	}
	if topics > 0 {
		b.Table.Topics["topic-0"].Attributes["message.type"] = "FIFO"
		b.Table.Topics["topic-0"].Attributes["note"] = "with blanks in it} 1 true"
	}
	if topics > 2 {
		b.Table.Topics["topic-1"].SysFlag, b.Table.Topics["topic-1"].Order = 3, true
		b.Table.Topics["topic-2"].Order = true
	}
	return b
}

func TestRegistrationPlainAndCompressed(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100} {
		for _, compressed := range []bool{false, true} {
			b := registration(n)
			body, crc := b.Encode(compressed)
			h := &RegisterBrokerHeader{Compressed: compressed, BodyCRC: crc}
			for _, says := range []bool{compressed, false} { // RocketMQ 5 may forget to say it
				h.Compressed = says
				got, err := DecodeRegisterBroker(h, 513, body)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got.Table.Topics, b.Table.Topics) || got.Table.DataVersion != b.Table.DataVersion || !reflect.DeepEqual(got.FilterServers, b.FilterServers) {
					t.Errorf("%d topics, compressed %v: got %+v", n, compressed, got)
				}
			}
		}
	}
}

// RocketMQ splits a topic at every blank: the sixth piece must be all of the
// attributes, and what stands behind it is nothing to it.
func TestCompressedTopicsAsRocketMQReadsThem(t *testing.T) {
	t.Parallel()
	b := registration(3)
	body, _ := b.Encode(true)
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	r := newLengthReader(bytes.NewReader(raw), int64(len(raw)))
	r.text()
	for range r.count() {
		part := strings.Split(string(r.text()), " ")
		attributes := map[string]string{}
		if err := json.Unmarshal([]byte(part[5]), &attributes); err != nil || !reflect.DeepEqual(attributes, b.Table.Topics[part[0]].Attributes) {
			t.Errorf("%q: %v, %v", part, attributes, err)
		}
	}
}

func TestRegistrationWithQueueMappings(t *testing.T) {
	t.Parallel()
	b := registration(1)
	b.Table.MappingInfo = Map[string, json.RawMessage]{"topic-0": json.RawMessage(`{"topic":"topic-0","totalQueues":4}`)}
	body, crc := b.Encode(true)
	h := &RegisterBrokerHeader{Compressed: true, BodyCRC: crc}
	got, err := DecodeRegisterBroker(h, 513, body)
	if err != nil || len(got.Table.MappingInfo) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := DecodeRegisterBroker(h, 409, body); err != nil || len(got.Table.MappingInfo) != 0 {
		t.Errorf("a broker of 4.9 sends no mappings: got %+v, %v", got, err)
	}
}

func TestRegistrationOfAnOldBroker(t *testing.T) {
	t.Parallel()
	got, err := DecodeRegisterBroker(&RegisterBrokerHeader{}, 20, EncodeBody(&registration(2).Table))
	if err != nil || len(got.Table.Topics) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRegistrationThatIsDamaged(t *testing.T) {
	t.Parallel()
	body, crc := registration(3).Encode(true)
	if _, err := DecodeRegisterBroker(&RegisterBrokerHeader{Compressed: true, BodyCRC: crc + 1}, 513, body); !errors.Is(err, mq.ErrSystem) || !strings.Contains(err.Error(), "crc32 not match") {
		t.Errorf("wrong checksum: %v", err)
	}
	for name, b := range map[string][]byte{
		"no zlib":            []byte("nonsense"),
		"cut":                body[:len(body)/2],
		"topic without name": pack(t, "\x00\x00\x00\x02{}\x00\x00\x00\x01\x00\x00\x00\x03a b\x00\x00\x00\x02[]"),
		"bad number":         pack(t, "\x00\x00\x00\x02{}\x00\x00\x00\x01\x00\x00\x00\x0aa 1 x 6 s {}\x00\x00\x00\x02[]"),
		"huge count":         pack(t, "\x00\x00\x00\x02{}\x7f\xff\xff\xff"),
		"negative length":    pack(t, "\xff\xff\xff\xff{}"),
		"wrong checksum":     append(body[:len(body)-1:len(body)-1], body[len(body)-1]+1),
		"a piece too large":  pack(t, "\x00\x10\x00\x01"+strings.Repeat("x", 1<<20+1)),
	} {
		if _, err := DecodeRegisterBroker(&RegisterBrokerHeader{Compressed: true}, 513, b); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := pack(t, "\x00\x00\x00\x02{}\x00\x00\x00\x00\x00\x00\x00\x02[]"+strings.Repeat("\x00", 5000))
	if err := new(RegisterBrokerBody).uncompress(513, bomb, 4999); err == nil || !strings.Contains(err.Error(), "more than 4999 bytes") {
		t.Errorf("a bomb: %v", err)
	}
	if _, err := DecodeRegisterBroker(&RegisterBrokerHeader{}, 513, []byte(`{"topicConfigSerializeWrapper":{"topicConfigTable":{"a":null}}}`)); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("a topic without config: %v", err)
	}
}

// What a client sends to bring the name server down costs no memory: not the 64 MiB
// it may unpack to. (Not parallel: it measures what is allocated meanwhile.)
func TestRegistrationThatUnpacksToVeryMuch(t *testing.T) {
	zeros := strings.Repeat("\x00", maxRegistration+1)
	for name, head := range map[string]string{
		"behind the end": "\x00\x00\x00\x02{}\x00\x00\x00\x00\x00\x00\x00\x02[]",
		"in one piece":   "\x02\x00\x00\x00",
		"from the start": "",
	} {
		if invariant.On && name != "from the start" {
			continue // packing and unpacking take half a minute each
		}
		b := pack(t, head+zeros)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeRegisterBroker(&RegisterBrokerHeader{Compressed: true}, 513, b)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
			t.Errorf("%s: %d bytes were allocated", name, used)
		}
	}
}

func pack(t *testing.T, raw string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The checksum of a registration that a 5.5.0 broker sent.
func TestCRC32(t *testing.T) {
	t.Parallel()
	if got := CRC32([]byte("123456789")); got != 0x4BF43926 { // CRC-32 0xCBF43926 without its top bit
		t.Errorf("got %08x", got)
	}
}

func FuzzDecodeRegisterBroker(f *testing.F) {
	for _, compressed := range []bool{false, true} {
		body, _ := registration(2).Encode(compressed)
		f.Add(body, int32(513), compressed)
		f.Add(body, int32(20), compressed)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int32, compressed bool) {
		b, err := DecodeRegisterBroker(&RegisterBrokerHeader{Compressed: compressed}, version, body)
		if err != nil {
			return
		}
		again, crc := b.Encode(false)
		if _, err := DecodeRegisterBroker(&RegisterBrokerHeader{BodyCRC: crc}, 513, again); err != nil {
			t.Errorf("what we wrote we can't read: %v in %s", err, again)
		}
	})
}

func FuzzDecodeHeartbeat(f *testing.F) {
	f.Add([]byte(`{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"codeSet":["1",2],"topic":"t"}]}],"producerDataSet":null}`))
	f.Add([]byte(`{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := DecodeHeartbeat(body)
		if err != nil {
			return
		}
		again, err := DecodeHeartbeat(EncodeBody(h))
		if err != nil {
			t.Fatalf("what we wrote we can't read: %v", err)
		}
		if !reflect.DeepEqual(EncodeBody(again), EncodeBody(h)) {
			t.Errorf("read again it differs: %+v, %+v", again, h)
		}
	})
}
