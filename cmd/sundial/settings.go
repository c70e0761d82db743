package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

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
	f.StringVarP(&s.file, "config", "c", "", "read RocketMQ's broker.conf from `FILE`")
	f.StringVar(&s.data, "data", "", "keep everything in `DIR` (storePathRootDir; default ./sundial-data)")
	f.StringVar(&s.listen, "listen", "", "listen on `ADDR`, 0.0.0.0 for all (bindAddress)")
	f.IntVar(&s.portOffset, "port-offset", 0, "add `N` to every default port")
	f.StringArrayVar(&s.set, "set", nil, "set one `KEY=VALUE` of RocketMQ's or ours; may be repeated")
	f.StringVar(&s.roles, "roles", "namesrv,broker", "what this process is, of namesrv and broker")
	f.StringVarP(&s.namesrv, "namesrv", "n", "", "register with the name servers `HOST:PORT;...` (namesrvAddr)")
	f.StringArrayVar(&s.ignore, "ignore-pending", nil, "open a store although it holds pending work of this `KIND` that cannot be served: timer, transaction, pop")
}

// load makes the node's configuration of it.
func (s *settings) load() (node.Config, []string, error) {
	cfg := node.DefaultConfig()
	var err error
	if cfg.Roles, err = node.ParseRoles(s.roles); err != nil {
		return cfg, nil, &usageError{err}
	}
	if s.file != "" {
		return cfg, nil, fmt.Errorf("reading configuration files is not built yet")
	}
	cfg.Broker.Name = hostname()
	if s.data != "" {
		cfg.Dir = s.data
	}
	if s.listen != "" {
		cfg.Bind = s.listen
	}
	cfg.ShiftPorts(s.portOffset)
	if s.namesrv != "" {
		cfg.Broker.NameServers = strings.FieldsFunc(s.namesrv, func(r rune) bool { return r == ';' || r == ',' })
	}
	cfg.Broker.IgnorePending = s.ignore
	for _, kv := range s.set {
		key, value, _ := strings.Cut(kv, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		st := &cfg.Broker.Store
		switch key {
		case "mappedFileSizeCommitLog":
			st.LogFileSize = n
		case "maxHashSlotNum":
			st.IndexSlots = int(n)
		case "maxIndexNum":
			st.IndexEntries = int(n)
		case "flushDiskType":
			st.SyncFlush = value == "SYNC_FLUSH"
		case "brokerName":
			cfg.Broker.Name = value
		default:
			return cfg, nil, fmt.Errorf("unknown key %s", key)
		}
	}
	return cfg, nil, nil
}
