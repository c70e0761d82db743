package protocol

// AssignmentQuery is the body of QUERY_ASSIGNMENT (400).
type AssignmentQuery struct {
	ClientID string `json:"clientId"`
	Group    string `json:"consumerGroup"`
	Model    string `json:"messageModel"`
	Strategy string `json:"strategyName"`
	Topic    string `json:"topic"`
}

// Assignments is the body of its answer: the queues that the client consumes.
type Assignments struct {
	Queues Set[Assignment] `json:"messageQueueAssignments"`
}

// Assignment is one of them.
type Assignment struct {
	Queue MessageQueue `json:"messageQueue"`
	Mode  string       `json:"mode"` // PULL or POP
}

// RequestMode is the body of SET_MESSAGE_REQUEST_MODE (401).
type RequestMode struct {
	Group  string `json:"consumerGroup"`
	Mode   string `json:"mode"`
	Shares int32  `json:"popShareQueueNum"`
	Topic  string `json:"topic"`
}

// RequestModes is the body of the answer to GET_ALL_MESSAGE_REQUEST_MODE (402),
// by topic and group.
type RequestModes struct {
	Modes Map[string, map[string]RequestMode] `json:"messageRequestModeMap"`
}
