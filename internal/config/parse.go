package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/magiconair/properties"
)

// parse reads a properties file into its keys and values, in order, each with
// file:line. The library decodes; cutting the text into logical lines first is
// what makes the line numbers known.
func parse(file string, text []byte) ([]given, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: not UTF-8", file)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	var out []given
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		start := i
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		if continues(line) {
			line = line[:len(line)-1] // a last line that nothing continues
		}
		origin := fmt.Sprintf("%s:%d", file, start+1)
		props, err := loader.LoadBytes([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not key=value: %w", origin, line, err)
		}
		for _, key := range props.Keys() {
			value, _ := props.Get(key)
			out = append(out, given{key, strings.TrimSpace(value), origin})
		}
	}
	return out, nil
}

// continues reports whether a line ends in an odd number of backslashes.
func continues(line string) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}
