package remoting

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func sameCommand(t *testing.T, a, b *Command) {
	t.Helper()
	if a.Code != b.Code || a.Language != b.Language || a.Version != b.Version || a.Opaque != b.Opaque ||
		a.Flag != b.Flag || a.Remark != b.Remark || a.Serialize != b.Serialize ||
		!slices.Equal(a.Fields, b.Fields) || !bytes.Equal(a.Body, b.Body) {
		t.Fatalf("commands differ:\n%+v\n%+v", a, b)
	}
}

// frame puts a header of text into a frame.
func frame(form Serialize, header, body string) []byte {
	n := 4 + len(header) + len(body)
	b := []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n),
		byte(form), byte(len(header) >> 16), byte(len(header) >> 8), byte(len(header))}
	return append(append(b, header...), body...)
}

func TestReadsLooseJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, header string
		want         Command
	}{
		{"nothing but a code", `{"code":34}`, Command{Code: 34}},
		{"empty object", `{}`, Command{}},
		{"blanks everywhere", " {\n \"code\" : 34 ,\t\"extFields\" : { \"a\" : \"b\" } } \r\n", Command{Code: 34, Fields: []Field{{"a", "b"}}}},
		{"names and numbers without and with quotes", `{code:"10",'opaque':'-7',flag:1,version:513,language:GO}`,
			Command{Code: 10, Opaque: -7, Flag: 1, Version: 513, Language: Go}},
		{"numbers and booleans as field values", `{"extFields":{"a":-12,"b":true,"c":1.5e3,1:2}}`,
			Command{Fields: []Field{{"a", "-12"}, {"b", "true"}, {"c", "1.5e3"}, {"1", "2"}}}},
		{"null is absent", `{"code":1,"extFields":{"a":null,"b":"c"},"remark":null,"language":null}`,
			Command{Code: 1, Language: Other, Fields: []Field{{"b", "c"}}}},
		{"no fields at all", `{"code":1,"extFields":null}`, Command{Code: 1}},
		{"nested values are text", `{"extFields":{"a":{"b":["}",1]},"c":[]}}`,
			Command{Fields: []Field{{"a", `{"b":["}",1]}`}, {"c", "[]"}}}},
		{"unknown members", `{"x":{"y":[1,{"z":"\"}"}]},"code":5,"serializeTypeCurrentRPC":"JSON"}`, Command{Code: 5}},
		{"unknown language", `{"language":"KLINGON"}`, Command{Language: Other}},
		{"language by number", `{"language":12}`, Command{Language: Rust}},
		{"the last of equal members", `{"code":1,"code":2,"extFields":{"a":"1"},"extFields":{"a":"2"}}`,
			Command{Code: 2, Fields: []Field{{"a", "2"}}}},
		{"escapes", `{"remark":"\"\\\/\b\f\n\r\t\u0001\u00e9\u4E2D\ud83d\ude00\ud83d|","extFields":{"\u0061":"x\u0002y"}}`,
			Command{Remark: "\"\\/\b\f\n\r\t\x01é中😀\uFFFD|", Fields: []Field{{"a", "x\x02y"}}}},
		{"a comma too many", `{"code":1,}`, Command{Code: 1}},
		{"a comma too many among fields", `{"extFields":{"a":"b",},"code":1}`, Command{Code: 1, Fields: []Field{{"a", "b"}}}},
		{"usual and unusual fields", `{"extFields":{"a":"x","b":"y\u0001z","c" :"1","d":2,"\u0065":"e"},"code":1}`,
			Command{Code: 1, Fields: []Field{{"a", "x"}, {"b", "y\x01z"}, {"c", "1"}, {"d", "2"}, {"e", "e"}}}},
		{"extremes", `{"code":-2147483648,"opaque":2147483647}`, Command{Code: -1 << 31, Opaque: 1<<31 - 1}},
	} {
		var got Command
		if err := Decode(frame(JSON, c.header, ""), &got); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		sameCommand(t, &got, &c.want)
	}
}

func TestRefusesWrongJSON(t *testing.T) {
	t.Parallel()
	for _, h := range []string{
		``, ` `, `{`, `[]`, `"code"`, `null`, `{"code"}`, `{"code":}`, `{"code":1`, `{"code":1 "flag":2}`,
		`{"code":1}x`, `{"code":1}{}`, `{"code":"x"}`, `{"code":2147483648}`, `{"code":-2147483649}`, `{"code":1.5}`, `{"code":99999999999999999999}`,
		`{"remark":"abc}`, `{"remark":"a\`, `{"remark":"\u12"}`, `{"remark":"\u12G4"}`, `{"remark":"\q"}`,
		`{"x":[}`, `{"x":{"a":]}`, `{"extFields":"x"}`, `{"extFields":{"a":"b"}`, `{:1}`, `{"a":1,,"b":2}`,
		`{"extFields":{"a":"b","c":"d}`, `{"extFields":{"a":"b","c":"\q"}}`, `{"extFields":{"a":"b" "c":"d"}}`, `{"extFields":{"a":"b",`, `{"extFields":{"a":"\u0001`,
		`{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
		`{"extFields":{` + strings.Repeat(`"":"",`, MaxFields) + `"":""}}`,
		"\x00\x00", "{\x00}",
	} {
		var c Command
		if err := Decode(frame(JSON, h, ""), &c); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.60q: %v, want ErrMalformed", h, err)
		}
	}
}

func TestRefusesWrongFrames(t *testing.T) {
	t.Parallel()
	good := AppendCommand(nil, &Command{Code: 1, Body: []byte("body")})
	for name, b := range map[string][]byte{
		"nothing":                      nil,
		"half":                         good[:len(good)-1],
		"one byte too many":            append(slices.Clone(good), 0),
		"length below its own header":  {0, 0, 0, 3, 0, 0, 0, 0},
		"negative length":              {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"length beyond the bound":      {1, 0, 0, 0, 0, 0, 0, 0},
		"TLS hello":                    {0x16, 3, 1, 0, 0xa5, 1, 0, 0},
		"header longer than the frame": {0, 0, 0, 4, 0, 0, 0, 1},
		"unknown form":                 {0, 0, 0, 6, 2, 0, 0, 2, '{', '}'},
		"binary header too short":      frame(Binary, strings.Repeat("\x00", 20), ""),
		"binary remark too long":       frame(Binary, strings.Repeat("\x00", 13)+"\x00\x00\x00\x01"+"\x00\x00\x00\x00", ""),
		"binary remark negative":       frame(Binary, strings.Repeat("\x00", 13)+"\xff\xff\xff\xff"+"\x00\x00\x00\x00", ""),
		"binary fields too long":       frame(Binary, strings.Repeat("\x00", 17)+"\x00\x00\x00\x01", ""),
		"binary key cut":               frame(Binary, strings.Repeat("\x00", 17)+"\x00\x00\x00\x01\x00", ""),
		"binary key too long":          frame(Binary, strings.Repeat("\x00", 17)+"\x00\x00\x00\x06\x00\x01\x00\x00\x00\x00", ""),
		"binary value too long":        frame(Binary, strings.Repeat("\x00", 17)+"\x00\x00\x00\x07\x00\x01k\x00\x00\x00\x01", ""),
	} {
		var c Command
		if err := Decode(b, &c); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

func TestFrameSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    []byte
		want int
		ok   bool
	}{
		{nil, 0, true}, {[]byte{0, 0, 0}, 0, true}, {[]byte{0, 0, 0, 4}, 8, true}, {[]byte{0, 0xff, 0xff, 0xfc}, MaxFrame, true},
		{[]byte{0, 0xff, 0xff, 0xfd}, 0, false}, {[]byte{0, 0, 0, 3}, 0, false}, {[]byte{0x80, 0, 0, 0}, 0, false},
	} {
		if got, err := FrameSize(c.b); got != c.want || (err == nil) != c.ok {
			t.Errorf("% x: %d, %v; want %d, %v", c.b, got, err, c.want, c.ok)
		}
	}
}

// The layouts drawn in frame.go and binary.go, byte for byte.
func TestBinaryLayout(t *testing.T) {
	t.Parallel()
	c := &Command{Code: 0x0137, Language: Go, Version: 0x0201, Opaque: 0x01020304, Flag: 1, Remark: "why",
		Fields: []Field{{"k", "value"}}, Body: []byte("BODY"), Serialize: Binary}
	want := "\x00\x00\x00\x2c" + "\x01" + "\x00\x00\x24" + // length 44, form, header 36
		"\x01\x37" + "\x09" + "\x02\x01" + "\x01\x02\x03\x04" + "\x00\x00\x00\x01" +
		"\x00\x00\x00\x03why" + "\x00\x00\x00\x0c" + "\x00\x01k" + "\x00\x00\x00\x05value" + "BODY"
	if got := string(AppendCommand(nil, c)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestJSONLayout(t *testing.T) {
	t.Parallel()
	c := &Command{Code: 0, Language: Java, Version: 479, Opaque: 7, Flag: FlagResponse, Fields: []Field{{"queueId", "1"}}}
	want := `{"code":0,"extFields":{"queueId":"1"},"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}`
	if got := string(AppendCommand(nil, c)[8:]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBinaryTruncatesWideCodes(t *testing.T) {
	t.Parallel()
	var c Command
	if err := Decode(AppendCommand(nil, &Command{Code: 200050, Serialize: Binary}), &c); err != nil || c.Code != 3442 {
		t.Errorf("200050 is read back as %d, %v; RocketMQ reads 3442", c.Code, err)
	}
}

func TestGetTakesTheLast(t *testing.T) {
	t.Parallel()
	c := Command{Fields: []Field{{"a", "1"}, {"b", "2"}, {"a", "3"}}}
	if v, ok := c.Get("a"); v != "3" || !ok {
		t.Errorf("a = %q, %v", v, ok)
	}
	if _, ok := c.Get("x"); ok {
		t.Error("x is there")
	}
	c.Set("a", "4")
	c.Set("x", "5")
	if want := []Field{{"a", "1"}, {"b", "2"}, {"a", "4"}, {"x", "5"}}; !slices.Equal(c.Fields, want) {
		t.Errorf("after Set: %v", c.Fields)
	}
}

func TestCloneOutlivesTheFrame(t *testing.T) {
	t.Parallel()
	b := frame(JSON, `{"code":10,"remark":"r","extFields":{"a":"x\u0001y","b":"z"}}`, "body")
	var c Command
	if err := Decode(b, &c); err != nil {
		t.Fatal(err)
	}
	d := c.Clone()
	if err := Decode(frame(JSON, `{"remark":"\u0041\u0041\u0041","extFields":{"k":"v"}}`, "----"), &c); err != nil {
		t.Fatal(err)
	}
	clear(b)
	sameCommand(t, d, &Command{Code: 10, Remark: "r", Fields: []Field{{"a", "x\x01y"}, {"b", "z"}}, Body: []byte("body")})
}

func TestChunksAreTheBody(t *testing.T) {
	t.Parallel()
	c := &Command{Code: 1, Chunks: [][]byte{[]byte("ab"), nil, []byte("c")}}
	var d Command
	if err := Decode(AppendCommand(nil, c), &d); err != nil || string(d.Body) != "abc" || c.BodyLen() != 3 {
		t.Errorf("body %q, %v", d.Body, err)
	}
	if e := c.Clone(); string(e.Body) != "abc" || e.Chunks != nil {
		t.Errorf("clone %+v", e)
	}
}

func TestFindAgreesWithTheByteLoop(t *testing.T) {
	t.Parallel()
	plain := func(b []byte, i int, x, y byte) int {
		for ; i < len(b); i++ {
			if b[i] == x || b[i] == y {
				return i
			}
		}
		return len(b)
	}
	b := make([]byte, 40)
	for v := range 256 {
		for at := range len(b) {
			for i := range b {
				b[i] = byte(v)
			}
			b[at] = '"'
			if at+3 < len(b) {
				b[at+3] = '\\'
			}
			for i := range 10 {
				if got, want := find(b, i, '"', '\\'), plain(b, i, '"', '\\'); got != want {
					t.Fatalf("%q from %d: %d, want %d", b, i, got, want)
				}
			}
		}
	}
}

func TestPlainAgreesWithTheByteLoop(t *testing.T) {
	t.Parallel()
	b := make([]byte, 24)
	for v := range 256 {
		for at := range len(b) {
			for i := range b {
				b[i] = 'x'
			}
			b[at] = byte(v)
			want := len(b)
			if v < ' ' || v == '"' || v == '\\' {
				want = at
			}
			if got := plain(b, 0); got != want {
				t.Fatalf("%q: %d, want %d", b, got, want)
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	in := AppendCommand(nil, sendCommand(1024))
	var c Command
	if n := testing.AllocsPerRun(100, func() {
		if err := Decode(in, &c); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("decoding again into a Command: %v allocations, want 0", n)
	}
	out := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { out = AppendCommand(out[:0], answer()) }); n > 1 {
		t.Errorf("writing an answer: %v allocations", n)
	}
}
