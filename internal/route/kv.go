package route

import (
	"maps"
	"sync"
)

// NamespaceOrder is the namespace whose keys are topics and whose values say
// how many queues of them are ordered on which broker.
const NamespaceOrder = "ORDER_TOPIC_CONFIG"

// KV is the name server's store of small settings: namespace, key, value. Its
// methods are safe for concurrent use.
type KV struct {
	mu struct {
		sync.RWMutex
		spaces map[string]map[string]string
	}
}

// NewKV makes a store with what was kept; it owns the map from then on.
func NewKV(kept map[string]map[string]string) *KV {
	kv := &KV{}
	kv.mu.spaces = map[string]map[string]string{}
	for namespace, keys := range kept {
		if len(keys) > 0 {
			kv.mu.spaces[namespace] = keys
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

// Put sets a value.
func (kv *KV) Put(namespace, key, value string) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	keys := kv.mu.spaces[namespace]
	if keys == nil {
		keys = map[string]string{}
		kv.mu.spaces[namespace] = keys
	}
	keys[key] = value
}

// Delete removes a key and reports whether it was there.
func (kv *KV) Delete(namespace, key string) bool {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	keys := kv.mu.spaces[namespace]
	if _, found := keys[key]; !found {
		return false
	}
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
