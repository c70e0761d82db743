package node

import (
	"context"
	"errors"
)

// Node is a running node.
type Node struct{}

// Start opens everything that cfg asks for and returns when the node serves.
// It stops when ctx is done or Close is called.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	return nil, errors.New("not built yet")
}

// Wait blocks until the node has stopped and returns why, nil when it was told
// to and closed clean.
func (n *Node) Wait() error { return nil }

// Close stops the node and waits until it has.
func (n *Node) Close() error { return nil }
