package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// driver is the Java process that runs mqadmin and clients of 5.5.0, or only clients of 4.9.8.
type driver struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	plain bool // answers are single lines: Clients, not Driver

	mu sync.Mutex
}

// javaTools are the class paths that drivers run with.
type javaTools struct {
	server, client4, classes string
}

// compileJava fetches the jars if they are missing and compiles the drivers into dir.
func compileJava(dir string) (*javaTools, error) {
	t := &javaTools{classes: filepath.Join(dir, "classes")}
	for profile, to := range map[string]*string{"server": &t.server, "client4": &t.client4} {
		out, err := exec.Command("../rocketmq/rocketmq", "classpath", profile).Output()
		if err != nil {
			return nil, fmt.Errorf("fetching the jars %s: %w", profile, err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		*to = lines[len(lines)-1]
	}
	javac := exec.Command("javac", "-nowarn", "-Xlint:-removal", "-d", t.classes, "-cp", t.server, "java/Clients.java", "java/Driver.java")
	if out, err := javac.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w\n%s", err, out)
	}
	return t, nil
}

// startDriver starts one in dir, which is also its home and where commands put files.
func startDriver(t *javaTools, main, classpath, namesrv, dir string) (*driver, error) {
	log, err := os.Create(filepath.Join(dir, main+".log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-Djava.security.manager=allow", "-Duser.home="+dir,
		"-Duser.timezone=UTC", "-Drocketmq.client.logRoot="+dir, "-Dfile.encoding=UTF-8",
		"-cp", t.classes+":"+classpath, main, namesrv)
	cmd.Dir, cmd.Stderr = dir, log
	cmd.Env = append(os.Environ(), "ROCKETMQ_HOME="+dir, "NAMESRV_ADDR="+namesrv)
	d := &driver{cmd: cmd, plain: main == "Clients"}
	if d.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	d.out = bufio.NewReader(out)
	return d, cmd.Start()
}

// result is what one command left.
type result struct {
	exit     int
	stopped  bool
	out, err string
	took     time.Duration
}

// admin runs one sub-command.
func (d *driver) admin(timeout time.Duration, args []string) (result, error) {
	began := time.Now()
	r, err := d.ask(append([]string{"admin", fmt.Sprint(timeout.Milliseconds())}, args...))
	r.took = time.Since(began)
	return r, err
}

// client does one step of a client and returns its answer.
func (d *driver) client(words []string) (string, error) {
	r, err := d.ask(words)
	if err != nil {
		return "", err
	}
	if r.exit != 0 {
		return "", errors.New(r.err)
	}
	return r.out, nil
}

func (d *driver) ask(words []string) (r result, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintln(d.in, strings.Join(words, "\t")); err != nil {
		return r, fmt.Errorf("the Java process is gone: %w", err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("the Java process ended: %w", err)
	}
	if d.plain {
		kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind != "ok" {
			return result{exit: 1, err: text}, nil
		}
		return result{out: text}, nil
	}
	var stopped, nOut, nErr int
	if _, err := fmt.Sscanf(line, "%d %d %d %d", &r.exit, &stopped, &nOut, &nErr); err != nil {
		return r, fmt.Errorf("answer %q: %w", line, err)
	}
	both := make([]byte, nOut+nErr)
	if _, err := io.ReadFull(d.out, both); err != nil {
		return r, err
	}
	r.stopped, r.out, r.err = stopped == 1, string(both[:nOut]), string(both[nOut:])
	return r, nil
}

func (d *driver) stop() {
	d.in.Close()
	done := make(chan struct{})
	go func() { d.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		d.cmd.Process.Kill()
		<-done
	}
}
