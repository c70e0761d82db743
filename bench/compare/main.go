// Compare loads Sundial and a real RocketMQ in turn on this machine, with the
// same load program, and prints one table: rates, latencies, CPU seconds per
// million messages, memory. Run it from this directory:
//
//	go run ./compare            everything, about fifteen minutes
//	go run ./compare -quick     smaller counts, about five
//	go run ./compare -only sundial
//
// RocketMQ comes from Maven Central through compat/rocketmq; it needs Java and
// Maven. Both servers run with their defaults unless a row says otherwise. Every
// load is bounded in count or time and goes to the loopback address.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

type settings struct {
	quick bool
	only  string
	rows  string
	out   string
}

func main() {
	var s settings
	flag.BoolVar(&s.quick, "quick", false, "smaller counts")
	flag.StringVar(&s.only, "only", "", "one server alone: sundial or rocketmq")
	flag.StringVar(&s.rows, "rows", "", "only cases whose name contains this")
	flag.StringVar(&s.out, "json", "", "also write all results to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "sundial-compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sundial")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/sundial")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	var servers []server
	if s.only != "rocketmq" {
		servers = append(servers, &sundial{binary: binary, dir: filepath.Join(dir, "s")})
	}
	if s.only != "sundial" {
		script, err := filepath.Abs("../compat/rocketmq/rocketmq")
		if err != nil {
			return err
		}
		servers = append(servers, &rocketmq{script: script, dir: filepath.Join(dir, "r")})
	}
	defer func() {
		for _, v := range servers {
			v.stop(true)
			if r, ok := v.(*rocketmq); ok {
				r.end()
			}
		}
	}()
	m := &measurement{ctx: ctx, load: binary, settings: s, results: map[string]map[string]*figures{}}
	for _, c := range cases(s.quick) {
		if !strings.Contains(c.name, s.rows) {
			continue
		}
		m.names = append(m.names, c.name)
		for _, v := range servers {
			if err := ctx.Err(); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s  %-44s %s\n", time.Now().Format("15:04:05"), c.name, v.name())
			f, err := c.run(m, v)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, v.name(), err)
			}
			if m.results[c.name] == nil {
				m.results[c.name] = map[string]*figures{}
			}
			m.results[c.name][v.name()] = f
			m.row(os.Stderr, c.name, v.name(), f)
			v.rest()
		}
	}
	m.print(os.Stdout)
	if s.out != "" {
		text, err := json.MarshalIndent(m.results, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(s.out, append(text, '\n'), 0o644)
	}
	return nil
}
