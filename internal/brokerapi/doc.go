// Package brokerapi is the broker's remoting front end: it decodes what clients
// and administrators ask, has a flow or a register do it, and writes the answer.
// It decides nothing about messages itself.
//
// What it promises: every request code is answered, those that are not served
// with REQUEST_CODE_NOT_SUPPORTED and the reason; a missing or bad field is named
// in the answer (INVALID_PARAMETER); the remark of a refusal is the text of the
// error, which names cause, value, limit and setting; the answers' codes and
// fields are RocketMQ 5.5's, but where docs/COMPATIBILITY.md says otherwise.
//
// Requests run in classes, so that no kind of traffic starves another: sends and
// commits of offsets on the reader of their connection, in order of arrival and
// without waiting; pulls, send-backs, what clients ask to live (heartbeats,
// offsets, locks), look-ups of messages, and administration each on bounded
// workers of its own.
//
// It needs the flows and registers it is made with, and keeps nothing itself:
// what it knows of a connection goes with the connection.
package brokerapi
