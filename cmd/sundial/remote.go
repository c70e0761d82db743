package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/client"
)

// remote asks servers over the wire, as any client does.
type remote struct {
	pool    *client.Pool
	timeout time.Duration // of each question
}

func newRemote() (*remote, error) {
	pool, err := client.NewPool(client.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return &remote{pool, callTimeout}, nil
}

func (r *remote) Close() error { return r.pool.Close() }

// callTimeout bounds a question that does not wait for anything.
const callTimeout = 10 * time.Second

// ask sends one request. header is a struct of package protocol, or nil. An
// answer that says no is a *protocol.ResponseError that names request and server.
func (r *remote) ask(ctx context.Context, addr string, code protocol.Code, header any, body []byte) (*remoting.Command, error) {
	cmd := remoting.NewRequest(int32(code))
	if header != nil {
		cmd.Fields = protocol.EncodeFields(header)
	}
	return r.send(ctx, addr, cmd, body)
}

func (r *remote) send(ctx context.Context, addr string, cmd *remoting.Command, body []byte) (*remoting.Command, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	cmd.Body = body
	name := protocol.RequestName(protocol.Code(cmd.Code))
	resp, err := r.pool.Call(ctx, addr, cmd)
	if err != nil {
		return resp, &unreachableError{fmt.Errorf("%s to %s: %w", name, addr, err)}
	}
	if err := protocol.ErrorOf(protocol.Code(resp.Code), resp.Remark); err != nil {
		return resp, fmt.Errorf("%s to %s: %w", name, addr, err)
	}
	return resp, nil
}

// askBody asks and reads the body of the answer into v.
func (r *remote) askBody(ctx context.Context, addr string, code protocol.Code, header any, v any) error {
	resp, err := r.ask(ctx, addr, code, header, nil)
	if err != nil {
		return err
	}
	return protocol.DecodeBody(resp.Body, v)
}

// askFields asks and reads the header of the answer into v.
func (r *remote) askFields(ctx context.Context, addr string, code protocol.Code, header any, v any) error {
	resp, err := r.ask(ctx, addr, code, header, nil)
	if err != nil {
		return err
	}
	return protocol.DecodeFields(resp.Fields, v)
}
