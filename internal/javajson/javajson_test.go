package javajson_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sundial-mq/sundial/internal/javajson"
)

func TestStandard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{}`, `{}`},
		{` [ 1 , -2.5e+3 , true,false,null ] `, `[1,-2.5e+3,true,false,null]`},
		{`{0:12,1:30}`, `{"0":12,"1":30}`},
		{`{-1:{2:[]}}`, `{"-1":{"2":[]}}`},
		{`{name:'it\'s "here"'}`, `{"name":"it's \"here\""}`},
		{`{"a":"x\u4e2d\/\\y"}`, `{"a":"x\u4e2d\/\\y"}`},
		{`{'a':'\v\x41\0'}`, `{"a":"\u000b\u0041\u0000"}`},
		{"{\"a\":\"tab\there\x01\"}", `{"a":"tab\u0009here\u0001"}`},
		{`{{"queueId":0,"topic":"t"}:12}`, `{"{\"queueId\":0,\"topic\":\"t\"}":12}`},
		{`{ { "a" : 'b"' , 1:2 } : {} }`, `{"{\"a\":\"b\\\"\",\"1\":2}":{}}`},
		{`{null:1,true:2}`, `{"null":1,"true":2}`},
		{`"text"`, `"text"`},
	} {
		got, err := javajson.Standard([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s became %s, %v, want %s", c.in, got, err, c.want)
		}
		if !json.Valid(got) {
			t.Errorf("%s became %s, which is not JSON", c.in, got)
		}
	}
}

func TestStandardSaysWhereItIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		at   int64
		want string
	}{
		{``, 0, "ends where a value belongs"},
		{`{`, 1, "where a key belongs"},
		{`{"a"`, 4, "a colon belongs"},
		{`{"a":`, 5, "ends where a value belongs"},
		{`{"a":1`, 6, "a comma or }"},
		{`{"a":1,}`, 7, "where a key belongs"},
		{`[1,]`, 3, "where a value belongs"},
		{`[1 2]`, 3, "a comma or ]"},
		{`{"a":1} x`, 8, "text behind the end"},
		{`"abc`, 4, "does not end"},
		{`"abc\`, 4, "does not end"},
		{`'abc"`, 5, "does not end"},
		{`"\u12g4"`, 1, "hex digits"},
		{`"\q"`, 1, "unknown escape"},
		{`[01]`, 3, "is not a number"},
		{`[1.]`, 3, "is not a number"},
		{`[-]`, 2, "is not a number"},
		{`[nul]`, 4, "unknown word"},
		{`{{{"a":1}:1}:1}`, 2, "a key inside a key"},
		{strings.Repeat("[", 201) + strings.Repeat("]", 201), 200, "nested deeper"},
		{`{"a":` + strings.Repeat("{a:", 250), 602, "nested deeper"},
	} {
		_, err := javajson.Standard([]byte(c.in))
		e, ok := errors.AsType[*javajson.SyntaxError](err)
		if !ok || e.Offset != c.at || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%.40s: %v, want byte %d: %s", c.in, err, c.at, c.want)
		}
	}
	if _, err := javajson.Standard([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200))); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
}

// TestRocketMQFiles rewrites bodies and files that RocketMQ 5.5.0 wrote; those
// with object keys become the same bytes again.
func TestRocketMQFiles(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/rocketmq/*.json")
	if len(files) < 10 {
		t.Fatal("no test data")
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		std, err := javajson.Standard(src)
		if err != nil || !json.Valid(std) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.Contains(src, []byte("{{")) {
			again, err := javajson.MarshalObjectKeys(json.RawMessage(std))
			if err != nil || !bytes.Equal(again, src) {
				t.Errorf("%s: %v (-file +again)\n%s", name, err, cmp.Diff(string(src), string(again)))
			}
		}
		if bytes.HasPrefix(src, []byte("{\n")) {
			again, err := javajson.MarshalPretty(json.RawMessage(std))
			if want := quoteKeys(t, src); err != nil || string(again) != want {
				t.Errorf("%s: %v (-file +again)\n%s", name, err, cmp.Diff(want, string(again)))
			}
		}
	}
}

// quoteKeys puts quotes around the integer keys of a pretty file, the one
// difference that we make.
func quoteKeys(t *testing.T, src []byte) string {
	var out []string
	for line := range strings.SplitSeq(string(src), "\n") {
		tabs := len(line) - len(strings.TrimLeft(line, "\t"))
		if key, rest, ok := strings.Cut(line[tabs:], ":"); ok && key[0] != '"' {
			line = line[:tabs] + `"` + key + `":` + rest
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// TestWhatJavaDecodes: every spelling that one of RocketMQ's decoders takes, ours
// takes too.
func TestWhatJavaDecodes(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/decoder.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var c struct {
			Version, Class, Case, JSON string
			OK                         bool
		}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := javajson.Unmarshal([]byte(c.JSON), &v); err != nil {
			t.Errorf("%s, %s of %s: %v", c.Case, c.Class, c.Version, err)
		}
	}
	if n != 40 {
		t.Errorf("%d cases, want 40", n)
	}
}

// queue is a key that is an object.
type queue struct {
	Broker string `json:"brokerName"`
	ID     int    `json:"queueId"`
	Topic  string `json:"topic"`
}

func (q queue) MarshalText() ([]byte, error) { type plain queue; return javajson.Marshal(plain(q)) }
func (q *queue) UnmarshalText(b []byte) error {
	type plain queue
	return json.Unmarshal(b, (*plain)(q))
}

func TestObjectKeys(t *testing.T) {
	t.Parallel()
	type stats struct {
		Table map[queue]int64 `json:"offsetTable"`
		Tps   float64         `json:"tps"`
	}
	want := stats{Table: map[queue]int64{{"b", 0, "t"}: 12, {"b", 1, `a"<\&`}: 5}}
	b, err := javajson.MarshalObjectKeys(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); got != `{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:12,{"brokerName":"b","queueId":1,"topic":"a\"<\\&"}:5},"tps":0}` {
		t.Errorf("wrote %s", got)
	}
	for _, src := range []string{string(b), strings.ReplaceAll(string(b), ",", " ,\n "), `{offsetTable:{{"topic":"t",'queueId':0,brokerName:'b'}:12,{"brokerName":"b","queueId":1,"topic":"a\"<\\&"}:5}}`} {
		var got stats
		if err := javajson.Unmarshal([]byte(src), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: read %+v, %v", src, got, err)
		}
	}
	// A string that looks like an object but is none stays what it is.
	b, err = javajson.MarshalObjectKeys(map[string]any{"{odd": 1, "{}": "{}", "list": []string{"{}"}})
	if want := `{"list":["{}"],"{odd":1,{}:"{}"}`; err != nil || string(b) != want {
		t.Errorf("wrote %s, %v, want %s", b, err, want)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`{"a":{"x":1},"b":{"$ref":"$.a"}}`, `{"a":{"x":1},"b":{"x":1}}`},
		{`{"a":[{"x":[1,2]}],"b":{"$ref":"$.a[0].x[1]"}}`, `{"a":[{"x":[1,2]}],"b":2}`},
		{`{"a":{"x":1},"b":{"$ref":"$.a"},"c":{"$ref":"$.b"}}`, `{"a":{"x":1},"b":{"x":1},"c":{"x":1}}`},
		{`{"t":{"a.b@g":{0:1}},"b":{"$ref":"$.t.a.b@g"}}`, `{"t":{"a.b@g":{"0":1}},"b":{"0":1}}`},
		{`{"t":{"a.b":{"c":5}},"b":{"$ref":"$.t.a\\.b.c"}}`, `{"t":{"a.b":{"c":5}},"b":5}`},
		{`{"t":{"a":7},"b":{"$ref":"$.t['a']"}}`, `{"t":{"a":7},"b":7}`},
		{`{"t":"<x>","b":{$ref:'$.t'}}`, `{"t":"<x>","b":"<x>"}`},
		{`{"big":12345678901234567890,"b":{"$ref":"$.big"}}`, `{"big":12345678901234567890,"b":12345678901234567890}`},
		{`{"$ref":"$.a","a":1}`, `{"$ref":"$.a","a":1}`}, // not alone: an ordinary member
		{`{"a":{"$ref":1}}`, `{"a":{"$ref":1}}`},
	} {
		got, err := javajson.Standard([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(decoded(t, c.want), decoded(t, string(got))); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, d)
		}
	}
	for _, c := range []struct{ in, want string }{
		{`{"a":{"$ref":"$.nowhere"}}`, "nothing stands there"},
		{`{"a":[],"b":{"$ref":"$.a[0]"}}`, "nothing stands there"},
		{`{"a":{"b":{"$ref":".."}}}`, "only paths from the root"},
		{`{"a":{"$ref":"$"}}`, "lead to each other"},
		{`{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}`, "lead to each other"},
		{`{"a":{"$ref":"$.` + strings.Repeat("x", 1100) + `"}}`, "at most 1024 bytes"},
	} {
		if _, err := javajson.Standard([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v, want %s", c.in, err, c.want)
		}
	}
}

func decoded(t *testing.T, s string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return v
}

// TestReferencesDoNotExplode: a few references to references could stand for
// more than any memory.
func TestReferencesDoNotExplode(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"l0":["` + strings.Repeat("x", 1000) + `"]`)
	for i := range 30 {
		ref := `{"$ref":"$.l` + string(rune('0'+i/10)) + string(rune('0'+i%10)) + `"}`
		if i == 0 {
			ref = `{"$ref":"$.l0"}`
		}
		n := string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		b.WriteString(`,"l` + n + `":[` + ref + `,` + ref + `,` + ref + `]`)
	}
	b.WriteString(`}`)
	if _, err := javajson.Standard([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "written out") {
		t.Errorf("%v", err)
	}
}

func TestInt(t *testing.T) {
	t.Parallel()
	var v struct{ CodeSet []javajson.Int }
	if err := javajson.Unmarshal([]byte(`{"codeSet":["2598919",-5,null,'7']}`), &v); err != nil || !cmp.Equal(v.CodeSet, []javajson.Int{2598919, -5, 0, 7}) {
		t.Errorf("%v, %v", v.CodeSet, err)
	}
	if err := javajson.Unmarshal([]byte(`{"codeSet":["x"]}`), &v); err == nil {
		t.Error("x is taken for a number")
	}
}

func TestMarshal(t *testing.T) {
	t.Parallel()
	v := map[string]any{"a": "<&>", "b": []int{}, "c": map[string]int{}, "d": []any{1, map[string]any{"e": ",{"}}}
	b, err := javajson.Marshal(v)
	if want := `{"a":"<&>","b":[],"c":{},"d":[1,{"e":",{"}]}`; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	b, err = javajson.MarshalPretty(v)
	if want := "{\n\t\"a\":\"<&>\",\n\t\"b\":[],\n\t\"c\":{},\n\t\"d\":[\n\t\t1,\n\t\t{\n\t\t\t\"e\":\",{\"\n\t\t}\n\t]\n}"; err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}

func FuzzStandard(f *testing.F) {
	files, _ := filepath.Glob("testdata/rocketmq/*.json")
	for _, name := range files {
		if src, err := os.ReadFile(name); err == nil && len(src) < 2000 {
			f.Add(src)
		}
	}
	for _, s := range []string{`{0:'a\x41',{"k":[1,{}]}:"$ref"}`, `{"a":{"x":1},"b":{"$ref":"$.a.x"}}`, `[1e5,-0,true]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := javajson.Standard(src)
		if err != nil {
			if json.Valid(src) && !bytes.Contains(src, []byte("$ref")) && !bytes.Contains(src, []byte(`\u0024`)) && deepest(src) <= javajson.MaxDepth {
				t.Fatalf("%q is JSON, but: %v", src, err)
			}
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", src, got)
		}
		if len(got) > 8*len(src)+64<<10+1024 {
			t.Fatalf("%d bytes became %d", len(src), len(got))
		}
		if !bytes.Contains(src, []byte("ref")) {
			if len(got) > 8*len(src) {
				t.Fatalf("%d bytes became %d", len(src), len(got))
			}
			if json.Valid(src) {
				var want bytes.Buffer
				_ = json.Compact(&want, src)
				if !bytes.Equal(want.Bytes(), got) {
					t.Fatalf("%q became %q", src, got)
				}
			}
			if again, err := javajson.Standard(got); err != nil || !bytes.Equal(again, got) {
				t.Fatalf("%q became %q, then %q, %v", src, got, again, err)
			}
		}
		var v any
		if javajson.Unmarshal(src, &v) == nil {
			if _, err := javajson.MarshalPretty(v); err != nil {
				t.Fatal(err)
			}
			if _, err := javajson.MarshalObjectKeys(v); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// deepest is the deepest nesting in JSON.
func deepest(src []byte) (most int) {
	d := json.NewDecoder(bytes.NewReader(src))
	depth := 0
	for {
		tok, err := d.Token()
		if err != nil {
			return most
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
			most = max(most, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	for _, name := range []string{"q-34-HEART_BEAT-1", "r-208-GET_CONSUME_STATS-1"} {
		src, err := os.ReadFile("testdata/rocketmq/" + name + ".json")
		if err != nil {
			b.Fatal(err)
		}
		b.Run("body="+name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				var v struct{ ClientID string }
				if err := javajson.Unmarshal(src, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
