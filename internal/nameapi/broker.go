package nameapi

import (
	"strings"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/route"
)

// followed marks a connection whose end is reported to the table.
type followed struct{}

func (a *API) registerBroker(c *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.RegisterBrokerHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	body, err := protocol.DecodeRegisterBroker(&h, req.Version, req.Body)
	if err != nil {
		return nil, err
	}
	r := &route.Registration{
		Member: route.Member{
			Cluster: strings.Clone(h.Cluster), Name: strings.Clone(h.BrokerName), ID: h.BrokerID, Addr: strings.Clone(h.BrokerAddr), Link: c,
		},
		HAAddr:        strings.Clone(h.HAServerAddr),
		ActingMaster:  h.ActingMaster != nil && *h.ActingMaster,
		Old:           h.ActingMaster == nil,
		Version:       body.Table.DataVersion,
		Topics:        body.Table.Topics,
		FilterServers: body.FilterServers,
	}
	for topic, info := range body.Table.MappingInfo {
		if r.Mappings == nil {
			r.Mappings = make(map[string][]byte, len(body.Table.MappingInfo))
		}
		r.Mappings[topic] = info
	}
	if zone, found := req.Get("__ZONE_NAME"); found {
		r.Zone = strings.Clone(zone)
	}
	if h.HeartbeatMillis != nil && *h.HeartbeatMillis > 0 {
		r.Timeout = time.Duration(*h.HeartbeatMillis) * time.Millisecond
	}
	out, err := a.routes.Register(r, time.Now())
	if err != nil {
		a.log.Warn("registration refused", "broker", r.Name, "id", r.ID, "cluster", r.Cluster, "addr", r.Addr, "err", err)
		return nil, err
	}
	if c.Attached() == nil {
		c.Attach(followed{})
		c.OnClose(func() { a.linkClosed(c) })
	}
	a.tell(r, out)
	a.notifyMinIDs()
	resp := ok(req, &protocol.RegisterBrokerResponse{HAServerAddr: out.MasterHAAddr, MasterAddr: out.MasterAddr}, nil)
	if order := a.kv.Namespace(route.NamespaceOrder); len(order) > 0 && a.settings().ReturnOrder {
		resp.Body = protocol.EncodeBody(&protocol.KVTable{Table: order})
	}
	return resp, nil
}

// tell logs what is new about a registration.
func (a *API) tell(r *route.Registration, out route.Outcome) {
	log := a.log.With("broker", r.Name, "id", r.ID, "cluster", r.Cluster, "addr", r.Addr)
	if out.Was.Name != "" {
		log.Warn("another broker was at this address and is forgotten: one process has one name", "was", out.Was.Name, "wasID", out.Was.ID, "wasCluster", out.Was.Cluster)
	}
	switch {
	case out.Ignored:
		log.Warn("registration ignored: a later incarnation of this broker is registered from elsewhere")
	case out.Moved != "":
		log.Warn("broker is in another cluster now", "was", out.Moved)
	case out.Replaced != "":
		log.Warn("broker has another address now", "was", out.Replaced)
	case out.First:
		log.Info("broker registered", "topics", len(r.Topics))
	}
}

func (a *API) linkClosed(c *server.Conn) {
	for _, m := range a.routes.LinkClosed(c) {
		a.log.Warn("broker is gone: its connection ended", "broker", m.Name, "id", m.ID, "cluster", m.Cluster, "addr", m.Addr)
	}
	a.notifyMinIDs()
}

func (a *API) unregisterBroker(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.UnregisterBrokerHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	if a.routes.Unregister(route.Member{Cluster: h.Cluster, Name: h.BrokerName, ID: h.BrokerID, Addr: h.BrokerAddr}) {
		a.log.Info("broker said goodbye", "broker", h.BrokerName, "id", h.BrokerID, "cluster", h.Cluster, "addr", h.BrokerAddr)
	}
	a.notifyMinIDs()
	return ok(req, nil, nil), nil
}

func (a *API) brokerHeartbeat(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.BrokerHeartbeatHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	var timeout time.Duration
	if h.HeartbeatMillis != nil {
		timeout = time.Duration(*h.HeartbeatMillis) * time.Millisecond
	}
	a.routes.Heartbeat(h.Cluster, h.BrokerAddr, timeout, time.Now())
	return ok(req, nil, nil), nil
}

func (a *API) queryDataVersion(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.QueryDataVersionHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	var theirs mq.DataVersion
	if err := protocol.DecodeBody(req.Body, &theirs); err != nil {
		return nil, err
	}
	ours, known := a.routes.DataVersion(h.Cluster, h.BrokerAddr)
	changed := !known || ours != theirs
	if !changed {
		a.routes.Heartbeat(h.Cluster, h.BrokerAddr, 0, time.Now())
	}
	resp := ok(req, &protocol.QueryDataVersionResponse{Changed: changed}, nil)
	if known {
		resp.Body = protocol.EncodeBody(&ours)
	}
	return resp, nil
}

func (a *API) wipeWritePerm(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.BrokerNameHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	n := a.routes.SetWritable(h.BrokerName, false)
	a.log.Info("write permission taken", "broker", h.BrokerName, "topics", n)
	return ok(req, &protocol.WipeResponse{Topics: int32(n)}, nil), nil
}

func (a *API) addWritePerm(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.BrokerNameHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	n := a.routes.SetWritable(h.BrokerName, true)
	a.log.Info("write permission given", "broker", h.BrokerName, "topics", n)
	return ok(req, &protocol.AddWriteResponse{Topics: int32(n)}, nil), nil
}
