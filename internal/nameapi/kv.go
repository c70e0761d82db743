package nameapi

import (
	"fmt"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
)

func (a *API) putKV(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.KVHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	err := a.changeKV(func() error {
		return a.kv.Put(strings.Clone(h.Namespace), strings.Clone(h.Key), strings.Clone(h.Value))
	})
	return ok(req, nil, nil), err
}

func (a *API) deleteKV(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.KVKeyHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	err := a.changeKV(func() error {
		a.kv.Delete(h.Namespace, h.Key)
		return nil
	})
	return ok(req, nil, nil), err
}

// changeKV changes settings and returns when the change is on disk. A change
// that could not be saved stands until the name server ends, and is saved with
// the next.
func (a *API) changeKV(change func() error) error {
	a.saving.Lock()
	defer a.saving.Unlock()
	if err := change(); err != nil {
		return err
	}
	if err := a.file.Save(kvFile{a.kv.All()}); err != nil {
		a.log.Error("settings are not saved", "err", err)
		return fmt.Errorf("%w: %v", mq.ErrSystem, err)
	}
	return nil
}

func (a *API) getKV(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.KVKeyHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	value, found := a.kv.Get(h.Namespace, h.Key)
	if !found {
		return nil, answer(protocol.QueryNotFound, "No config item, Namespace: %s Key: %s", h.Namespace, h.Key)
	}
	return ok(req, &protocol.KVResponse{Value: &value}, nil), nil
}

func (a *API) listKV(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.KVNamespaceHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	keys := a.kv.Namespace(h.Namespace)
	if keys == nil {
		return nil, answer(protocol.QueryNotFound, "No config item, Namespace: %s", h.Namespace)
	}
	return ok(req, nil, &protocol.KVTable{Table: keys}), nil
}
