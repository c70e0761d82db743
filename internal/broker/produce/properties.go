package produce

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/record"
)

// PropertyReserve is the room that a user's property block must leave below
// [record.MaxProperties]: what the broker itself adds when the message is
// delayed, given back and dead-lettered (its real topic and queue, the receipt,
// the topic and id of its first life) has to fit too, or a message that was
// accepted could not be retried.
const PropertyReserve = 1024

// sundialPrefix begins the names that are the broker's own.
const sundialPrefix = "SUNDIAL_"

// read is what the broker wants to know of a block, found while it is copied.
// Slices alias the block read from. As in RocketMQ's parser the last property
// of a name counts.
type read struct {
	delay     []byte // value of DELAY
	priority  []byte // value of _SYS_MSG_PRIORITY_
	unique    []byte // value of UNIQ_KEY
	reconsume []byte // value of RECONSUME_TIME
	maxTries  []byte // value of MAX_RECONSUME_TIMES
	timed     string // name of a property that asks for a due time; "" when none does
	half      bool   // TRAN_MSG is true
	noWait    bool   // WAIT is false
	dropped   bool   // something was not copied
}

// copyProperties appends the pairs of props that are stored as they came to
// dst and notes in r what they ask for. Left out are pairs that no reader would
// see (no name, no value), POP_CK, which is a reader's handle and no part of
// the message, everything named SUNDIAL_, and, with rewrite, the three that
// the broker sets itself.
//
// Budget: no allocation but dst's growth; one pass.
func copyProperties(dst, props []byte, r *read, rewrite bool) []byte {
	keep := 0 // start of the run of pairs not yet copied
	for at := 0; at < len(props); {
		end := bytes.IndexByte(props[at:], mq.PropValueEnd)
		next := at + end + 1
		if end < 0 {
			end, next = len(props)-at, len(props)
		}
		pair := props[at : at+end]
		cut := bytes.IndexByte(pair, mq.PropNameEnd)
		if cut <= 0 || cut == len(pair)-1 || !r.note(pair[:cut], pair[cut+1:], rewrite) {
			dst = append(dst, props[keep:at]...)
			keep = next
			r.dropped = true
		}
		at = next
	}
	dst = append(dst, props[keep:]...)
	if n := len(dst); n > 0 && keep < len(props) && dst[n-1] != mq.PropValueEnd {
		dst = append(dst, mq.PropValueEnd)
	}
	return dst
}

// AppendForeign appends what counts of the properties that a client sent to dst:
// without the names that are the broker's own and the handles of readers.
func AppendForeign(dst, props []byte) []byte {
	return copyProperties(dst, props, new(read), false)
}

// note looks at one property and says whether it is copied.
func (r *read) note(name, value []byte, rewrite bool) bool {
	switch name[0] {
	case 'C':
		return !rewrite || string(name) != mq.PropCluster
	case 'D':
		if string(name) == mq.PropDelay {
			r.delay = value
		}
	case 'M':
		switch string(name) {
		case mq.PropMsgRegion:
			return !rewrite
		case mq.PropMaxReconsume:
			r.maxTries = value
		}
	case 'P':
		return string(name) != mq.PropPopCK
	case 'R':
		if string(name) == mq.PropReconsumeTime {
			r.reconsume = value
		}
	case 'S':
		return !bytes.HasPrefix(name, []byte(sundialPrefix))
	case 'T':
		switch string(name) {
		case mq.PropTraceOn:
			return !rewrite
		case mq.PropTransaction:
			r.half = strings.EqualFold(string(value), "true")
		case mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs:
			if r.timed == "" {
				r.timed = string(name)
			}
		case mq.PropTimerDeleteKey:
			r.timed = mq.PropTimerDeleteKey
		}
	case 'U':
		if string(name) == mq.PropUniqueKey {
			r.unique = value
		}
	case 'W':
		if string(name) == mq.PropWait {
			r.noWait = string(value) == "false"
		}
	case '_':
		if string(name) == mq.PropPriority {
			r.priority = value
		}
	}
	return true
}

// level is the delay level asked for, 0 for none.
func (r *read) level() (mq.DelayLevel, error) {
	if r.delay == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(r.delay), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: property %s is %q, a delay level is a whole number of 32 bits", mq.ErrIllegalMessage, mq.PropDelay, r.delay)
	}
	return mq.DelayLevel(max(n, 0)), nil
}

// withoutTimers is props without the requests that lose to a delay level.
func withoutTimers(props []byte) []byte {
	return record.AppendWithout(nil, props, mq.PropTimerDelaySec, mq.PropTimerDelayMs, mq.PropTimerDeliverMs)
}

// tail is the block of what the broker sets on every single message.
func tail(cluster, region string, traceOn bool) []byte {
	b := record.AppendProperty(nil, mq.PropCluster, cluster)
	b = record.AppendProperty(b, mq.PropMsgRegion, region)
	return record.AppendProperty(b, mq.PropTraceOn, strconv.FormatBool(traceOn))
}
