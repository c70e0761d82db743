package stats

import (
	"fmt"
	"time"
)

// Days are the messages of user topics stored and handed out, by the calendar.
type Days struct{ Put, Get Count }

// Count is a number that only grows, with what it was at two midnights. RocketMQ
// tells it like this; the differences are what people want.
type Count struct {
	Now              int64 `json:"now"`
	TodayMorning     int64 `json:"todayMorning"`
	YesterdayMorning int64 `json:"yesterdayMorning"`
}

// Today is how much came since midnight.
func (c Count) Today() int64 { return c.Now - c.TodayMorning }

// Yesterday is how much came the day before.
func (c Count) Yesterday() int64 { return c.TodayMorning - c.YesterdayMorning }

// calendar is the content of stats.json, and with the counters of the process
// still to be added, what the register works with.
type calendar struct {
	Date string `json:"date"` // of the day that TodayMorning began, where the broker is
	Put  Count  `json:"put"`
	Get  Count  `json:"get"`
}

const dateForm = "2006-01-02"

// sane is c, or nothing if a hand wrote what cannot be.
func (c calendar) sane() calendar {
	ok := func(n Count) bool {
		return 0 <= n.YesterdayMorning && n.YesterdayMorning <= n.TodayMorning && n.TodayMorning <= n.Now
	}
	if _, err := time.Parse(dateForm, c.Date); err != nil || !ok(c.Put) || !ok(c.Get) {
		return calendar{}
	}
	return c
}

// turn begins a new day if now has another date. A clock that goes back over
// midnight and comes again finds the day begun; one that goes back further
// was wrong before, and today goes on under the right date.
func (c *calendar) turn(now time.Time) {
	date := now.Format(dateForm)
	if date == c.Date {
		return
	}
	was, err := time.Parse(dateForm, c.Date)
	if err != nil { // the first day
		c.Date = date
		return
	}
	is, _ := time.Parse(dateForm, date)
	switch days := int(is.Sub(was).Hours()) / 24; {
	case days == -1:
		return
	case days < 0:
		c.Date = date
		return
	case days == 1:
		c.Put.YesterdayMorning, c.Get.YesterdayMorning = c.Put.TodayMorning, c.Get.TodayMorning
	default: // nothing happened yesterday
		c.Put.YesterdayMorning, c.Get.YesterdayMorning = c.Put.Now, c.Get.Now
	}
	c.Date = date
	c.Put.TodayMorning, c.Get.TodayMorning = c.Put.Now, c.Get.Now
}

// untilMidnight is the time to the next date, and a moment that makes sure of it.
func untilMidnight(now time.Time) time.Duration {
	y, m, d := now.Date()
	return max(time.Date(y, m, d+1, 0, 0, 0, 0, now.Location()).Sub(now), time.Millisecond)
}

// Days are the numbers of today and yesterday.
func (r *Register) Days() Days {
	c := r.turn(time.Now())
	return Days{Put: c.Put, Get: c.Get}
}

// turn brings the numbers of the day up to now.
func (r *Register) turn(now time.Time) calendar {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.mu.days
	put, get := r.putUser.Value(), r.getUser.Value()
	c.Put.Now += put - r.mu.seen[0]
	c.Get.Now += get - r.mu.seen[1]
	r.mu.seen = [2]int64{put, get}
	c.turn(now.In(r.cfg.Location))
	return *c
}

// Save writes the numbers of the day if they have changed.
func (r *Register) Save() error {
	c := r.turn(time.Now())
	r.mu.Lock()
	same := c == r.mu.saved
	r.mu.Unlock()
	if same {
		return nil
	}
	if err := r.doc.Save(c); err != nil {
		return fmt.Errorf("statistics: %w", err)
	}
	r.mu.Lock()
	r.mu.saved = c
	r.mu.Unlock()
	return nil
}
