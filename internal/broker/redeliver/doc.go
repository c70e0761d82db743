// Package redeliver gives messages that a consumer failed on another try: it
// stores them again for the group's retry topic, later each time (by the group's
// plan, else by the ladder of delay levels), and after the
// last try in the group's dead-letter topic, where they can be read.
//
// What it promises: a send-back is answered only when the new record is stored;
// body, flags and born facts are copied untouched and are exempt from the limits
// for users; a dead letter is there at once, whatever delay the message once
// had; the same (message, attempt) sent back twice by two clients makes one
// retry.
//
// It keeps nothing that outlives the process but the records it stores.
package redeliver
