package protocol

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/mq"
)

var update = flag.Bool("update", false, "rewrite docs/PROTOCOL.md")

func TestCodeTableIsInOrder(t *testing.T) {
	t.Parallel()
	for i, r := range Requests() {
		if i > 0 && Requests()[i-1].Code >= r.Code {
			t.Errorf("%d comes after %d", r.Code, Requests()[i-1].Code)
		}
		if got, ok := Lookup(r.Code); !ok || got != r {
			t.Errorf("Lookup(%d) = %+v, %v", r.Code, got, ok)
		}
		if r.Name == "" || r.Name != strings.ToUpper(r.Name) {
			t.Errorf("code %d has the name %q", r.Code, r.Name)
		}
		if r.For == Nobody && r.Served() {
			t.Errorf("%s is served and belongs to nobody", r.Name)
		}
	}
	for _, c := range []Code{-1, 0, 9, 16, 9999, 300000} {
		if _, ok := Lookup(c); ok {
			t.Errorf("Lookup(%d) found something", c)
		}
	}
}

func TestWhyNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code Code
		at   Server
		want string
	}{
		{9999, Broker, "request type 9999 not supported: RocketMQ has no such code"},
		{37, NameServer, "request type 37 (END_TRANSACTION) not supported: it belongs to a broker"},
		{105, Broker, "request type 105 (GET_ROUTEINFO_BY_TOPIC) not supported: it belongs to a name server"},
		{10, NameServer, "request type 10 (SEND_MESSAGE) not supported: it belongs to a broker"},
	} {
		if got := WhyNot(c.code, c.at); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Whoever adds an outcome to package mq says here what it is on the wire.
func TestEveryErrorHasACode(t *testing.T) {
	t.Parallel()
	known := map[string]error{}
	for _, c := range codes {
		known[c.err.Error()] = c.err
	}
	fset := token.NewFileSet()
	files, err := filepath.Glob("../mq/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of package mq: %v", err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for i, id := range v.Names {
					if !strings.HasPrefix(id.Name, "Err") {
						continue
					}
					found++
					call, ok := v.Values[i].(*ast.CallExpr)
					if !ok {
						t.Fatalf("mq.%s is not made by errors.New", id.Name)
					}
					text := strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`)
					if known[text] == nil {
						t.Errorf("mq.%s has no response code: give it one in errors.go", id.Name)
					}
				}
			}
		}
	}
	if found != len(codes) {
		t.Errorf("package mq has %d errors, the table %d", found, len(codes))
	}
}

func TestErrorsAndCodesThereAndBack(t *testing.T) {
	t.Parallel()
	for _, c := range codes {
		wrapped := fmt.Errorf("doing this: %w", fmt.Errorf("%w: because of that", c.err))
		if got := CodeOf(wrapped); got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
		back := ErrorOf(c.code, "remark")
		if !errors.Is(back, c.err) || CodeOf(back) != c.code {
			t.Errorf("code %d came back as %v", c.code, back)
		}
	}
	if CodeOf(nil) != Success || ErrorOf(Success, "") != nil {
		t.Error("success is not nil")
	}
	if CodeOf(fs.ErrClosed) != SystemError {
		t.Error("an error nobody knows is not SYSTEM_ERROR")
	}
	if !errors.Is(ErrorOf(213, ""), mq.ErrSystem) {
		t.Error("a code nobody knows is not mq.ErrSystem")
	}
}

// docs/PROTOCOL.md is the code table in words.
func TestProtocolDocIsFresh(t *testing.T) {
	t.Parallel()
	const path = "../../docs/PROTOCOL.md"
	want := protocolDoc()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/PROTOCOL.md does not say what codes.go says: go test ./internal/protocol -run Fresh -update")
	}
}

func protocolDoc() string {
	var b strings.Builder
	b.WriteString(`# The remoting protocol: what is served

Made from the code table in internal/protocol/codes.go by
` + "`go test ./internal/protocol -run Fresh -update`" + `; edit the table, not this page.

Header forms, both: JSON and RocketMQ's binary. Every request that is not served
is answered REQUEST_CODE_NOT_SUPPORTED (3) with the reason below. Where an answer
differs from RocketMQ's on purpose, [COMPATIBILITY.md](COMPATIBILITY.md) says so.

`)
	served := 0
	for _, r := range Requests() {
		if r.Served() {
			served++
		}
	}
	fmt.Fprintf(&b, "RocketMQ 5.5.0 has %d request codes, %d are served.\n\n| code | name | asked of | served |\n|---|---|---|---|\n", len(Requests()), served)
	for _, r := range Requests() {
		why := "yes"
		if !r.Served() {
			why = "no: " + r.Why
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", r.Code, r.Name, r.For, why)
	}
	return b.String()
}

func TestRemarksLeaveTheOutcomeToTheCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: no route of t", mq.ErrNoTopic), "no route of t"},
		{fmt.Errorf("asking b: %w: no route of t", mq.ErrNoTopic), "asking b: topic not exist: no route of t"},
		{mq.ErrNoTopic, "topic not exist"},
		{errors.New("topic not exist: of another kind"), "topic not exist: of another kind"},
	} {
		if got := RemarkOf(tt.err); got != tt.want {
			t.Errorf("the remark of %q is %q, want %q", tt.err, got, tt.want)
		}
	}
}

// What a client sent, and is quoted, does not come back to it by the megabyte.
func TestRemarksAreCut(t *testing.T) {
	t.Parallel()
	got := RemarkOf(fmt.Errorf("%w: %sü", mq.ErrInvalid, strings.Repeat("x", MaxRemark-1)))
	if want := strings.Repeat("x", MaxRemark-1) + "... (4097 bytes)"; got != want {
		t.Errorf("the remark has %d bytes and ends %q", len(got), got[len(got)-20:])
	}
}
