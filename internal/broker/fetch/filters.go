package fetch

import (
	"fmt"
	"strings"
	"sync"

	"github.com/sundial-mq/sundial/internal/filter"
	"github.com/sundial-mq/sundial/internal/mq"
)

// Filter compiles an expression, or finds it compiled. The error says what is
// wrong with it, or that filters on properties are switched off.
func (f *Flow) Filter(exprType, expr string) (*filter.Filter, error) {
	if exprType == filter.SQL92 && !f.cfg.PropertyFilter {
		return nil, fmt.Errorf("%w: the broker does not support consumer to filter message by SQL92, because enablePropertyFilter is false in its configuration; set it to true or subscribe by tags", mq.ErrSystem)
	}
	return f.filters.get(exprType, expr)
}

// CheckSubscription says why pulls by a subscription would be refused, nil if
// they would not.
func (f *Flow) CheckSubscription(topic, exprType, expr string, class bool) error {
	if class {
		return errClassFilter(topic)
	}
	_, err := f.Filter(exprType, expr)
	return err
}

// errClassFilter refuses what RocketMQ's brokers handed to filter servers, until
// there were none any more.
func errClassFilter(topic string) error {
	return fmt.Errorf("%w: the subscription to topic %s wants a filter class, which brokers do not run; filter by SQL92 or tags", mq.ErrSubscriptionParse, topic)
}

// Bounds of what is kept compiled; beyond them it is compiled anew. A compiled
// expression has about ten times its bytes.
const (
	maxFilters     = 4096
	maxFilterBytes = 4 << 20
)

// filters keeps compiled expressions, and why others could not be, because every
// pull brings one. What is compiled depends on nothing but type and text, so
// groups and topics share it.
type filters struct {
	mu    sync.RWMutex
	m     map[[2]string]compiled
	bytes int // of the keys
}

type compiled struct {
	filter *filter.Filter
	err    error
}

func (c *filters) get(exprType, expr string) (*filter.Filter, error) {
	k := [2]string{exprType, expr}
	c.mu.RLock()
	found, ok := c.m[k]
	c.mu.RUnlock()
	if ok {
		return found.filter, found.err
	}
	if len(exprType)+len(expr) > 2*filter.MaxSQL {
		return filter.Parse(exprType, expr)
	}
	k = [2]string{strings.Clone(exprType), strings.Clone(expr)} // what is compiled points into it
	found.filter, found.err = filter.Parse(k[0], k[1])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes += len(exprType) + len(expr)
	if c.m == nil || len(c.m) >= maxFilters || c.bytes > maxFilterBytes {
		c.m = make(map[[2]string]compiled)
		c.bytes = len(exprType) + len(expr)
	}
	c.m[k] = found
	return found.filter, found.err
}
