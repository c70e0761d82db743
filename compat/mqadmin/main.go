// Command mqadmin runs every sub-command of RocketMQ's own administration tool against a RocketMQ and against Sundial,
// after the same preparations, and compares what it prints. README.md says how.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	recorded = "testdata"
	page     = "../../docs/MQADMIN.md"
)

func main() {
	verbose := flag.Bool("v", false, "say each step and how long it took")
	keep := flag.Bool("keep", false, "keep stores and logs")
	offset := flag.Int("offset", 18000, "added to every port, or the next greater number with which they are free")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, `usage: mqadmin [flags] quick|full|record|table
  quick               Sundial only, held against the recorded answers
  full                both, held against each other and against the recorded answers
  record              both, and keep the answers and the table
  sundial, rocketmq   one of them only, and keep its answers and the table
  table               write the table again from what is recorded
`)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ok, err := run(flag.Arg(0), *offset, *verbose, *keep)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mqadmin:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(mode string, offset int, verbose, keep bool) (ok bool, err error) {
	items, err := readMatrix("matrix.txt")
	if err != nil {
		return false, err
	}
	cases := casesOf(items)
	old, err := readRecorded(cases)
	if err != nil {
		return false, err
	}
	if mode == "table" {
		return true, writeTable(cases, old)
	}
	sundial, rocketmq := true, true
	switch mode {
	case "quick", "sundial":
		rocketmq = false
	case "rocketmq":
		sundial = false
	case "full", "record":
	default:
		return false, fmt.Errorf("no mode %q", mode)
	}
	root, err := os.MkdirTemp("", "sundial-mqadmin-")
	if err != nil {
		return false, err
	}
	if keep {
		fmt.Println("stores and logs:", root)
	} else {
		defer os.RemoveAll(root)
	}
	tools, err := compileJava(root)
	if err != nil {
		return false, err
	}
	// One after the other: on a small machine each would only see the other's load.
	now := &answers{old.rocketmq, old.sundial}
	if sundial {
		if now.sundial, err = playOn(root, startSundial, offset, tools, items, verbose); err != nil {
			return false, err
		}
	}
	if rocketmq {
		if now.rocketmq, err = playOn(root, startRocketMQ, offset, tools, items, verbose); err != nil {
			return false, err
		}
	}
	if mode == "record" || mode == "sundial" || mode == "rocketmq" {
		if err := now.write(cases); err != nil {
			return false, err
		}
		if err := writeTable(cases, now); err != nil {
			return false, err
		}
	}
	return report(cases, old, now, mode), nil
}

// playOn starts one side, goes through the matrix on it, and stops it.
func playOn(root string, start func(string, int) (*side, error), offset int, tools *javaTools, items []*item, verbose bool) (map[string]string, error) {
	began := time.Now()
	offset, err := freeOffset(offset)
	if err != nil {
		return nil, err
	}
	s, err := start(root, offset)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	up := time.Since(began)
	p, err := play(s, tools, items, verbose)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (log in %s)", s.name, err, filepath.Join(s.dir, "log"))
	}
	fmt.Printf("%s: %d commands in %.0f s, after %.0f s to start\n", s.name, len(p.text), (time.Since(began) - up).Seconds(), up.Seconds())
	return p.text, nil
}
