package route

import (
	"fmt"
	"maps"
	"sync"

	"github.com/sundial-mq/sundial/internal/mq"
)

// NamespaceOrder is the namespace whose keys are topics and whose values say
// how many queues of them are ordered on which broker.
const NamespaceOrder = "ORDER_TOPIC_CONFIG"

// KV is the name server's store of small settings: namespace, key, value. Its
// methods are safe for concurrent use.
type KV struct {
	limit int
	mu    struct {
		sync.RWMutex
		spaces map[string]map[string]string
		bytes  int // of all namespaces, keys and values
	}
}

// NewKV makes a store with what was kept; it owns the map from then on. Names
// and values together have limit bytes at most.
func NewKV(kept map[string]map[string]string, limit int) *KV {
	kv := &KV{limit: limit}
	kv.mu.spaces = map[string]map[string]string{}
	for namespace, keys := range kept {
		if len(keys) > 0 {
			kv.mu.spaces[namespace] = keys
			for key, value := range keys {
				kv.mu.bytes += len(namespace) + len(key) + len(value)
			}
		}
	}
	return kv
}

// Get returns a value.
func (kv *KV) Get(namespace, key string) (value string, found bool) {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	value, found = kv.mu.spaces[namespace][key]
	return value, found
}

// Namespace returns the keys and values of one namespace, nil when it is empty.
func (kv *KV) Namespace(namespace string) map[string]string {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	return maps.Clone(kv.mu.spaces[namespace])
}

// Put sets a value, unless it would be too much.
func (kv *KV) Put(namespace, key, value string) error {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	keys := kv.mu.spaces[namespace]
	more := len(namespace) + len(key) + len(value)
	if old, has := keys[key]; has {
		more = len(value) - len(old)
	}
	if more > 0 && kv.mu.bytes+more > kv.limit {
		return fmt.Errorf("%w: the name server keeps %d bytes of settings, with %d more they are over the limit of %d", mq.ErrSystem, kv.mu.bytes, more, kv.limit)
	}
	kv.mu.bytes += more
	if keys == nil {
		keys = map[string]string{}
		kv.mu.spaces[namespace] = keys
	}
	keys[key] = value
	return nil
}

// Delete removes a key and reports whether it was there.
func (kv *KV) Delete(namespace, key string) bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	keys := kv.mu.spaces[namespace]
	value, found := keys[key]
	if !found {
		return false
	}
	kv.mu.bytes -= len(namespace) + len(key) + len(value)
	delete(keys, key)
	if len(keys) == 0 {
		delete(kv.mu.spaces, namespace)
	}
	return true
}

// All copies everything.
func (kv *KV) All() map[string]map[string]string {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	all := make(map[string]map[string]string, len(kv.mu.spaces))
	for namespace, keys := range kv.mu.spaces {
		all[namespace] = maps.Clone(keys)
	}
	return all
}
