package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// admin runs `sundial admin` against this node and returns what it wrote.
func (n *node) admin(args ...string) []byte {
	n.t.Helper()
	out, err := n.tryAdmin(args...)
	if err != nil {
		n.t.Fatalf("admin %v: %v", args, err)
	}
	return out
}

func (n *node) tryAdmin(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"admin", "-n", n.namesrv}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.Bytes(), errors.Join(err, errors.New(said.String()))
	}
	return out.Bytes(), nil
}

// adminJSON is admin with --json, read into v.
func (n *node) adminJSON(v any, args ...string) {
	n.t.Helper()
	out := n.admin(append(args, "--json")...)
	if err := json.Unmarshal(out, v); err != nil {
		n.t.Fatalf("admin %v: %v in\n%s", args, err, out)
	}
}

// message is what admin tells of one.
type message struct {
	ID         string            `json:"id"`
	Body       string            `json:"body"`
	Compressed string            `json:"compressed"`
	Size       int               `json:"bodySize"`
	Queue      int               `json:"queue"`
	Offset     int64             `json:"queueOffset"`
	Properties map[string]string `json:"properties"`
}

// stored lists everything in a topic, by admin.
func (n *node) stored(topic string) []message {
	n.t.Helper()
	var all []message
	n.adminJSON(&all, "message", "list", topic, "--max", "1000000")
	return all
}

// eventually waits until a condition holds.
func eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
