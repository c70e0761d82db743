// Package fetch reads messages for consumers: one pull is one look at one
// queue, and when there is nothing new yet and the consumer agrees to wait, the
// pull is parked until a message arrives that its filter may want, or until its
// time is over.
//
// What it promises: every offset a consumer may ask for gets the right
// correction (below the start: the start; beyond the end: the end, never 0);
// done is called exactly once for each pull; a parked pull costs a small struct
// and no goroutine, is woken by the arrival itself and times out when it asked
// to. What arrives and does not pass its filter leaves it parked, and is not
// looked at again. The offset a pull brings along is committed once, in the first run.
//
// Parked pulls live in memory only: after a crash clients ask again.
package fetch
