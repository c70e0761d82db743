//go:build unix

package server

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// What the server alone costs: its clients are another process, so that the CPU
// time of this one is the server's, in its own code (user) and in the kernel (sys).
//
//	go test -run xxx -bench ServerCPU ./internal/remoting/server
func BenchmarkServerCPU(b *testing.B) {
	table := Table{
		codeEcho: {Class: NewInline("inline", nil), Handle: sendAnswer},
		codeSlow: {Class: mustClass(ClassConfig{Name: "workers", Workers: 16, Queue: 10000}), Handle: sendAnswer},
	}
	s, addr := startTCP(b, table, nil)
	for _, c := range []struct {
		name  string
		code  int32
		form  remoting.Serialize
		conns int
		depth int
	}{
		{"class=inline/header=json", codeEcho, remoting.JSON, 4, 16},
		{"class=inline/header=binary", codeEcho, remoting.Binary, 4, 16},
		{"class=workers/header=json", codeSlow, remoting.JSON, 4, 16},
		{"class=inline/header=json", codeEcho, remoting.JSON, 64, 1},
	} {
		b.Run(fmt.Sprintf("%s/conns=%d/inflight=%d", c.name, c.conns, c.depth), func(b *testing.B) {
			req := sendRequest(1024, c.form)
			req.Code = c.code
			cmd := exec.Command(os.Args[0], "-test.run", "TestLoadGenerator")
			cmd.Env = append(os.Environ(), "LOAD="+strings.Join([]string{addr, strconv.Itoa(c.conns), strconv.Itoa(c.depth), strconv.Itoa(b.N),
				hex.EncodeToString(remoting.AppendCommand(nil, req))}, " "))
			user, sys := cpu(b)
			reads, writes := s.m.reads.Value(), s.m.writes.Value()
			b.ResetTimer()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StopTimer()
			user1, sys1 := cpu(b)
			b.ReportMetric(float64(user1-user)/float64(b.N), "user-ns/op")
			b.ReportMetric(float64(sys1-sys)/float64(b.N), "sys-ns/op")
			b.ReportMetric(float64(b.N)/float64(s.m.reads.Value()-reads), "op/read")
			b.ReportMetric(float64(b.N)/float64(s.m.writes.Value()-writes), "op/write")
		})
	}
}

func cpu(b *testing.B) (user, sys time.Duration) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

// TestLoadGenerator is the client process of BenchmarkServerCPU.
func TestLoadGenerator(t *testing.T) {
	if os.Getenv("LOAD") == "" {
		t.Skip("only for BenchmarkServerCPU")
	}
	args := strings.Fields(os.Getenv("LOAD"))
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	frame, err := hex.DecodeString(args[4])
	if err != nil {
		t.Fatal(err)
	}
	load(t, args[0], number(args[1]), number(args[2]), number(args[3]), frame)
}
