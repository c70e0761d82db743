package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// played is the matrix gone through on one side: the text of each case by its ID.
type played struct {
	text map[string]string
	took map[string]time.Duration
}

// play goes through the whole matrix on s.
func play(s *side, tools *javaTools, items []*item, verbose bool) (*played, error) {
	work := filepath.Join(s.dir, "work")
	five, err := startDriver(tools, "Driver", tools.server, s.namesrv, work)
	if err != nil {
		return nil, err
	}
	defer five.stop()
	four, err := startDriver(tools, "Clients", tools.client4, s.namesrv, work)
	if err != nil {
		return nil, err
	}
	defer four.stop()
	p := &played{map[string]string{}, map[string]time.Duration{}}
	vars := map[string]string{"broker": s.broker, "namesrv": s.namesrv, "dir": work}
	fill := func(words []string) ([]string, error) {
		out := make([]string, len(words))
		for i, w := range words {
			out[i] = expand(w, vars)
			if bad := placeholder.FindString(out[i]); bad != "" {
				return nil, fmt.Errorf("nothing is called %s", bad)
			}
		}
		return out, nil
	}
	if err := s.ready(five); err != nil {
		return nil, err
	}
	if err := covered(five, items); err != nil {
		return nil, err
	}
	for _, it := range items {
		switch {
		case it.file != "":
			text := expand(it.words[0], vars)
			if err := os.WriteFile(filepath.Join(work, it.file), []byte(text), 0o644); err != nil {
				return nil, err
			}
		case it.client != "":
			words, err := fill(it.words)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", it.line, err)
			}
			d := five
			if it.client == "4.9.8" {
				d = four
			}
			began := time.Now()
			answer, err := d.client(words)
			if verbose {
				fmt.Fprintf(os.Stderr, "%-9s %6.2f s  %s: %s %v\n", s.name, time.Since(began).Seconds(), strings.Join(words, " "), answer, err)
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", it.line, strings.Join(words, " "), err)
			}
			p.capture(vars, it.capture, answer)
		case it.c != nil:
			args, err := fill(it.c.Args)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", it.line, err)
			}
			r, err := s.admin(five, it.c, args)
			if err != nil {
				return nil, fmt.Errorf("line %d: %s: %w", it.line, it.c.ID, err)
			}
			files := it.c.made(work)
			p.text[it.c.ID], p.took[it.c.ID] = it.c.show(r, files, s), r.took
			if verbose {
				fmt.Fprintf(os.Stderr, "%-9s %6.2f s  %s\n", s.name, r.took.Seconds(), strings.Join(args, " "))
			}
		}
	}
	return p, nil
}

// admin runs a case, again while it waits for what is not there yet.
func (s *side) admin(d *driver, c *testCase, args []string) (result, error) {
	deadline := time.Now().Add(c.timeout)
	for {
		r, err := d.admin(c.timeout, args)
		if err != nil || c.until == nil || c.until.MatchString(r.out) || time.Now().After(deadline) {
			return r, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ready waits until the broker is registered.
func (s *side) ready(d *driver) error {
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		r, err := d.admin(30*time.Second, []string{"clusterList"})
		if err != nil {
			return err
		}
		if strings.Contains(r.out, brokerName) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no broker in the cluster list after 90 s:\n%s%s", s.name, r.out, r.err)
		}
	}
}

// covered asks the tool which sub-commands it has, and fails if the matrix lacks one.
func covered(d *driver, items []*item) error {
	r, err := d.admin(30*time.Second, nil)
	if err != nil {
		return err
	}
	have := commandsOf(casesOf(items))
	var missing []string
	n := 0
	for line := range strings.Lines(r.out) {
		if !strings.HasPrefix(line, "   ") {
			continue
		}
		n++
		if name := strings.Fields(line)[0]; !have[name] {
			missing = append(missing, name)
		}
	}
	if n < 90 || len(missing) > 0 {
		return fmt.Errorf("the tool lists %d sub-commands; the matrix has no case of: %s", n, strings.Join(missing, ", "))
	}
	return nil
}

// made reads the files that the case is about, and removes them, so that the next makes its own.
func (c *testCase) made(work string) map[string]string {
	files := map[string]string{}
	for _, name := range c.files {
		found, _ := filepath.Glob(filepath.Join(work, name))
		for _, path := range found {
			if text, err := os.ReadFile(path); err == nil {
				files[name] = string(text)
				os.Remove(path)
			}
		}
	}
	return files
}

// capture keeps the words of a step's answer: {NAME}, and of a send {NAME.uniq}, {NAME.id}, {NAME.queue}, {NAME.offset}.
func (p *played) capture(vars map[string]string, name, answer string) {
	if name == "" {
		return
	}
	vars[name] = answer
	words := strings.Fields(answer)
	for i, part := range []string{"uniq", "id", "queue", "offset"} {
		vars[name+"."+part] = "none"
		if i < len(words) {
			vars[name+"."+part] = words[i]
		}
	}
}

func expand(s string, vars map[string]string) string {
	return placeholder.ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := vars[m[1:len(m)-1]]; ok {
			return v
		}
		return m
	})
}
