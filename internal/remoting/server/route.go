package server

import (
	"context"
	"fmt"
	"strconv"

	"github.com/sundial-mq/sundial/internal/metric"
	"github.com/sundial-mq/sundial/internal/remoting"
)

// Table says who handles which request code. A server reads it once, when it
// is made.
type Table map[int32]Route

// Route is how requests of one code are handled.
type Route struct {
	// Name of the code, for logs and metrics, such as PULL_MESSAGE. Empty means
	// the number.
	Name string

	// Class the requests belong to.
	Class *Class

	// Handle answers a request.
	Handle Handler
}

// Handler answers one request. It returns the answer; or nil when it gives the
// answer later, through [Conn.Later] or [Conn.Reply]; or [NoAnswer] when there
// will be none. What it returns for a one-way request is thrown away (but
// Release is called). The answer belongs to the server from then on: opaque
// number, response flag and header form are filled in there. Its Body is copied
// before the call returns, so it may point anywhere.
//
// ctx is done when the server gives up waiting for it, after the grace period.
//
// A handler of an inline class runs on the connection's reader and must not
// wait; the request is gone when it returns. See the package comment.
type Handler func(ctx context.Context, c *Conn, req *remoting.Command) *remoting.Command

// NoAnswer is returned by a [Handler] for a request that gets no answer, now or
// later.
var NoAnswer = &remoting.Command{Remark: "no answer"}

// Answers given by the server itself.
const (
	codeSystemError  int32 = 1
	codeBusy         int32 = 2
	codeNotSupported int32 = 3
)

// route is a Route with its counter.
type route struct {
	Route
	requests *metric.Counter
}

// denseCodes is how many low codes are looked up in a slice: all that are hot.
const denseCodes = 512

type routes struct {
	dense  [denseCodes]*route
	sparse map[int32]*route
}

func newRoutes(table Table, server string, reg *metric.Registry) (*routes, error) {
	rs := &routes{sparse: make(map[int32]*route)}
	for code, r := range table {
		if r.Class == nil || r.Handle == nil {
			return nil, fmt.Errorf("code %d (%s) has no class or no handler", code, r.Name)
		}
		if r.Name == "" {
			r.Name = strconv.Itoa(int(code))
		}
		rt := &route{Route: r, requests: reg.Counter("sundial_remoting_requests_total", "Requests by code.",
			metric.Label{Name: "server", Value: server}, metric.Label{Name: "code", Value: strconv.Itoa(int(code))}, metric.Label{Name: "request", Value: r.Name})}
		if code >= 0 && code < denseCodes {
			rs.dense[code] = rt
		} else {
			rs.sparse[code] = rt
		}
	}
	return rs, nil
}

func (rs *routes) of(code int32) *route {
	if code >= 0 && code < denseCodes {
		return rs.dense[code]
	}
	return rs.sparse[code]
}
