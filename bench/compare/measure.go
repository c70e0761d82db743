package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// figures are what one case measured; what does not apply is zero.
type figures struct {
	Rate          float64 `json:"perSecond,omitempty"`
	P50           float64 `json:"p50Millis,omitempty"`
	P99           float64 `json:"p99Millis,omitempty"`
	Max           float64 `json:"maxMillis,omitempty"`
	CPUPerMillion float64 `json:"cpuSecondsPerMillion,omitempty"`
	CPUPercent    float64 `json:"cpuPercentOfACore,omitempty"`
	AnonMB        float64 `json:"anonMB,omitempty"`
	Seconds       float64 `json:"seconds,omitempty"`
	Note          string  `json:"note,omitempty"`
}

type measurement struct {
	ctx      context.Context
	load     string // the sundial binary
	settings settings
	names    []string
	results  map[string]map[string]*figures
}

// loadResult is the part of `sundial bench --json` that is used here.
type loadResult struct {
	Seconds   float64
	Messages  int64
	PerSecond float64
	Errors    int64
	Problems  map[string]int64
	Latency   *latencies
	Delay     *struct {
		Lateness      *latencies
		SendPerSecond float64
		Early         int64
		Twice         int64
		Lost          int64
	}
	Server *struct {
		CPUSecondsPerMillion float64
		PeakAnonMB           float64
	}
}

type latencies struct{ P50, P99, Max float64 }

// bench runs one load against v.
func (m *measurement) bench(v server, kind string, args ...string) (*figures, error) {
	args = append([]string{"bench", kind, "--broker", v.broker(), "--pid", strconv.Itoa(v.pid()), "--json"}, args...)
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, m.load, args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var r loadResult
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		return nil, fmt.Errorf("sundial %s: %w %v\n%s", strings.Join(args, " "), jsonErr, err, stderr.String())
	}
	f := &figures{Rate: r.PerSecond, Seconds: r.Seconds}
	lat := r.Latency
	if r.Delay != nil {
		lat = r.Delay.Lateness
		if lat == nil {
			lat = r.Latency
		}
		f.Note = fmt.Sprintf("sent at %.0f/s", r.Delay.SendPerSecond)
		if r.Delay.Early+r.Delay.Twice+r.Delay.Lost > 0 {
			f.Note += fmt.Sprintf(", %d early, %d twice, %d lost", r.Delay.Early, r.Delay.Twice, r.Delay.Lost)
		}
	}
	if lat != nil {
		f.P50, f.P99, f.Max = lat.P50, lat.P99, lat.Max
	}
	if r.Server != nil {
		f.CPUPerMillion, f.AnonMB = r.Server.CPUSecondsPerMillion, r.Server.PeakAnonMB
	}
	if r.Errors > 0 {
		f.Note = strings.TrimSpace(fmt.Sprintf("%s %d errors %v", f.Note, r.Errors, r.Problems))
	}
	return f, nil
}

// herd has count timed messages due in one millisecond, and normal messages going
// through from three seconds before that on.
func (m *measurement) herd(v server, count string, after time.Duration) (*figures, error) {
	type result struct {
		f   *figures
		err error
	}
	normal := make(chan result, 1)
	wait := time.AfterFunc(after-3*time.Second, func() {
		f, err := m.bench(v, "delay", "--level", "0", "--topic", "beside", "--rate", "500", "--count", "7500")
		normal <- result{f, err}
	})
	f, err := m.bench(v, "delay", "--timed", "--topic", "herd", "--rate", "0", "--count", count, "--after", after.String(), "--over", "0", "--patience", "120s")
	if wait.Stop() {
		return f, err
	}
	beside := <-normal
	if err == nil {
		err = beside.err
	}
	if err != nil {
		return nil, err
	}
	f.Note += fmt.Sprintf("; normal messages meanwhile p50 %.2f, p99 %.2f, worst %.1f ms", beside.f.P50, beside.f.P99, beside.f.Max)
	return f, nil
}

// up makes sure that v runs with exactly these settings on whatever store it has.
func (m *measurement) up(v server, extra ...string) error {
	if r := v.running(); r != nil && strings.Join(r, " ") == strings.Join(extra, " ") {
		return nil
	}
	if err := v.stop(false); err != nil {
		return err
	}
	if err := v.start(true, extra...); err != nil {
		return err
	}
	_, err := m.firstSend(v)
	return err
}

// firstSend waits until v accepts a message and tells how long that took.
func (m *measurement) firstSend(v server) (time.Duration, error) {
	began := time.Now()
	var last error
	for time.Since(began) < 3*time.Minute {
		if err := m.ctx.Err(); err != nil {
			return 0, err
		}
		if last = sendOne(v.broker()); last == nil {
			return time.Since(began), nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, fmt.Errorf("no send accepted in 3 minutes: %w", last)
}

// sendOne sends one small message to a topic that the broker makes by itself.
func sendOne(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	header, err := json.Marshal(map[string]any{
		"code": 10, "flag": 0, "language": "GO", "opaque": 1, "version": 401,
		"extFields": map[string]string{
			"producerGroup": "compare", "topic": "compare-start", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
			"sysFlag": "0", "bornTimestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "flag": "0", "properties": "", "reconsumeTimes": "0",
		},
	})
	if err != nil {
		return err
	}
	body := []byte("hello")
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	var sizes [8]byte
	if _, err := io.ReadFull(conn, sizes[:]); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint32(sizes[:])-4)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	var head struct {
		Code   int
		Remark string
	}
	if err := json.Unmarshal(answer[:binary.BigEndian.Uint32(sizes[4:])&0xFFFFFF], &head); err != nil {
		return err
	}
	if head.Code != 0 {
		return fmt.Errorf("code %d: %s", head.Code, head.Remark)
	}
	return nil
}

// idle watches a process that has nothing to do.
func idle(pid int, d time.Duration) (*figures, error) {
	before, err := cpuSeconds(pid)
	if err != nil {
		return nil, err
	}
	time.Sleep(d)
	after, err := cpuSeconds(pid)
	if err != nil {
		return nil, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	f := &figures{CPUPercent: (after - before) / d.Seconds() * 100}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			var kb float64
			fmt.Sscan(rest, &kb)
			f.AnonMB = kb / 1024
		}
	}
	return f, nil
}

// cpuSeconds is user and system time of a process, from /proc/PID/stat.
func cpuSeconds(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100, nil
}

// print writes the table.
func (m *measurement) print(w io.Writer) {
	fmt.Fprintln(w, "| case | server | per second | p50 ms | p99 ms | max ms | CPU-s per million | CPU of a core | RssAnon MB | seconds | |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, name := range m.names {
		for _, who := range []string{"Sundial", "RocketMQ"} {
			if f := m.results[name][who]; f != nil {
				m.row(w, name, who, f)
			}
		}
	}
}

// row writes one line of the table.
func (m *measurement) row(w io.Writer, name, who string, f *figures) {
	percent := ""
	if f.CPUPercent > 0 {
		percent = fmt.Sprintf("%.1f %%", f.CPUPercent)
	}
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", name, who, number(f.Rate), number(f.P50), number(f.P99), number(f.Max),
		number(f.CPUPerMillion), percent, number(f.AnonMB), number(f.Seconds), f.Note)
}

// number is x with three digits, empty for zero.
func number(x float64) string {
	switch {
	case x == 0:
		return ""
	case x >= 1000:
		return fmt.Sprintf("%.1fk", x/1000)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
