package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDrawings holds the drawings of docs/formats against those in the comments
// of the code that reads and writes the bytes. A block that begins with
//
//	```drawing internal/record/format.go
//
// must stand, line for line, in one comment of that file.
func TestDrawings(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "docs/formats/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs/formats: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := "docs/formats/" + filepath.Base(page)
		for i, part := range strings.Split("\n"+string(text), "\n```drawing ") {
			if i == 0 {
				continue
			}
			block, _, closed := strings.Cut(part, "\n```")
			source, drawn, _ := strings.Cut(block, "\n")
			if !closed || drawn == "" {
				t.Errorf("%s: the drawing of %s has no end or no lines", name, source)
				continue
			}
			code, err := os.ReadFile(filepath.Join(root, source))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			comment := "//\t" + strings.ReplaceAll(drawn, "\n", "\n//\t") + "\n"
			if !strings.Contains(string(code), "\n"+comment) {
				t.Errorf("%s draws something else than the comment in %s: make them equal, and look which of the two the bytes follow", name, source)
			}
		}
	}
}
