package remoting

import (
	"strconv"

	"github.com/sundial-mq/sundial/internal/bin"
)

// Command is one request or one answer.
type Command struct {
	Code     int32    // request code, or response code in an answer
	Language Language // of the program that wrote it
	Version  int32    // release ordinal of the program that wrote it; see [Version]
	Opaque   int32    // chosen by the asker, repeated in the answer
	Flag     int32    // see FlagResponse and FlagOneway
	Remark   string   // free text, in answers the cause of a failure

	// Fields are the header fields, in the order on the wire. A key may occur
	// twice in what a peer sent; then the last one counts (see Get).
	Fields []Field

	// Body is what follows the header.
	Body []byte

	// Serialize is the form of the header. An answer takes the asker's.
	Serialize Serialize

	// Chunks, when not nil, are the body of an outgoing command in pieces, in
	// place of Body. They may lie in mapped memory: whoever sends the command
	// calls Release exactly once, when the pieces are not needed any more,
	// also when sending failed. Decode leaves both alone.
	Chunks  [][]byte
	Release func()

	scratch []byte // resolved escapes of the last Decode; Fields and Remark may point into it
}

// Field is one header field.
type Field struct{ Key, Value string }

// Flags of a command.
const (
	FlagResponse int32 = 1 << 0 // an answer: match it by Opaque
	FlagOneway   int32 = 1 << 1 // a request that must not be answered
)

// Serialize tells how a header is written.
type Serialize uint8

// The header forms. The wire has them in the top byte of the header length.
const (
	JSON   Serialize = 0
	Binary Serialize = 1 // RocketMQ calls it ROCKETMQ. Code and Version have 16 bits only.
)

func (s Serialize) String() string {
	switch s {
	case JSON:
		return "JSON"
	case Binary:
		return "ROCKETMQ"
	}
	return "Serialize(" + strconv.Itoa(int(s)) + ")"
}

// Version is the release ordinal we answer with: that of RocketMQ 5.5.0.
// Clients keep what a broker answers and ask it for nothing newer.
const Version int32 = 513

// IsResponse reports whether the command is an answer.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway reports whether the command must not be answered.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// Get returns the value of a field. When the key occurs twice, the last counts.
func (c *Command) Get(key string) (value string, ok bool) {
	for i := len(c.Fields) - 1; i >= 0; i-- {
		if c.Fields[i].Key == key {
			return c.Fields[i].Value, true
		}
	}
	return "", false
}

// Set gives a field its value: in place when the key is there, else at the end.
func (c *Command) Set(key, value string) {
	for i := len(c.Fields) - 1; i >= 0; i-- {
		if c.Fields[i].Key == key {
			c.Fields[i].Value = value
			return
		}
	}
	c.Fields = append(c.Fields, Field{key, value})
}

// Add puts a field at the end, without looking for the key.
func (c *Command) Add(key, value string) { c.Fields = append(c.Fields, Field{key, value}) }

// NewRequest begins a request of ours. The link that sends it chooses the
// opaque number.
func NewRequest(code int32, fields ...Field) *Command {
	return &Command{Code: code, Language: Go, Version: Version, Fields: fields}
}

// NewResponse begins an answer to req: same opaque number, same header form.
func NewResponse(req *Command, code int32, remark string) *Command {
	return &Command{
		Code: code, Language: Go, Version: Version,
		Opaque: req.Opaque, Flag: FlagResponse, Serialize: req.Serialize,
		Remark: remark,
	}
}

// BodyLen returns the number of body bytes, be they in Body or in Chunks.
func (c *Command) BodyLen() int {
	if c.Chunks == nil {
		return len(c.Body)
	}
	n := 0
	for _, b := range c.Chunks {
		n += len(b)
	}
	return n
}

// Clone returns a copy that shares no memory with c and so outlives the frame
// c was decoded from. Chunks are joined into Body; Release stays with c.
func (c *Command) Clone() *Command {
	n := len(c.Remark) + c.BodyLen()
	for i := range c.Fields {
		n += len(c.Fields[i].Key) + len(c.Fields[i].Value)
	}
	d := *c
	d.Chunks, d.Release, d.scratch, d.Body = nil, nil, nil, nil
	// One allocation holds all the bytes.
	mem := make([]byte, 0, n)
	keep := func(s string) string {
		at := len(mem)
		mem = append(mem, s...)
		return bin.String(mem[at:len(mem):len(mem)])
	}
	d.Remark = keep(c.Remark)
	if c.Fields != nil {
		d.Fields = make([]Field, len(c.Fields))
		for i, f := range c.Fields {
			d.Fields[i] = Field{keep(f.Key), keep(f.Value)}
		}
	}
	at := len(mem)
	mem = append(mem, c.Body...)
	for _, b := range c.Chunks {
		mem = append(mem, b...)
	}
	if len(mem) > at {
		d.Body = mem[at:len(mem):len(mem)]
	}
	return &d
}
