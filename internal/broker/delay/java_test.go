package delay

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage"
)

// unpack puts a store that a RocketMQ 5.5.0 broker wrote on the disk: levels 1 to
// 3 delivered, those from 4 on pending.
func (w *world) unpack(name string) {
	w.t.Helper()
	f, err := os.Open(name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		w.t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
		file := path.Clean(h.Name)
		keep := strings.HasPrefix(file, "commitlog") || strings.HasPrefix(file, "consumequeue") || strings.HasPrefix(file, "config/delayOffset") || file == "config/timercheck" || file == "checkpoint"
		if h.Typeflag == tar.TypeDir || !keep {
			continue
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.disk.MkdirAll(dir + "/" + path.Dir(file)); err != nil {
			w.t.Fatal(err)
		}
		w.write(file, string(raw))
	}
}

func TestTakesOverRocketMQsPendingMessages(t *testing.T) {
	for _, progress := range []string{"kept", "lost"} {
		t.Run("progress "+progress, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.unpack("../../storage/testdata/delay-levels.tar.gz")
				if progress == "lost" {
					for _, name := range []string{"/config/delayOffset.json", "/config/delayOffset.json.bak"} {
						if err := w.disk.Remove(dir + name); err != nil {
							t.Fatal(err)
						}
					}
				}
				w.levels = DefaultLevels
				w.tuneStore = func(c *storage.Config) { c.LogFileSize, c.QueueFileSize = 65536, 1000 }
				// The store was stopped in 2026; the bubble begins in 2000.
				stopped := time.UnixMilli(1796066975599)
				w.shift.Store(int64(time.Until(stopped)))
				w.start()
				before := len(w.delivered())
				var pending int64
				for _, l := range w.flow.Stats().Levels {
					if l.Level <= 3 && l.Pending != 0 {
						t.Errorf("level %d: %d pending, RocketMQ has delivered all", l.Level, l.Pending)
					}
					if l.Level > 3 && (l.Pending != int64(l.Max) || l.Pending < 2) {
						t.Errorf("level %d: %d of %d pending", l.Level, l.Pending, l.Max)
					}
					pending += l.Pending
				}
				synctest.Wait()
				if n := len(w.delivered()); n != before {
					t.Errorf("%d delivered at once", n-before)
				}
				w.pass(3 * time.Hour)
				synctest.Wait()
				if n := len(w.delivered()); int64(n-before) != pending || w.pending() != 0 {
					t.Errorf("%d delivered, %d were pending, %d are", n-before, pending, w.pending())
				}
				for _, g := range w.delivered()[before:] {
					compressed := g.View.SysFlag()&mq.SysCompressed != 0
					if g.Topic != "delayed" || !compressed && !strings.HasPrefix(g.Body, "level ") {
						t.Errorf("delivered %q to %s", g.Body, g.Topic)
					}
				}
			})
		})
	}
}

// A RocketMQ broker that ran in between has delivered what its delayOffset.json says.
func TestAnotherBrokersProgressIsBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		for i := range 5 {
			w.send("T", 0, 2, body("m", i))
		}
		w.stopClean()
		w.write("config/delayOffset.json", `{"dataVersion":{"counter":9,"stateVersion":0,"timestamp":1},"offsetTable":{1:0,2:3}}`)
		w.start()
		w.pass(6 * time.Second)
		synctest.Wait()
		var bodies []string
		for _, g := range w.delivered() {
			bodies = append(bodies, g.Body)
		}
		if got := strings.Join(bodies, " "); got != "m-00003 m-00004" {
			t.Errorf("delivered %s", got)
		}
	})
}
