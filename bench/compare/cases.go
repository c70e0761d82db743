package main

import (
	"fmt"
	"time"
)

type testCase struct {
	name string
	run  func(m *measurement, v server) (*figures, error)
}

// cases in the order in which they run; a case that needs no settings of its own
// goes on with the server that runs.
func cases(quick bool) []testCase {
	n := func(full, small int) string {
		if quick {
			return fmt.Sprint(small)
		}
		return fmt.Sprint(full)
	}
	load := func(kind string, args ...string) func(m *measurement, v server) (*figures, error) {
		return func(m *measurement, v server) (*figures, error) {
			if err := m.up(v); err != nil {
				return nil, err
			}
			return m.bench(v, kind, args...)
		}
	}
	return []testCase{
		{"start, empty store, to first accepted send", func(m *measurement, v server) (*figures, error) {
			if err := v.stop(false); err != nil {
				return nil, err
			}
			if err := v.start(true); err != nil {
				return nil, err
			}
			took, err := m.firstSend(v)
			return &figures{Seconds: took.Seconds()}, err
		}},
		{"idle", func(m *measurement, v server) (*figures, error) {
			if err := m.up(v); err != nil {
				return nil, err
			}
			time.Sleep(3 * time.Second)
			return idle(v.pid(), 10*time.Second)
		}},
		{"send 1 KB, 4 x 16 in flight, first 300 k", load("send", "--topic", "first", "--count", n(300000, 100000))},
		{"send 1 KB, 4 x 16 in flight, warm", load("send", "--topic", "warm", "--count", n(1000000, 300000))},
		{"send 1 KB, 64 connections, one in flight", load("send", "--topic", "many", "--conns", "64", "--in-flight", "1", "--count", n(500000, 150000))},
		{"consume, catching up", load("consume", "--topic", "warm", "--count", n(1000000, 300000))},
		{"send to receive, 1,000 a second", load("delay", "--level", "0", "--topic", "e2e", "--rate", "1000", "--count", n(10000, 5000))},
		{"delay level 1, 200 a second", load("delay", "--level", "1", "--topic", "later", "--rate", "200", "--count", n(2000, 1000))},
		{"delay level 1, 20,000 at once", load("delay", "--level", "1", "--topic", "burst", "--rate", "0", "--count", n(20000, 20000))},
		{"delay level 1, 200,000 at once", load("delay", "--level", "1", "--topic", "delayed-send", "--rate", "0", "--count", n(200000, 100000))},
		{"timed, 10,000 due over 20 s", load("delay", "--timed", "--topic", "timed", "--rate", "0", "--count", "10000", "--after", "5s", "--over", "20s")},
		{"timed, " + n(500, 100) + ",000 due over 30 s", load("delay", "--timed", "--topic", "timed-many", "--rate", "0", "--count", n(500000, 100000), "--after", n(25, 10)+"s", "--over", n(30, 10)+"s")},
		{"timed, " + n(1000, 200) + ",000 due in one ms", func(m *measurement, v server) (*figures, error) {
			if err := m.up(v); err != nil {
				return nil, err
			}
			after := 60 * time.Second
			if quick {
				after = 20 * time.Second
			}
			return m.herd(v, n(1000000, 200000), after)
		}},
		{"send 1 KB, 4 x 16 in flight, sync flush", func(m *measurement, v server) (*figures, error) {
			if err := m.up(v, "flushDiskType=SYNC_FLUSH"); err != nil {
				return nil, err
			}
			return m.bench(v, "send", "--topic", "sync", "--count", n(200000, 60000))
		}},
		{"start after kill -9 with " + n(5, 1) + " GB", func(m *measurement, v server) (*figures, error) {
			if err := m.up(v); err != nil {
				return nil, err
			}
			if _, err := m.bench(v, "send", "--topic", "fill", "--size", "4096", "--count", n(1220000, 244000)); err != nil {
				return nil, err
			}
			if err := v.stop(true); err != nil {
				return nil, err
			}
			if err := v.start(false); err != nil {
				return nil, err
			}
			took, err := m.firstSend(v)
			return &figures{Seconds: took.Seconds()}, err
		}},
	}
}
