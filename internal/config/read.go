package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Override is one value that goes before the file's, with what to call its
// origin in messages: "--set", "--data", …
type Override struct{ Key, Value, Origin string }

// ParseSet reads a key=value of the command line.
func ParseSet(text string) (Override, error) {
	key, value, ok := strings.Cut(text, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return Override{}, fmt.Errorf("--set %s: want key=value", text)
	}
	return Override{Key: key, Value: strings.TrimSpace(value), Origin: "--set"}, nil
}

// Input is all that Settings are made from.
type Input struct {
	// File is the name of the configuration file, empty for none; Text is its content.
	File string
	Text []byte
	// Overrides go before the file; the last one of a key counts.
	Overrides []Override
	// NameServerOnly makes listenPort the name server's, as in RocketMQ's namesrv.conf.
	NameServerOnly bool
	// PortOffset is added to every port that is a default.
	PortOffset int
	// HostName, Home and NamesrvAddr are what the machine says: the host's name,
	// the user's directory and the environment's NAMESRV_ADDR.
	HostName, Home, NamesrvAddr string
}

// Load reads file (empty for none) and fills in what the machine says, then
// does as [Read].
func Load(file string, in Input) (*Settings, error) {
	in.File, in.Text = file, nil
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		in.Text = text
	}
	in.HostName, _ = os.Hostname()
	in.Home, _ = os.UserHomeDir()
	in.NamesrvAddr = os.Getenv("NAMESRV_ADDR")
	return Read(in)
}

// given is one value that somebody gave.
type given struct {
	key, value string
	origin     string
}

// maxComplaints bounds what is said at once: a file that is something else
// altogether has something wrong on every line.
const maxComplaints = 50

// complaints are what is wrong, each with the place in the input it is about.
type complaints []complaint

type complaint struct {
	at  int
	err error
}

func (c *complaints) add(at int, err error) { *c = append(*c, complaint{at, err}) }

// join makes one error of all, in the order of the input.
func (c complaints) join() error {
	slices.SortStableFunc(c, func(a, b complaint) int { return a.at - b.at })
	errs := make([]error, len(c))
	for i := range c {
		errs[i] = c[i].err
	}
	return errors.Join(errs...)
}

// Read makes Settings, or joins everything that is wrong with what was given.
func Read(in Input) (*Settings, error) {
	s := &Settings{texts: map[string]string{}, origins: map[string]string{}}
	var all complaints
	for _, d := range defaults(in) {
		if err := s.set(d); err != nil {
			// The table is tested; what is wrong is the machine's.
			all.add(-1, err)
		}
	}
	lines, err := parse(in.File, in.Text)
	if err != nil {
		return nil, err
	}
	unneeded := map[string][]string{} // reason to keys
	type refused struct {
		given
		at int
	}
	refusals := map[string]refused{}
	seen := map[string]string{}
	for _, o := range in.Overrides {
		lines = append(lines, given{o.Key, o.Value, o.Origin})
	}
	for i, g := range lines {
		if len(all) >= maxComplaints {
			all.add(i, errors.New("and perhaps more"))
			break
		}
		if in.NameServerOnly && g.key == "listenPort" {
			g.key = "namesrvListenPort"
		}
		k := lookup(g.key)
		if k == nil {
			all.add(i, fmt.Errorf("%s: %w", g.origin, unknown(g.key)))
			continue
		}
		before, again := seen[g.key]
		seen[g.key] = g.origin
		if again && strings.HasPrefix(before, in.File+":") && strings.HasPrefix(g.origin, in.File+":") {
			s.Warnings = append(s.Warnings, fmt.Sprintf("%s: %s is given again; the value of %s does not count", g.origin, g.key, before))
		}
		if err := s.set(g); err != nil {
			all.add(i, err)
			continue
		}
		g.value = k.canonical(g.value)
		delete(refusals, k.Name)
		unneeded[k.Doc] = slices.DeleteFunc(unneeded[k.Doc], func(name string) bool { return name == k.Name })
		switch {
		case k.Use == Refused && g.value != k.Default:
			refusals[k.Name] = refused{g, i}
		case k.Use == Accepted && g.value != k.Default:
			unneeded[k.Doc] = append(unneeded[k.Doc], k.Name)
		}
	}
	for name, r := range refusals {
		all.add(r.at, refusal(r.given, lookup(name)))
	}
	for _, why := range slices.Sorted(maps.Keys(unneeded)) {
		if names := unneeded[why]; len(names) > 0 {
			s.Warnings = append(s.Warnings, fmt.Sprintf("accepted and not needed: %s (%s)", strings.Join(names, ", "), why))
		}
	}
	if len(all) > 0 {
		return nil, all.join()
	}
	s.derive(in)
	return s, nil
}

// defaults are the values that hold when nobody says otherwise.
func defaults(in Input) []given {
	var out []given
	for i := range keys {
		k := &keys[i]
		if k.Use != Used {
			continue
		}
		g := given{k.Name, k.Default, "default"}
		switch k.Name {
		case "brokerName":
			g.value, g.origin = in.HostName, "default (the host's name)"
			if g.value == "" {
				g.value, g.origin = "DEFAULT_BROKER", "default (the host has no name)"
			}
			if in.PortOffset != 0 && in.File == "" {
				// Two brokers of one name in a cluster would push each other out of the routes.
				g.value, g.origin = fmt.Sprintf("%s-%d", g.value, in.PortOffset), "default (the host's name and --port-offset)"
			}
		case "bindAddress":
			g.value = "127.0.0.1"
			if in.File != "" {
				g.value = "0.0.0.0"
			}
		case "storePathRootDir":
			g.value = "sundial-data"
			if in.File != "" && in.Home != "" {
				g.value = filepath.Join(in.Home, "store")
			}
		case "namesrvAddr":
			if in.NamesrvAddr != "" {
				g.value, g.origin = in.NamesrvAddr, "environment NAMESRV_ADDR"
			}
		case "listenPort", "namesrvListenPort":
			if in.PortOffset != 0 {
				port, _ := strconv.Atoi(k.Default)
				g.value, g.origin = strconv.Itoa(port+in.PortOffset), "default (--port-offset)"
			}
		case "fastListenPort":
			continue // derived, when the other port is known
		}
		out = append(out, g)
	}
	return out
}

// derive fills in what depends on other values.
func (s *Settings) derive(in Input) {
	if _, ok := s.texts["fastListenPort"]; !ok {
		s.FastListenPort = -1
		switch {
		case s.ListenPort == 0:
			s.FastListenPort = 0
		case s.ListenPort > 2:
			s.FastListenPort = s.ListenPort - 2
		}
		s.texts["fastListenPort"] = strconv.Itoa(s.FastListenPort)
		s.origins["fastListenPort"] = "default (listenPort - 2)"
	}
	s.MappedFileSizeConsumeQueue = (s.MappedFileSizeConsumeQueue + 19) / 20 * 20
}

// set checks a value and puts it where it belongs.
func (s *Settings) set(g given) error {
	k := lookup(g.key)
	value, err := k.check(g.value)
	if err != nil {
		return fmt.Errorf("%s: %s=%s: %w", g.origin, g.key, g.value, err)
	}
	if k.Use != Used {
		return nil
	}
	store(k.field(s), k.Unit, value)
	s.texts[k.Name] = k.canonical(g.value)
	s.origins[k.Name] = g.origin
	return nil
}

func refusal(g given, k *Key) error {
	allowed := "only " + k.Default + " is served"
	if k.Default == "" {
		allowed = "only an empty value is served"
	}
	return fmt.Errorf("%s: %s=%s: %s: %s", g.origin, g.key, g.value, allowed, k.Doc)
}
