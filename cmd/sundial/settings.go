package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

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
	s.registerRoles(f)
	f.StringVarP(&s.namesrv, "namesrv", "n", "", "register with the name servers `HOST:PORT;...` (namesrvAddr), and start none here")
	f.StringArrayVar(&s.ignore, "ignore-pending", nil, "open a store although it holds pending work of this `KIND` that cannot be served: pop")
}

func (s *settings) registerRoles(f *pflag.FlagSet) {
	f.StringVar(&s.roles, "roles", "", "what this process is, `ROLES` of namesrv and broker (default both, and broker alone when it registers with name servers elsewhere)")
}

// saidRoles are those of --roles, both when it says none.
func (s *settings) saidRoles() (node.Roles, error) {
	if s.roles == "" {
		return node.NameServer | node.Broker, nil
	}
	roles, err := node.ParseRoles(s.roles)
	if err != nil {
		return 0, &usageError{fmt.Errorf("--roles: %w", err)}
	}
	return roles, nil
}

// rolesOf is what the process is: a broker alone when nobody said otherwise and
// its name servers are others.
func (s *settings) rolesOf(all *config.Settings) (node.Roles, error) {
	roles, err := s.saidRoles()
	if err == nil && s.roles == "" && (s.namesrv != "" || all.FetchNamesrvAddrByServer || len(all.NamesrvAddr) > 0 && !mayBeHere(all.NamesrvAddr, all.NamesrvListenPort)) {
		roles = node.Broker
	}
	return roles, err
}

// mayBeHere reports whether one of the name servers may be that of this process,
// which listens on port: it is on this machine, as far as its name says.
func mayBeHere(names []string, port int) bool {
	for _, name := range names {
		host, p, err := net.SplitHostPort(name)
		if err != nil || p != strconv.Itoa(port) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		cancel()
		if err == nil && slices.ContainsFunc(addrs, ofThisMachine) {
			return true
		}
	}
	return false
}

// lookupTimeout bounds the question whether a name means this machine.
const lookupTimeout = 2 * time.Second

func ofThisMachine(addr netip.Addr) bool {
	if addr = addr.Unmap(); addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr.WithZone("")
	})
}

// read is every setting in force, with its origin, and what the process is.
func (s *settings) read() (*config.Settings, node.Roles, error) {
	roles, err := s.saidRoles()
	if err != nil {
		return nil, 0, err
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
	roles, err = s.rolesOf(all)
	return all, roles, err
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
