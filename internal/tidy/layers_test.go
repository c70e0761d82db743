package tidy

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const drawing = "docs/ARCHITECTURE.md"

// floor is one line of the drawing.
type floor struct {
	name string
	dirs []string
}

// parseLayers reads the block that begins with ```layers, top floor first. A
// line is the floor's name, which may have several words, and the directories of
// its packages.
func parseLayers(text string) (floors []floor, err error) {
	_, block, ok := strings.Cut(text, "```layers\n")
	if !ok {
		return nil, fmt.Errorf("%s has no block that begins with ```layers", drawing)
	}
	block, _, ok = strings.Cut(block, "```")
	if !ok {
		return nil, fmt.Errorf("the layers block of %s does not end", drawing)
	}
	seen := map[string]string{}
	for line := range strings.Lines(block) {
		var f floor
		var name []string
		for _, word := range strings.Fields(line) {
			if word == "." || strings.Contains(word, "/") {
				if where, twice := seen[word]; twice {
					return nil, fmt.Errorf("%s is drawn on %q and on %q", word, where, strings.Join(name, " "))
				}
				seen[word] = strings.Join(name, " ")
				f.dirs = append(f.dirs, word)
			} else if len(f.dirs) == 0 {
				name = append(name, word)
			}
			// Words after the packages are remarks.
		}
		f.name = strings.Join(name, " ")
		if f.name == "" && len(f.dirs) == 0 {
			continue
		}
		if f.name == "" || len(f.dirs) == 0 {
			return nil, fmt.Errorf("a line of the layers block has no name or no package: %q", strings.TrimSpace(line))
		}
		floors = append(floors, f)
	}
	return floors, nil
}

// violations holds a drawing against who imports whom.
func violations(floors []floor, imports map[string][]string) (out []string) {
	level := map[string]int{} // higher is higher
	for i, f := range floors {
		for _, dir := range f.dirs {
			level[dir] = len(floors) - i
			if _, ok := imports[dir]; !ok {
				out = append(out, fmt.Sprintf("%s is drawn on the floor %q of %s but has no Go files: take it off that line", dir, f.name, drawing))
			}
		}
	}
	name := func(l int) string { return floors[len(floors)-l].name }
	for _, dir := range slices.Sorted(maps.Keys(imports)) {
		here, drawn := level[dir]
		if !drawn {
			out = append(out, undrawn(floors, level, dir, imports))
			continue
		}
		for _, to := range imports[dir] {
			there, ok := level[to]
			switch {
			case !ok: // told where the package itself is missing
			case there == here:
				out = append(out, fmt.Sprintf("%s imports %s, and both are on the floor %q: neighbours do not know each other; "+
					"declare a small interface in %s and let a floor above join them", dir, to, name(here), dir))
			case there > here:
				out = append(out, fmt.Sprintf("%s (floor %q) imports %s (floor %q), which is above it: imports go only downward; "+
					"take a func or an interface instead", dir, name(here), to, name(there)))
			}
		}
	}
	return out
}

// undrawn says which line a package that is not drawn belongs on.
func undrawn(floors []floor, level map[string]int, dir string, imports map[string][]string) string {
	low, high := 1, len(floors)
	lowBy, highBy := "", ""
	for _, to := range imports[dir] {
		if l := level[to]; l+1 > low {
			low, lowBy = l+1, to
		}
	}
	for from, list := range imports {
		if l, ok := level[from]; ok && slices.Contains(list, dir) && l-1 < high {
			high, highBy = l-1, from
		}
	}
	why := ""
	if lowBy != "" {
		why += ", above " + lowBy + " which it imports"
	}
	if highBy != "" {
		why += ", below " + highBy + " which imports it"
	}
	if low > high {
		return fmt.Sprintf("%s is not drawn in the layers block of %s: add a line with a new floor for it%s", dir, drawing, why)
	}
	var names []string
	for l := low; l <= high; l++ {
		names = append(names, fmt.Sprintf("%q", floors[len(floors)-l].name))
	}
	return fmt.Sprintf("%s is not drawn in the layers block of %s: add it to one of the lines %s%s", dir, drawing, strings.Join(names, ", "), why)
}

func TestImportsGoOnlyDownward(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/" + drawing)
	if err != nil {
		t.Fatal(err)
	}
	floors, err := parseLayers(string(text))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for _, p := range mustLoad(t).pkgs {
		set := map[string]bool{}
		code := false
		for _, f := range p.files {
			if f.test {
				continue // tests may reach for memfs and the like
			}
			code = true
			for _, path := range f.imports {
				if dir, ok := own(path); ok && dir != p.dir {
					set[dir] = true
				}
			}
		}
		if code {
			imports[p.dir] = slices.Sorted(maps.Keys(set))
		}
	}
	for _, v := range violations(floors, imports) {
		t.Error(v)
	}
}

func TestTheLayersTestFindsWhatItIsFor(t *testing.T) {
	t.Parallel()
	floors, err := parseLayers("text\n```layers\nroof         cmd/x  .   (the embedding)\n\nengine parts internal/a internal/b\nground       internal/c\n```\nmore")
	if err != nil {
		t.Fatal(err)
	}
	if len(floors) != 3 || floors[1].name != "engine parts" || !slices.Equal(floors[0].dirs, []string{"cmd/x", "."}) {
		t.Fatalf("parsed %+v", floors)
	}
	good := map[string][]string{"cmd/x": {"internal/a"}, ".": {"internal/c"}, "internal/a": {"internal/c"}, "internal/b": nil, "internal/c": nil}
	if v := violations(floors, good); len(v) != 0 {
		t.Errorf("a good house is blamed: %q", v)
	}
	for _, c := range []struct {
		name, dir string
		imports   []string
		want      string
	}{
		{"upward", "internal/c", []string{"internal/a"}, "which is above it"},
		{"sideways", "internal/a", []string{"internal/b"}, "neighbours do not know each other"},
		{"not drawn", "internal/n", []string{"internal/c"}, `add it to one of the lines "engine parts", "roof", above internal/c`},
		{"no floor fits", "internal/n", []string{"cmd/x"}, "add a line with a new floor"},
	} {
		bad := maps.Clone(good)
		bad[c.dir] = c.imports
		if v := violations(floors, bad); len(v) != 1 || !strings.Contains(v[0], c.want) {
			t.Errorf("%s: got %q, want %q", c.name, v, c.want)
		}
	}
	bad := maps.Clone(good)
	delete(bad, "internal/b")
	if v := violations(floors, bad); len(v) != 1 || !strings.Contains(v[0], "take it off") {
		t.Errorf("a drawn package that is missing gives %q", v)
	}
	for _, text := range []string{"no block", "```layers\nx internal/a", "```layers\ninternal/a\n```", "```layers\nx internal/a\ny internal/a\n```"} {
		if _, err := parseLayers(text); err == nil {
			t.Errorf("parsed %q", text)
		}
	}
}
