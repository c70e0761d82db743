package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sundial-mq/sundial/internal/record"
)

// show is the demonstration's table: a row a message, live on a terminal, row by
// row otherwise.
type show struct {
	out  io.Writer
	live bool
	mu   struct {
		sync.Mutex
		rows    []*row
		early   map[int][]arrival // arrivals of messages that are not yet noted as sent
		drawn   int               // lines on the terminal that the next drawing replaces
		strange []string          // what came that nobody sent
		news    chan struct{}     // closed and renewed when a message arrives
	}
}

type row struct {
	parcel
	arrivals []arrival
	told     bool // its sending was written out
}

type arrival struct {
	at   time.Time
	body string
}

func newShow(out io.Writer) *show {
	s := &show{out: out, live: isTerminal(out)}
	s.mu.early = map[int][]arrival{}
	s.mu.news = make(chan struct{})
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// sent notes a message that must arrive.
func (s *show) sent(p parcel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &row{parcel: p, arrivals: s.mu.early[p.number]}
	delete(s.mu.early, p.number)
	s.mu.rows = append(s.mu.rows, r)
	s.drawLocked(r)
}

// arrived notes a message that the consumer got.
func (s *show) arrived(v record.View, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, a := numberOf(v), arrival{at, string(v.Body())}
	defer func() {
		close(s.mu.news)
		s.mu.news = make(chan struct{})
	}()
	for _, r := range s.mu.rows {
		if r.number == n {
			r.arrivals = append(r.arrivals, a)
			s.drawLocked(r)
			return
		}
	}
	if n == 0 {
		s.mu.strange = append(s.mu.strange, a.body)
		return
	}
	s.mu.early[n] = append(s.mu.early[n], a)
}

// waitFor returns when all messages have arrived, or it took too long.
func (s *show) waitFor(ctx context.Context, failed <-chan struct{}, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		s.mu.Lock()
		missing, news := s.missingLocked(), s.mu.news
		s.mu.Unlock()
		if missing == 0 {
			return
		}
		select {
		case <-news:
		case <-failed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *show) missingLocked() int {
	n := 0
	for _, r := range s.mu.rows {
		if len(r.arrivals) == 0 {
			n++
		}
	}
	return n
}

const clock = "15:04:05.000"

// drawLocked shows a row that changed.
func (s *show) drawLocked(r *row) {
	if s.live {
		text := s.table()
		if s.mu.drawn > 0 {
			fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.mu.drawn)
		}
		fmt.Fprintln(s.out, text)
		s.mu.drawn = strings.Count(text, "\n") + 1
		return
	}
	if !r.told {
		r.told = true
		fmt.Fprintf(s.out, "%s  sent      message %2d  %-9s due %s\n", time.UnixMilli(r.stored).Format(clock), r.number, kind(r.level), r.due.Format(clock))
	}
	if len(r.arrivals) == 0 {
		return
	}
	a := r.arrivals[len(r.arrivals)-1]
	fmt.Fprintf(s.out, "%s  received  message %2d  %-9s due %s  late %7.2f ms\n", a.at.Format(clock), r.number, kind(r.level), r.due.Format(clock), ms(a.at.Sub(r.due)))
}

func (s *show) table() string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{"message", "kind", "queue", "stored", "due", "arrived", "late ms"})
	for _, r := range s.mu.rows {
		cells := table.Row{r.number, kind(r.level), r.queue, time.UnixMilli(r.stored).Format(clock), r.due.Format(clock), "waiting", ""}
		if len(r.arrivals) > 0 {
			a := r.arrivals[0]
			cells[5], cells[6] = a.at.Format(clock), fmt.Sprintf("%.2f", ms(a.at.Sub(r.due)))
		}
		t.AppendRow(cells)
	}
	return t.Render()
}

func kind(level int) string {
	if level == 0 {
		return "normal"
	}
	return "delay " + levelDelays[level].String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// verdict sums up and returns an error when anything is wrong.
func (s *show) verdict() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	var late []time.Duration
	received := 0
	for _, r := range s.mu.rows {
		switch {
		case len(r.arrivals) == 0:
			errs = append(errs, fmt.Errorf("message %d did not arrive", r.number))
			continue
		case len(r.arrivals) > 1:
			errs = append(errs, fmt.Errorf("message %d arrived %d times", r.number, len(r.arrivals)))
		}
		received++
		a := r.arrivals[0]
		if a.body != r.body {
			errs = append(errs, fmt.Errorf("message %d arrived as %q, sent was %q", r.number, a.body, r.body))
		}
		if r.level == 0 {
			continue
		}
		late = append(late, a.at.Sub(r.due))
		if a.at.Before(r.due) {
			errs = append(errs, fmt.Errorf("message %d arrived %v early", r.number, r.due.Sub(a.at)))
		}
	}
	for _, body := range s.mu.strange {
		errs = append(errs, fmt.Errorf("a message arrived that nobody sent: %q", body))
	}
	fmt.Fprintf(s.out, "\n%d messages sent, %d received", len(s.mu.rows), received)
	if len(late) > 0 {
		slices.Sort(late)
		fmt.Fprintf(s.out, "; delayed ones late by %.2f ms (median), %.2f ms (worst)", ms(late[len(late)/2]), ms(late[len(late)-1]))
	}
	fmt.Fprintln(s.out)
	return errors.Join(errs...)
}
