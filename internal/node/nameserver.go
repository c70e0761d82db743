package node

import (
	"context"
	"net/netip"
	"path/filepath"

	"github.com/sundial-mq/sundial/internal/nameapi"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

// nameServer is the parts of that role.
type nameServer struct {
	cfg  NameServerConfig
	ln   *door
	self string // how the broker of the same node reaches it
	api  *nameapi.API
}

func (p *parts) listenNameServer() (*nameServer, error) {
	n := &nameServer{cfg: p.cfg.NameServer}
	var err error
	if n.ln, err = p.listen("name server", n.cfg.Port, "--set namesrvListenPort=N"); err != nil {
		return nil, err
	}
	at := n.ln.addr
	host := at.Addr()
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	n.self = netip.AddrPortFrom(host, at.Port()).String()
	told, err := advertised(p.cfg.Broker.Advertise, p.cfg.Bind, ownAddrs())
	if err != nil {
		return nil, err
	}
	p.at.NameServer = netip.AddrPortFrom(told, at.Port())
	return n, nil
}

func (n *nameServer) open(p *parts) error {
	n.cfg.API.Log, n.cfg.API.Metrics = p.log, p.metrics
	var err error
	if n.api, err = nameapi.Open(p.fs, filepath.Join(p.cfg.Dir, "namesrv"), n.cfg.API); err != nil {
		return err
	}
	p.loaded("kvConfig.json", n.api.Loaded())
	cfg := n.cfg.Server
	cfg.Name, cfg.Log, cfg.Metrics = "namesrv", p.log, p.metrics
	s, err := server.New(cfg, n.api.Table())
	if err != nil {
		return err
	}
	p.stack.Add("routes", n.api.Run)
	p.stack.Add("name server port", func(ctx context.Context) error { return s.Serve(ctx, n.ln.ln) })
	return nil
}
