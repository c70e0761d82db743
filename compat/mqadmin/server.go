package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// side is one of the two clusters that are compared: a name server and a broker.
type side struct {
	name            string
	dir             string // store, logs, and the work directory of mqadmin
	offset          int
	namesrv, broker string
	stop            func()
}

const (
	brokerName  = "broker-a"
	clusterName = "DefaultCluster"
)

// settings hold for both sides: small files, and what differs by default between broker names and features.
var settings = []string{"mappedFileSizeCommitLog=16777216", "maxHashSlotNum=10000", "maxIndexNum=40000", "traceTopicEnable=true"}

func newSide(name, root string, offset int) (*side, error) {
	s := &side{name: name, dir: filepath.Join(root, name), offset: offset,
		namesrv: fmt.Sprintf("127.0.0.1:%d", 9876+offset), broker: fmt.Sprintf("127.0.0.1:%d", 10911+offset)}
	return s, os.MkdirAll(filepath.Join(s.dir, "work"), 0o755)
}

// freeOffset is the first from the given one on with which nobody has the ports.
func freeOffset(from int) (int, error) {
	for offset := from; offset < from+2000; offset += 20 {
		free := true
		for _, base := range []int{9876, 10909, 10911, 10912} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+offset))
			if err != nil {
				free = false
				break
			}
			l.Close()
		}
		if free {
			return offset, nil
		}
	}
	return 0, fmt.Errorf("no free ports from offset %d on", from)
}

// startSundial runs the server that stands in the repository.
func startSundial(root string, offset int) (*side, error) {
	s, err := newSide("sundial", root, offset)
	if err != nil {
		return nil, err
	}
	binary := os.Getenv("SUNDIAL_BINARY")
	if binary == "" {
		binary = filepath.Join(root, "sundial-server")
		build := exec.Command("go", "build", "-o", binary, "./cmd/sundial")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building the server: %w\n%s", err, out)
		}
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--data", filepath.Join(s.dir, "store"), "--port-offset", fmt.Sprint(offset), "--set", "brokerName=" + brokerName}
	for _, kv := range settings {
		args = append(args, "--set", kv)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	s.stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			<-ended
		}
	}
	return s, s.await(ended)
}

// await returns when both ports take connections.
func (s *side) await(ended chan struct{}) error {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-ended:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%s ended at start:\n%s", s.name, text)
		default:
		}
		up := 0
		for _, addr := range []string{s.namesrv, s.broker} {
			if c, err := net.Dial("tcp", addr); err == nil {
				c.Close()
				up++
			}
		}
		if up == 2 {
			return nil
		}
	}
	s.stop()
	return fmt.Errorf("%s does not listen on %s and %s after 60 s", s.name, s.namesrv, s.broker)
}

// startRocketMQ runs the real one.
func startRocketMQ(root string, offset int) (*side, error) {
	s, err := newSide("rocketmq", root, offset)
	if err != nil {
		return nil, err
	}
	run := func(args ...string) error {
		cmd := exec.Command("../rocketmq/rocketmq", args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("PEER_OFFSET=", offset), "PEER_DIR="+s.dir, "PEER_ROLES=namesrv broker",
			"PEER_HEAP=512m", "PEER_BROKER_NAME="+brokerName)
		// The servers keep the script's outputs open, so they are no pipes.
		log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("rocketmq %s: %w\n%s", strings.Join(args, " "), err, text)
		}
		return nil
	}
	s.stop = func() { run("stop", "kill") }
	if err := run(append([]string{"start"}, settings...)...); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}
