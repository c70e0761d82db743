package tidy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	t.Parallel()
	src := mustLoad(t)
	for _, p := range src.pkgs {
		var where []string
		text, code := "", false
		for _, f := range p.files {
			if f.test {
				continue
			}
			code = true
			if f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != "" {
				where = append(where, f.path)
				text = f.ast.Doc.Text()
			}
		}
		want := "Package " + p.name + " "
		switch {
		case !code:
		case len(where) == 0:
			t.Errorf("%s has no package comment, or a blank line cuts it off from its package clause: say in doc.go what it promises, what it needs and what a crash leaves", p.dir)
		case len(where) > 1:
			t.Errorf("%s has package comments in %s: keep one", p.dir, strings.Join(where, " and "))
		case !p.command() && !strings.HasPrefix(text, want):
			t.Errorf("%s: the package comment begins %.30q: begin it with %q", where[0], text, want)
		}
	}
}

// forbidden imports, each with where it is allowed and what to do elsewhere.
var forbidden = []struct {
	path    string
	allowed func(p *pkg, f *goFile) bool
	instead string
}{
	{"os", func(p *pkg, f *goFile) bool {
		return f.test || p.command() || p.dir == "internal/vfs" || p.dir == "internal/config" || p.dir == "internal/tidy" || strings.HasPrefix(p.dir, "cmd/")
	}, "reach the disk through internal/vfs, and take what the process knows (host name, environment) as an argument"},
	{"log", func(*pkg, *goFile) bool { return false },
		"return errors; where a log line is right, use log/slog on a logger that was handed in"},
	{"testing", func(p *pkg, f *goFile) bool { return f.test || strings.HasSuffix(p.dir, "test") },
		"move it to a _test.go file, or to a package whose name ends in test"},
	{"unsafe", func(p *pkg, f *goFile) bool { return p.dir == "internal/vfs" || p.dir == "internal/bin" },
		"use bin.String and bin.Bytes"},
}

// harmless are names of package os that touch nothing.
var harmless = []string{"ErrDeadlineExceeded"}

func TestNoForbiddenImports(t *testing.T) {
	t.Parallel()
	src := mustLoad(t)
	for _, p := range src.pkgs {
		for _, f := range p.files {
			for _, rule := range forbidden {
				if !slices.Contains(f.imports, rule.path) || rule.allowed(p, f) {
					continue
				}
				if rule.path == "os" && onlyHarmless(f) {
					continue
				}
				t.Errorf("%s imports %q: %s", f.path, rule.path, rule.instead)
			}
		}
	}
}

func onlyHarmless(f *goFile) bool {
	ok := true
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is && isIdent(s.X, "os") && !slices.Contains(harmless, s.Sel.Name) {
			ok = false
		}
		return true
	})
	return ok
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func isCall(n ast.Node, pkgName, name string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && isIdent(s.X, pkgName)
}

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	src := mustLoad(t)
	for _, p := range src.pkgs {
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: func init: build it where it is used, or make it a table", src.at(fn.Pos()))
				}
			}
		}
	}
}

func TestNoSleepsInTests(t *testing.T) {
	t.Parallel()
	src := mustLoad(t)
	for _, p := range src.pkgs {
		for _, f := range p.files {
			if !f.test {
				continue
			}
			for _, pos := range sleeps(f.ast) {
				t.Errorf("%s: time.Sleep in a test: wait for the condition itself, or run inside synctest.Test, where time is not real", src.at(pos.Pos()))
			}
		}
	}
}

// sleeps are the calls of time.Sleep that are not written inside a synctest.Test.
func sleeps(f *ast.File) (out []ast.Node) {
	ast.Inspect(f, func(n ast.Node) bool {
		if isCall(n, "synctest", "Test") {
			return false
		}
		if isCall(n, "time", "Sleep") {
			out = append(out, n)
		}
		return true
	})
	return out
}

func TestEveryConfigFieldIsDocumented(t *testing.T) {
	t.Parallel()
	src := mustLoad(t)
	for _, p := range src.pkgs {
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || spec.Name.Name != "Config" && spec.Name.Name != "Tunables" {
					return true
				}
				st, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				for _, name := range undocumented(p, st) {
					t.Errorf("%s: the field %s of %s.%s has no comment: give its meaning, unit, range and effect", src.at(name.Pos()), name.Name, p.name, spec.Name.Name)
				}
				return true
			})
		}
	}
}

// undocumented are the fields that have no comment, are not named in the comment
// of the field above them, and are not of a type of this package that has one.
func undocumented(p *pkg, st *ast.StructType) (out []*ast.Ident) {
	above := ""
	for _, field := range st.Fields.List {
		text := field.Doc.Text() + field.Comment.Text()
		if text != "" {
			above = text
			continue
		}
		for _, name := range field.Names {
			if !slices.Contains(strings.FieldsFunc(above, notLetter), name.Name) && !documentedType(p, field.Type) {
				out = append(out, name)
			}
		}
	}
	return out
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

func documentedType(p *pkg, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	for _, f := range p.files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.Name == id.Name {
					return g.Doc.Text()+ts.Doc.Text() != ""
				}
			}
		}
	}
	return false
}

// Nothing in the tree may depend on where it was written.
func TestNoPathsOfOneMachine(t *testing.T) {
	t.Parallel()
	words := []string{"/wo" + "rk/", "../sha" + "red"}
	for _, name := range mustLoad(t).all {
		info, err := os.Stat(root + "/" + name)
		if err != nil || info.Size() > 1<<20 {
			continue
		}
		b, err := os.ReadFile(root + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(b[:min(len(b), 512)], 0) >= 0 {
			continue // not text
		}
		for _, w := range words {
			if i := bytes.Index(b, []byte(w)); i >= 0 {
				t.Errorf("%s:%d mentions %q, a place on one machine: copy what is needed into the tree, or leave it out", name, 1+bytes.Count(b[:i], []byte("\n")), w)
			}
		}
	}
}

func TestFileNamesArePlain(t *testing.T) {
	t.Parallel()
	for _, name := range mustLoad(t).all {
		for _, r := range name {
			if r > '~' || r <= ' ' {
				t.Errorf("%q: file names are plain ASCII without blanks", name)
				break
			}
		}
	}
}

// The rules must find what they are for, or they are only a comfort.
func TestTheRulesFindWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	parse := func(text string) *goFile {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return &goFile{path: "x.go", ast: f}
	}
	f := parse(`package x
func a() { time.Sleep(1); synctest.Test(t, func(t *testing.T) { time.Sleep(2) }) }
func b() { go func() { time.Sleep(3) }() }`)
	if got := sleeps(f.ast); len(got) != 2 {
		t.Errorf("found %d sleeps, want the two outside of the bubble", len(got))
	}
	if !onlyHarmless(parse("package x\nvar e = os.ErrDeadlineExceeded")) || onlyHarmless(parse("package x\nvar e, f = os.ErrDeadlineExceeded, os.Args")) {
		t.Error("harmless uses of os are not told from others")
	}
	f = parse(`package x
// Documented is.
type Documented struct{}
type Plain struct{}
type Config struct {
	// A and B belong together.
	A int
	B int
	C int
	D Documented
	E Plain
	F int // a remark
}`)
	p := &pkg{name: "x", files: []*goFile{f}}
	var names []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if ts, ok := n.(*ast.TypeSpec); ok && ts.Name.Name == "Config" {
			for _, id := range undocumented(p, ts.Type.(*ast.StructType)) {
				names = append(names, id.Name)
			}
		}
		return true
	})
	if !slices.Equal(names, []string{"C", "E"}) {
		t.Errorf("undocumented are %q, want C and E", names)
	}
}
