package nameapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	err := a.changeKV(func() { a.kv.Put(strings.Clone(h.Namespace), strings.Clone(h.Key), strings.Clone(h.Value)) })
	return ok(req, nil, nil), err
}

func (a *API) deleteKV(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	var h protocol.KVKeyHeader
	if err := protocol.DecodeFields(req.Fields, &h); err != nil {
		return nil, err
	}
	err := a.changeKV(func() { a.kv.Delete(h.Namespace, h.Key) })
	return ok(req, nil, nil), err
}

// changeKV changes settings and returns when the change is on disk. A change
// that could not be saved stands until the name server ends, and is saved with
// the next.
func (a *API) changeKV(change func()) error {
	a.saving.Lock()
	defer a.saving.Unlock()
	change()
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
		return nil, fmt.Errorf("%w: No config item, Namespace: %s Key: %s", mq.ErrNotFound, h.Namespace, h.Key)
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
		return nil, fmt.Errorf("%w: No config item, Namespace: %s", mq.ErrNotFound, h.Namespace)
	}
	return ok(req, nil, &protocol.KVTable{Table: keys}), nil
}

// getConfig tells what is in force, as a Java properties text.
func (a *API) getConfig(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	all := map[string]string{
		"orderMessageEnable":          strconv.FormatBool(a.cfg.OrderMessages),
		"scanNotActiveBrokerInterval": strconv.FormatInt(a.cfg.Scan.Milliseconds(), 10),
		"needWaitForService":          strconv.FormatBool(a.cfg.Route.WarmUp > 0),
		"waitSecondsForService":       strconv.FormatInt(int64(a.cfg.Route.WarmUp.Seconds()), 10),
		// The set of a broker's topics follows its registrations.
		"deleteTopicWithBrokerRegistration": "true",
	}
	maps.Copy(all, a.cfg.Properties)
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", key, propertyEscapes.Replace(all[key]))
	}
	resp := ok(req, nil, nil)
	resp.Body = []byte(text.String())
	return resp, nil
}

var propertyEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
