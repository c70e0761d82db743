package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a broker with its name server.
type server interface {
	name() string
	// start runs it on an empty store, or on the one it left, with extra settings
	// "key=value"; it returns without waiting.
	start(fresh bool, extra ...string) error
	// stop ends it; kill as a crash does.
	stop(kill bool) error
	pid() int
	broker() string
	running() []string // the extra settings it runs with; nil when it does not run
	rest()             // let it settle between two cases
}

type sundial struct {
	binary, dir string
	cmd         *exec.Cmd
	log         bytes.Buffer
	extra       []string
}

func (s *sundial) name() string      { return "Sundial" }
func (s *sundial) broker() string    { return "127.0.0.1:40911" }
func (s *sundial) running() []string { return s.extra }
func (s *sundial) rest()             { time.Sleep(time.Second) }

func (s *sundial) start(fresh bool, extra ...string) error {
	if err := free(s.broker()); err != nil {
		return err
	}
	if fresh {
		if err := os.RemoveAll(s.dir); err != nil {
			return err
		}
	}
	args := []string{"serve", "--data", s.dir, "--port-offset", "30000"}
	for _, e := range extra {
		args = append(args, "--set", e)
	}
	s.log.Reset()
	s.cmd = exec.Command(s.binary, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.extra = append([]string{}, extra...)
	return s.cmd.Start()
}

func (s *sundial) pid() int { return s.cmd.Process.Pid }

func (s *sundial) stop(kill bool) error {
	if s.cmd == nil {
		return nil
	}
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := s.cmd.Wait()
	s.cmd, s.extra = nil, nil
	if kill {
		return nil
	}
	return err
}

type rocketmq struct {
	script, dir string
	extra       []string
	names       bool // the name server runs
}

func (r *rocketmq) name() string      { return "RocketMQ" }
func (r *rocketmq) broker() string    { return "127.0.0.1:30911" }
func (r *rocketmq) running() []string { return r.extra }
func (r *rocketmq) rest()             { time.Sleep(2 * time.Second) }

func (r *rocketmq) sh(roles string, args ...string) *exec.Cmd {
	c := exec.Command(r.script, args...)
	c.Env = append(os.Environ(), "PEER_OFFSET=20000", "PEER_ROLES="+roles, "PEER_DIR="+r.dir)
	return c
}

func (r *rocketmq) start(fresh bool, extra ...string) error {
	if err := free(r.broker()); err != nil {
		return err
	}
	if !r.names {
		if out, err := r.sh("namesrv", "start").CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		r.names = true
	}
	if fresh {
		if err := os.RemoveAll(filepath.Join(r.dir, "store")); err != nil {
			return err
		}
	}
	c := r.sh("broker", append([]string{"start"}, extra...)...)
	r.extra = append([]string{}, extra...)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait() // the script waits for the port and ends
	return nil
}

func (r *rocketmq) pid() int {
	text, _ := os.ReadFile(filepath.Join(r.dir, "broker.pid"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

func (r *rocketmq) stop(kill bool) error {
	if r.extra == nil && !(kill && r.names) {
		return nil
	}
	args := []string{"stop"}
	if kill {
		args = append(args, "kill")
	}
	out, err := r.sh("broker", args...).CombinedOutput()
	r.extra = nil
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// end stops the name server too.
func (r *rocketmq) end() {
	if r.names {
		r.sh("namesrv", "stop").Run()
		r.names = false
	}
}

// free makes sure that nobody else answers at addr: what is measured is ours.
func free(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
	if err != nil {
		return nil
	}
	c.Close()
	return fmt.Errorf("somebody listens on %s already", addr)
}
