package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the module's directory, seen from this package's.
const root = "../.."

const module = "github.com/sundial-mq/sundial"

// goFile is one parsed source file.
type goFile struct {
	path    string // slash separated, from the root
	test    bool
	ast     *ast.File
	imports []string
}

// pkg is the files of one directory. The root package's directory is ".".
type pkg struct {
	dir   string
	name  string // of its files that are not tests
	files []*goFile
}

type sources struct {
	fset *token.FileSet
	pkgs []*pkg   // sorted by directory; those with Go files only
	all  []string // every file of the tree, from the root
}

var load = sync.OnceValues(func() (*sources, error) {
	src := &sources{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if rel != "." && skipped(path, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() || rel == ".git" {
			return nil
		}
		src.all = append(src.all, rel)
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := parser.ParseFile(src.fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := pathDir(rel)
		p := byDir[dir]
		if p == nil {
			p = &pkg{dir: dir}
			byDir[dir] = p
			src.pkgs = append(src.pkgs, p)
		}
		g := &goFile{path: rel, test: strings.HasSuffix(rel, "_test.go"), ast: f}
		for _, im := range f.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			g.imports = append(g.imports, name)
		}
		if !g.test {
			p.name = f.Name.Name
		}
		p.files = append(p.files, g)
		return nil
	})
	slices.SortFunc(src.pkgs, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return src, err
})

// skipped are directories that are not this module's sources: hidden ones, other
// modules, fixtures, data of a broker that was run here.
func skipped(path, name string) bool {
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "sundial-data" || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

func pathDir(rel string) string {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i]
	}
	return "."
}

func mustLoad(t *testing.T) *sources {
	t.Helper()
	src, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(src.pkgs) < 5 {
		t.Fatalf("found %d packages from %s: the walk is wrong", len(src.pkgs), root)
	}
	return src
}

// command reports whether the package is a program.
func (p *pkg) command() bool { return p.name == "main" }

// own turns an import path into a directory of this module.
func own(path string) (dir string, ok bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// at is a position as an editor understands it.
func (s *sources) at(pos token.Pos) string {
	p := s.fset.Position(pos)
	rel, err := filepath.Rel(root, p.Filename)
	if err != nil {
		rel = p.Filename
	}
	return filepath.ToSlash(rel) + ":" + strconv.Itoa(p.Line)
}
