package txn

import (
	"github.com/sundial-mq/sundial/internal/mq"
)

// Verdict is what a producer says of its transaction, as on the wire.
type Verdict int32

// Verdicts.
const (
	VerdictUnknown  Verdict = 0
	VerdictCommit   Verdict = Verdict(mq.SysTxCommit)
	VerdictRollback Verdict = Verdict(mq.SysTxRollback)
)

// EndRequest is a producer's word (END_TRANSACTION).
type EndRequest struct {
	Group     string
	Offset    mq.QueueOffset // in the half topic
	Log       mq.LogOffset   // of the half message
	Verdict   Verdict
	FromCheck bool   // it answers a check
	ID        string // transaction id, as the client knows it
}
