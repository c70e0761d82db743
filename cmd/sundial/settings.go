package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sundial-mq/sundial/internal/config"
	"github.com/sundial-mq/sundial/internal/node"
)

// settings is what the command line says about a node.
type settings struct {
	file       string
	data       string
	listen     string
	portOffset int
	set        []string
	roles      string
	namesrv    string
	ignore     []string
}

func (s *settings) register(f *pflag.FlagSet) {
	f.StringVarP(&s.file, "config", "c", "", "read RocketMQ's broker.conf (or namesrv.conf) from `FILE`")
	f.StringVar(&s.data, "data", "", "keep everything in `DIR` (storePathRootDir; default ./sundial-data, and RocketMQ's ~/store with -c)")
	f.StringVar(&s.listen, "listen", "", "listen on `ADDR`, 0.0.0.0 for all (bindAddress)")
	f.IntVar(&s.portOffset, "port-offset", 0, "add `N` to every default port (not to ports that a file or --set names)")
	f.StringArrayVar(&s.set, "set", nil, "set one `KEY=VALUE` of RocketMQ's or ours; may be repeated")
	f.StringVar(&s.roles, "roles", "namesrv,broker", "what this process is, of namesrv and broker")
	f.StringVarP(&s.namesrv, "namesrv", "n", "", "register with the name servers `HOST:PORT;...` (namesrvAddr) instead of with the own one")
	f.StringArrayVar(&s.ignore, "ignore-pending", nil, "open a store although it holds pending work of this `KIND` that cannot be served: timer, transaction, pop")
}

// read is every setting in force, with its origin.
func (s *settings) read() (*config.Settings, node.Roles, error) {
	roles, err := node.ParseRoles(s.roles)
	if err != nil {
		return nil, 0, &usageError{err}
	}
	if low, high := -9875, 65535-10911; s.portOffset < low || s.portOffset > high {
		return nil, 0, &usageError{fmt.Errorf("--port-offset is %d, from %d to %d all ports are possible", s.portOffset, low, high)}
	}
	in := config.Input{NameServerOnly: roles == node.NameServer, PortOffset: s.portOffset}
	for _, text := range s.set {
		o, err := config.ParseSet(text)
		if err != nil {
			return nil, 0, &usageError{err}
		}
		in.Overrides = append(in.Overrides, o)
	}
	for _, flag := range []struct{ name, key, value string }{
		{"--data", "storePathRootDir", s.data},
		{"--listen", "bindAddress", s.listen},
		{"--namesrv", "namesrvAddr", strings.ReplaceAll(s.namesrv, ",", ";")},
		{"--ignore-pending", "ignorePending", strings.Join(s.ignore, ",")},
	} {
		if flag.value != "" {
			in.Overrides = append(in.Overrides, config.Override{Key: flag.key, Value: flag.value, Origin: flag.name})
		}
	}
	all, err := config.Load(s.file, in)
	if err != nil {
		return nil, 0, &usageError{listed(err)}
	}
	return all, roles, nil
}

// listed writes several complaints below one another.
func listed(err error) error {
	lines := strings.Split(err.Error(), "\n")
	if len(lines) == 1 {
		return err
	}
	return fmt.Errorf("%d settings are wrong:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// load makes the node's configuration of it.
func (s *settings) load() (node.Config, []string, error) {
	all, roles, err := s.read()
	if err != nil {
		return node.Config{}, nil, err
	}
	return all.Node(roles), all.Warnings, nil
}
