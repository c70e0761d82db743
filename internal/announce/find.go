package announce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// finds reports whether the name servers are looked for all the time.
func (c *Config) finds() bool { return c.ByDNS || c.asksServer() }

// asksServer reports whether a server is asked for them.
func (c *Config) asksServer() bool { return c.UseAddressServer && len(c.NameServers) == 0 }

// find is where the name servers are now.
func (a *Announcer) find(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	if a.cfg.asksServer() {
		return a.askServer(ctx)
	}
	found := map[string]bool{}
	for _, name := range a.cfg.NameServers {
		host, port, err := net.SplitHostPort(name)
		if err != nil {
			return nil, err
		}
		addrs, err := a.cfg.Resolve(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, addr := range addrs {
			found[net.JoinHostPort(addr.Unmap().String(), port)] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Bounds of a look for name servers: its time, and what a server may answer.
const (
	findTimeout = 10 * time.Second
	maxList     = 64 << 10
)

// askServer asks the address server: the first line of its answer is host:port of
// the name servers, with semicolons between.
func (a *Announcer) askServer(ctx context.Context) ([]string, error) {
	url := addressURL(a.cfg.AddressServer)
	status, body, err := a.cfg.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answers with status %d", url, status)
	}
	line, _, _ := strings.Cut(strings.TrimLeft(string(body), "\r\n "), "\n")
	var addrs []string
	for addr := range strings.SplitSeq(strings.TrimSpace(line), ";") {
		if addr = strings.TrimSpace(addr); addr == "" {
			continue
		}
		host, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || host == "" {
			return nil, fmt.Errorf("%s answers %.100q, which is not host:port;host:port", url, line)
		}
		addrs = append(addrs, addr)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%s names no name server", url)
	}
	slices.Sort(addrs)
	return slices.Compact(addrs), nil
}

// addressURL is what RocketMQ makes of rocketmq.namesrv.domain, unless it is a URL
// already.
func addressURL(server string) string {
	switch {
	case strings.Contains(server, "://"):
		return server
	case strings.Contains(server, ":"):
		return "http://" + server + "/rocketmq/nsaddr"
	}
	return "http://" + server + ":8080/rocketmq/nsaddr"
}

// get is Config.Get by HTTP.
func get(ctx context.Context, url string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	if err == nil && len(body) > maxList {
		err = fmt.Errorf("%s answers more than %d bytes", url, maxList)
	}
	return resp.StatusCode, body, err
}

// resolve is Config.Resolve by the machine's resolver.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// follow looks for the name servers until ctx is done, and starts and stops to
// tell them as they come and go. When the look fails, those known stay.
func (a *Announcer) follow(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	stop := map[*nameServer]context.CancelFunc{}
	defer func() {
		for _, cancel := range stop {
			cancel()
		}
	}()
	failing := false
	tick := time.NewTicker(a.cfg.LookupPeriod)
	defer tick.Stop()
	for ctx.Err() == nil {
		addrs, err := a.find(ctx)
		if err == nil && len(addrs) == 0 {
			err = errors.New("there is none")
		}
		if err != nil && ctx.Err() == nil && !failing {
			a.log.Warn("the name servers are not found; those known stay", "known", len(*a.servers.Load()), "err", err)
		}
		failing = err != nil
		if err == nil {
			for s, cancel := range stop {
				if !slices.Contains(addrs, s.addr) {
					a.log.Warn("name server is not listed any more", "namesrv", s.addr)
					s.dropped.Store(true)
					cancel()
					delete(stop, s)
				}
			}
			for _, s := range a.know(addrs) {
				sctx, cancel := context.WithCancel(ctx)
				stop[s] = cancel
				running.Go(func() { s.run(sctx) })
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// know makes addrs the name servers, and returns those that are new.
func (a *Announcer) know(addrs []string) (fresh []*nameServer) {
	before := *a.servers.Load()
	now := make([]*nameServer, 0, len(addrs))
	for _, addr := range addrs {
		i := slices.IndexFunc(before, func(s *nameServer) bool { return s.addr == addr })
		if i >= 0 {
			now = append(now, before[i])
			continue
		}
		s := newNameServer(a, addr)
		now, fresh = append(now, s), append(fresh, s)
	}
	a.servers.Store(&now)
	return fresh
}
