package txn

import (
	"context"
	"time"

	"github.com/sundial-mq/sundial/internal/mq"
)

// State is how far a transaction is.
type State uint8

// States of a transaction.
const (
	StateOpen       State = 1 + iota // no verdict yet
	StateGivenUp                     // asked as often as allowed, without a verdict; lies in TRANS_CHECK_MAX_TIME_TOPIC
	StateCommitted                   // delivered
	StateRolledBack                  // dropped
	StateResumed                     // was given up and is open again, as another half
)

// String names the state as operators see it.
func (s State) String() string {
	switch s {
	case StateOpen:
		return "open"
	case StateGivenUp:
		return "given-up"
	case StateCommitted:
		return "committed"
	case StateRolledBack:
		return "rolled-back"
	case StateResumed:
		return "resumed"
	}
	return "unknown"
}

// Ref names a transaction for an operator: an open one by its offset in the half
// topic, one that was given up by its offset in TRANS_CHECK_MAX_TIME_TOPIC, either
// by its transaction id (UNIQ_KEY) when that is not empty.
type Ref struct {
	GivenUp bool
	Offset  mq.QueueOffset
	ID      string
}

// Half is a transaction as an operator sees it.
type Half struct {
	State     State
	Offset    mq.QueueOffset // in the half topic, or in that of those given up
	Log       mq.LogOffset
	ID        string // transaction id
	MessageID string // offset message id
	Group     string // of producers
	Topic     string // where it goes
	Queue     mq.QueueID
	Keys      string
	Tags      string
	Client    string // id of the client that sent it, empty when not known
	Born      int64  // ms
	Stored    int64  // ms; of this copy
	Size      int    // of the record
	Tries     int    // checks sent
	NextCheck int64  // ms; 0 when none is due any more
	Waiting   bool   // a check is due and no producer of the group is here
	Decided   int64  // ms; when one given up was resolved
}

// Filter says which transactions to list. Empty fields let all pass.
type Filter struct {
	Group, Topic string
	MinAge       time.Duration // since the message was born
	GivenUp      bool          // those given up, in place of the open ones
	Resolved     bool          // with GivenUp: also those that were resolved
	After        mq.QueueOffset
	Max          int // 1 to MaxPage
}

// MaxPage is how many transactions one list holds at most.
const MaxPage = 1000

// Page is a part of a list, oldest first.
type Page struct {
	Halves []Half
	Next   mq.QueueOffset // the After of the next page, -1 when this is the last
	Total  int64          // how many there are in that state, whatever the filter says
}

// Action is what an operator decides about a transaction.
type Action uint8

// Actions.
const (
	Commit   Action = 1 + iota // deliver it
	Rollback                   // drop it
	Resume                     // ask its producer anew, now, with all tries
)

// String names the action as operators write it.
func (a Action) String() string {
	switch a {
	case Commit:
		return "commit"
	case Rollback:
		return "rollback"
	case Resume:
		return "resume"
	}
	return "unknown"
}

// Service is what administrators do with transactions; *Flow has it.
type Service interface {
	// List pages through transactions.
	List(ctx context.Context, f Filter) (Page, error)
	// Show looks one up, and returns its record. The error wraps mq.ErrNotFound.
	Show(ctx context.Context, ref Ref) (Half, []byte, error)
	// Resolve decides one. It returns what the transaction is then. The error wraps
	// mq.ErrNotFound, or mq.ErrIllegalOperation when it is decided already.
	Resolve(ctx context.Context, ref Ref, a Action) (Half, error)
	// Counts tells how many are open by destination topic.
	Counts() map[string]int64
}
