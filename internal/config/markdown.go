package config

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown is docs/CONFIG.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Written from the table in internal/config by "go test ./internal/config -update". Do not edit. -->

Sundial needs no configuration. It reads RocketMQ's ` + "`broker.conf`" + ` and ` + "`namesrv.conf`" + ` (` + "`sundial serve -c FILE`" + `): a Java properties
file in UTF-8, one ` + "`key=value`" + ` a line, ` + "`#`" + ` for remarks, no expansion of ` + "`${…}`" + `. Any key can be given as ` + "`--set key=value`" + ` too, which
goes before the file. An unknown key stops the start and the nearest known one is named; so does a wrong value, with file and line.
` + "`sundial config`" + ` prints what is in force and where each value is from.

Keys in *italics* are Sundial's own; all others are RocketMQ's.
`)
	section := ""
	for i := range keys {
		k := &keys[i]
		if k.Use != Used {
			continue
		}
		if k.Section != section {
			section = k.Section
			fmt.Fprintf(&b, "\n## %s\n\n| key | default | value | what it does |\n|---|---|---|---|\n", section)
		}
		name, preset := k.Name, k.Default
		if k.Own() {
			name = "*" + name + "*"
		}
		if preset != "" {
			preset = "`" + preset + "`"
		}
		if k.Java != "" && !k.Own() {
			preset += " (RocketMQ: `" + k.Java + "`)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, preset, cell(k.Wants()), cell(k.Doc))
	}
	b.WriteString("\n## Refused\n\nWhat other values of these keys ask for is not there, and a start that ignored them would pretend.\n\n| key | only value | why |\n|---|---|---|\n")
	for i := range keys {
		if k := &keys[i]; k.Use == Refused {
			preset := "(empty)"
			if k.Default != "" {
				preset = "`" + k.Default + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", k.Name, preset, cell(k.Doc))
		}
	}
	b.WriteString("\n## Accepted and not needed\n\nThese are read and checked. A value other than RocketMQ's default is told at the start, once, and changes nothing.\n")
	byWhy := map[string][]string{}
	var whys []string
	for i := range keys {
		if k := &keys[i]; k.Use == Accepted {
			if byWhy[k.Doc] == nil {
				whys = append(whys, k.Doc)
			}
			byWhy[k.Doc] = append(byWhy[k.Doc], k.Name)
		}
	}
	slices.Sort(whys)
	for _, why := range whys {
		fmt.Fprintf(&b, "\n**%s.** %s\n", strings.ToUpper(why[:1])+why[1:], strings.Join(byWhy[why], ", "))
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
