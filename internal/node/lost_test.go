package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/broker/offsets"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
	"github.com/sundial-mq/sundial/internal/storage"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

func TestAlarmNamesTheGroupsThatLoseMessages(t *testing.T) {
	t.Parallel()
	disk := memfs.New(1)
	sc := small("store").Broker.Store
	sc.Dir = "store"
	s, err := storage.Open(disk, sc)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	progress, err := offsets.Open(disk, "store/config", offsets.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	var ends []mq.LogOffset
	for range 10 {
		at, err := s.Append(&record.Message{Topic: "T", Body: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, at.End)
	}
	progress.Commit("slow", "T", 0, 2)
	progress.Commit("quick", "T", 0, 9)
	progress.Commit("elsewhere", "U", 0, 0)
	var out bytes.Buffer
	b := &broker{store: s, offsets: progress, log: slog.New(slog.NewTextHandler(&out, nil))}
	b.lost(0, ends[6])
	if got := out.String(); !strings.Contains(got, "slow (5 of T)") || strings.Contains(got, "quick") || strings.Contains(got, "elsewhere") {
		t.Errorf("the alarm: %s", got)
	}
}
