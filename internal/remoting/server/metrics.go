package server

import "github.com/sundial-mq/sundial/internal/metric"

// metrics of one server. Those of classes and codes are theirs.
type metrics struct {
	connections *metric.Gauge
	accepted    *metric.Counter
	received    *metric.Counter // bytes
	sent        *metric.Counter // bytes
	reads       *metric.Counter // calls; with the requests they tell how many come together
	writes      *metric.Counter // calls
	unknown     *metric.Counter // codes without a route
	tooMany     *metric.Counter // beyond MaxInFlight
	panics      *metric.Counter
	strays      *metric.Counter // answers nobody waits for
	closed      [numReasons]*metric.Counter
}

// reason is why a connection was closed.
type reason int

const (
	byPeer     reason = iota // the other end closed, or the network did
	byStop                   // the server stops
	malformed                // bytes that are no frame
	isTLS                    // a TLS hello on a port without TLS
	idle                     // nothing for IdleTimeout
	halfFrame                // a frame not complete after FrameTimeout
	slowReader               // WriteTimeout or MaxOut
	noMemory                 // MaxLargeFrames
	overLimit                // MaxConns
	byHandler                // Conn.Close
	numReasons
)

var reasonNames = [numReasons]string{
	byPeer: "peer", byStop: "stop", malformed: "malformed", isTLS: "tls", idle: "idle", halfFrame: "half_frame",
	slowReader: "slow_reader", noMemory: "memory", overLimit: "limit", byHandler: "handler",
}

func newMetrics(server string, reg *metric.Registry) *metrics {
	l := metric.Label{Name: "server", Value: server}
	m := &metrics{
		connections: reg.Gauge("sundial_remoting_connections", "Open connections.", l),
		accepted:    reg.Counter("sundial_remoting_accepted_total", "Connections accepted.", l),
		received:    reg.Counter("sundial_remoting_received_bytes_total", "Bytes read from clients.", l),
		sent:        reg.Counter("sundial_remoting_sent_bytes_total", "Bytes written to clients.", l),
		reads:       reg.Counter("sundial_remoting_reads_total", "Reads from clients that brought something.", l),
		writes:      reg.Counter("sundial_remoting_writes_total", "Writes to clients.", l),
		unknown:     reg.Counter("sundial_remoting_unsupported_total", "Requests with a code that is not served.", l),
		tooMany:     reg.Counter("sundial_remoting_in_flight_refused_total", "Requests refused because their connection has too many in flight.", l),
		panics:      reg.Counter("sundial_remoting_panics_total", "Handlers that panicked.", l),
		strays:      reg.Counter("sundial_remoting_stray_answers_total", "Answers of clients that nobody waited for.", l),
	}
	for r := range m.closed {
		m.closed[r] = reg.Counter("sundial_remoting_closed_total", "Connections closed, by reason.", l, metric.Label{Name: "reason", Value: reasonNames[r]})
	}
	return m
}
