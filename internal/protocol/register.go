package protocol

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/javajson"
	"github.com/sundial-mq/sundial/internal/mq"
)

// RegisterBrokerHeader is the header of REGISTER_BROKER (103).
type RegisterBrokerHeader struct {
	BrokerName      string `h:"brokerName,required"`
	BrokerAddr      string `h:"brokerAddr,required"`
	Cluster         string `h:"clusterName,required"`
	HAServerAddr    string `h:"haServerAddr,required"`
	BrokerID        int64  `h:"brokerId,required"`
	HeartbeatMillis *int64 `h:"heartbeatTimeoutMillis"` // silent for longer means gone; nil: the name server's own rule
	ActingMaster    *bool  `h:"enableActingMaster"`     // nil: an older broker
	Compressed      bool   `h:"compressed"`
	BodyCRC         int32  `h:"bodyCrc32"` // 0: not said
}

// RegisterBrokerResponse is the header of its answer: a slave learns who its
// master is.
type RegisterBrokerResponse struct {
	HAServerAddr string `h:"haServerAddr"`
	MasterAddr   string `h:"masterAddr"`
}

// UnregisterBrokerHeader is the header of UNREGISTER_BROKER (104).
type UnregisterBrokerHeader struct {
	BrokerName string `h:"brokerName,required"`
	BrokerAddr string `h:"brokerAddr,required"`
	Cluster    string `h:"clusterName,required"`
	BrokerID   int64  `h:"brokerId,required"`
}

// QueryDataVersionHeader is the header of QUERY_DATA_VERSION (322); its body is
// an mq.DataVersion.
type QueryDataVersionHeader struct {
	BrokerName string `h:"brokerName,required"`
	BrokerAddr string `h:"brokerAddr,required"`
	Cluster    string `h:"clusterName,required"`
	BrokerID   int64  `h:"brokerId,required"`
}

// QueryDataVersionResponse is the header of its answer.
type QueryDataVersionResponse struct {
	Changed bool `h:"changed,required"`
}

// BrokerHeartbeatHeader is the header of BROKER_HEARTBEAT (904).
type BrokerHeartbeatHeader struct {
	Cluster         string `h:"clusterName,required"`
	BrokerAddr      string `h:"brokerAddr,required"`
	BrokerName      string `h:"brokerName,required"`
	BrokerID        *int64 `h:"brokerId"`
	HeartbeatMillis *int64 `h:"heartbeatTimeoutMills"`
}

// TopicTable is a broker's topics with their version: part of a registration,
// and the body of the answer to GET_ALL_TOPIC_CONFIG (21). Queue mappings belong
// to static topics and are carried as they are.
type TopicTable struct {
	DataVersion    mq.DataVersion               `json:"dataVersion"`
	MappingVersion *mq.DataVersion              `json:"mappingDataVersion,omitempty"`
	Topics         Map[string, *mq.TopicConfig] `json:"topicConfigTable"`
	MappingDetail  Map[string, json.RawMessage] `json:"topicQueueMappingDetailMap"`
	MappingInfo    Map[string, json.RawMessage] `json:"topicQueueMappingInfoMap"`
}

// RegisterBrokerBody is the body of REGISTER_BROKER (103).
type RegisterBrokerBody struct {
	FilterServers Set[string] `json:"filterServerList"`
	Table         TopicTable  `json:"topicConfigSerializeWrapper"`
}

// CRC32 is RocketMQ's checksum of a body: IEEE without its top bit.
func CRC32(b []byte) int32 { return int32(crc32.ChecksumIEEE(b) & 0x7fffffff) }

// maxRegistration bounds what a compressed registration may unpack to.
const maxRegistration = 64 << 20

// Encode writes a registration, plain or compressed, with its checksum.
func (b *RegisterBrokerBody) Encode(compressed bool) (body []byte, crc int32) {
	if !compressed {
		body = EncodeBody(b)
	} else {
		body = b.compress()
	}
	return body, CRC32(body)
}

// The unpacked form of a compressed registration, all numbers big endian:
//
//	+----+------------------+-------+----------------------+----+----------------+-------+----------------+
//	| n4 | data version     | cnt 4 | cnt x (n4, topic)    | n4 | filter servers | cnt 4 | cnt x (n4,     |
//	|    | JSON             |       |                      |    | JSON           |       | queue mapping) |
//	+----+------------------+-------+----------------------+----+----------------+-------+----------------+
//
//	topic: "name readQueues writeQueues perm filterType attributesJSON", blanks between;
//	the attributes may be missing. The queue mappings come from brokers since 5.0.
//
// RocketMQ leaves out the topics' system flags and their order, and reads nothing
// behind the attributes: there we write "sysFlag order" when either says something.
// Its reader splits at every blank, so blanks in attributes are escaped.
func (b *RegisterBrokerBody) compress() []byte {
	var raw []byte
	put := func(text []byte) {
		raw = binary.BigEndian.AppendUint32(raw, uint32(len(text)))
		raw = append(raw, text...)
	}
	put(EncodeBody(&b.Table.DataVersion))
	names := make([]string, 0, len(b.Table.Topics))
	for name := range b.Table.Topics {
		names = append(names, name)
	}
	slices.Sort(names)
	raw = binary.BigEndian.AppendUint32(raw, uint32(len(names)))
	for _, name := range names {
		t := b.Table.Topics[name]
		attributes := t.Attributes
		if attributes == nil {
			attributes = map[string]string{}
		}
		text := fmt.Appendf(nil, "%s %d %d %d %s ", t.Name, t.ReadQueues, t.WriteQueues, t.Perm, t.Filter)
		text = append(text, bytes.ReplaceAll(EncodeBody(attributes), []byte(" "), []byte(`\u0020`))...)
		if t.SysFlag != 0 || t.Order {
			text = fmt.Appendf(text, " %d %t", t.SysFlag, t.Order)
		}
		put(text)
	}
	put(EncodeBody(b.FilterServers))
	raw = binary.BigEndian.AppendUint32(raw, uint32(len(b.Table.MappingInfo)))
	for _, info := range b.Table.MappingInfo {
		put(info)
	}
	var out bytes.Buffer
	w, err := zlib.NewWriterLevel(&out, zlib.BestCompression)
	if err == nil {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("protocol: compressing into memory: %v", err))
	}
	return out.Bytes()
}

// DecodeRegisterBroker reads the body of a registration from a broker of the
// given version (MQVersion). It is taken for compressed when the header says so,
// and when it begins as zlib data does: RocketMQ 5 may compress without saying
// it.
func DecodeRegisterBroker(h *RegisterBrokerHeader, version int32, body []byte) (*RegisterBrokerBody, error) {
	if h.BodyCRC != 0 {
		if crc := CRC32(body); crc != h.BodyCRC {
			return nil, fmt.Errorf("%w: crc32 not match: the body has %d, the header says %d", mq.ErrSystem, crc, h.BodyCRC)
		}
	}
	b := &RegisterBrokerBody{}
	switch {
	case h.Compressed || len(body) > 2 && body[0] == 0x78 && binary.BigEndian.Uint16(body)%31 == 0:
		if err := b.uncompress(version, body, maxRegistration); err != nil {
			return nil, fmt.Errorf("%w: compressed registration: %v", mq.ErrInvalid, err)
		}
	case len(body) == 0: // a broker without topics
	case version > 0 && version <= versionOldRegistration:
		if err := DecodeBody(body, &b.Table); err != nil {
			return nil, err
		}
	default:
		if err := DecodeBody(body, b); err != nil {
			return nil, err
		}
	}
	for name, t := range b.Table.Topics {
		if t == nil {
			return nil, fmt.Errorf("%w: topic %q has no config", mq.ErrInvalid, name)
		}
		if t.Name == "" {
			t.Name = name
		}
	}
	return b, nil
}

// Versions (MQVersion ordinals) at which the registration's form changed.
const (
	versionOldRegistration = 31  // V3_0_11: up to here a bare topic table
	versionMapping         = 413 // V5_0_0: from here with queue mappings
)

func (b *RegisterBrokerBody) uncompress(version int32, body []byte, limit int64) error {
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return err
	}
	r := newLengthReader(z, limit)
	if err := javajson.Unmarshal(r.text(), &b.Table.DataVersion); err != nil && r.err == nil {
		return fmt.Errorf("data version: %w", err)
	}
	count := r.count()
	b.Table.Topics = make(map[string]*mq.TopicConfig, min(count, 4096))
	for range count {
		if r.err != nil {
			break
		}
		t, err := parseTopicLine(string(r.text()))
		if err != nil && r.err == nil {
			return err
		}
		if r.err == nil {
			b.Table.Topics[t.Name] = t
		}
	}
	if servers := r.text(); r.err == nil {
		if err := javajson.Unmarshal(servers, &b.FilterServers); err != nil {
			return fmt.Errorf("filter servers: %w", err)
		}
	}
	if version >= versionMapping && r.more() {
		count := r.count()
		for range count {
			text := r.text()
			if r.err != nil {
				break
			}
			var info struct {
				Topic string `json:"topic"`
			}
			std, err := javajson.Standard(text)
			if err == nil {
				err = json.Unmarshal(std, &info)
			}
			if err != nil {
				return fmt.Errorf("queue mapping: %w", err)
			}
			if b.Table.MappingInfo == nil {
				b.Table.MappingInfo = map[string]json.RawMessage{}
			}
			b.Table.MappingInfo[info.Topic] = std
		}
	}
	return r.end()
}

// parseTopicLine reads a topic of a compressed registration.
func parseTopicLine(line string) (*mq.TopicConfig, error) {
	part := strings.SplitN(line, " ", 6)
	if len(part) < 5 {
		return nil, fmt.Errorf("topic %.80q has %d parts, want 5 or 6", line, len(part))
	}
	t := &mq.TopicConfig{Name: part[0], Filter: part[4], Attributes: map[string]string{}}
	for i, dst := range []*int32{&t.ReadQueues, &t.WriteQueues, (*int32)(&t.Perm)} {
		n, err := strconv.ParseInt(part[1+i], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("topic %.80q: %q is not a number", line, part[1+i])
		}
		*dst = int32(n)
	}
	if len(part) == 6 && part[5] != "" {
		part[5] = flagsBehind(t, part[5])
		if err := javajson.Unmarshal([]byte(part[5]), &t.Attributes); err != nil {
			return nil, fmt.Errorf("topic %.80q: attributes: %w", line, err)
		}
	}
	return t, nil
}

// flagsBehind takes "sysFlag order" from behind the attributes of a topic, if it
// is there, and returns the attributes.
func flagsBehind(t *mq.TopicConfig, text string) string {
	end := strings.LastIndexByte(text, '}')
	part := strings.Fields(text[end+1:])
	if end < 0 || len(part) != 2 {
		return text
	}
	flag, err1 := strconv.ParseInt(part[0], 10, 32)
	order, err2 := strconv.ParseBool(part[1])
	if err1 != nil || err2 != nil {
		return text
	}
	t.SysFlag, t.Order = int32(flag), order
	return text[:end+1]
}

// maxPiece bounds a piece of a compressed registration: a topic, a data version,
// the mapping of a topic's queues.
const maxPiece = 1 << 20

// lengthReader takes length-prefixed pieces off a stream and keeps its first
// error. It holds one piece at a time: what unpacks to very much costs time, not
// memory.
type lengthReader struct {
	in    *bufio.Reader
	limit int64 // of the whole stream
	left  int64 // of it
	err   error
}

func newLengthReader(in io.Reader, limit int64) *lengthReader {
	return &lengthReader{in: bufio.NewReader(in), limit: limit, left: limit}
}

func (r *lengthReader) count() int {
	var head [4]byte
	r.read(head[:])
	if r.err != nil {
		return 0
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	// A piece has at least its length in front of it, so there can't be more than
	// bytes are left; a length is a count of bytes.
	if n < 0 || int64(n) > r.left {
		r.err = fmt.Errorf("it says %d and only %d bytes may follow", n, r.left)
		return 0
	}
	return int(n)
}

func (r *lengthReader) text() []byte {
	n := r.count()
	if n > maxPiece {
		r.err = fmt.Errorf("a piece of it has %d bytes, the limit is %d", n, maxPiece)
	}
	if r.err != nil {
		return nil
	}
	out := make([]byte, n)
	r.read(out)
	return out
}

func (r *lengthReader) read(dst []byte) {
	if r.err != nil {
		return
	}
	if int64(len(dst)) > r.left {
		r.err = r.tooMuch()
		return
	}
	r.left -= int64(len(dst))
	if _, err := io.ReadFull(r.in, dst); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		r.err = errors.New("it ends too early")
	} else if err != nil {
		r.err = err
	}
}

// more reports whether something follows.
func (r *lengthReader) more() bool {
	if r.err != nil {
		return false
	}
	_, err := r.in.Peek(1)
	return err == nil
}

// end reads what is behind the last piece, with the stream's own checksum.
func (r *lengthReader) end() error {
	if r.err != nil {
		return r.err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r.in, r.left+1))
	if err == nil && n > r.left {
		err = r.tooMuch()
	}
	return err
}

func (r *lengthReader) tooMuch() error {
	return fmt.Errorf("unpacks to more than %d bytes", r.limit)
}
