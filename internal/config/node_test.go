package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/node"
)

// Without any setting the node must be what it is by itself: the table's
// defaults and the packages' own must not drift apart.
func TestDefaultSettingsAreTheNodesDefaults(t *testing.T) {
	t.Parallel()
	want := node.DefaultConfig()
	got := read(t, "").Node(want.Roles)
	got.Broker.Name = want.Broker.Name // the host's, not a constant
	if len(got.Broker.API.Properties) == 0 || len(got.NameServer.API.Properties) == 0 {
		t.Error("what is in force is told to nobody")
	}
	got.Broker.API.Properties, got.NameServer.API.Properties = nil, nil
	for _, d := range differences("", reflect.ValueOf(got), reflect.ValueOf(want)) {
		t.Error(d)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

func differences(path string, got, want reflect.Value) (out []string) {
	if got.Kind() == reflect.Struct {
		for i := range got.NumField() {
			if got.Type().Field(i).IsExported() {
				out = append(out, differences(path+"."+got.Type().Field(i).Name, got.Field(i), want.Field(i))...)
			}
		}
		return out
	}
	if got.Kind() == reflect.Func || (got.Kind() == reflect.Slice && got.Len() == 0 && want.Len() == 0) {
		return nil
	}
	if !reflect.DeepEqual(got.Interface(), want.Interface()) {
		out = append(out, fmt.Sprintf("%s: the table's default gives %v, the package's is %v", strings.TrimPrefix(path, "."), got, want))
	}
	return out
}

// Every setting must reach the node: change each one and look for a difference.
func TestEverySettingReachesTheNode(t *testing.T) {
	t.Parallel()
	other := map[Type]string{
		Text: "other", TextFull: "other", Path: "/other", Paths: "/a,/b", Address: "10.9.8.7", Peers: "ns:1", Hours: "11;12", Levels: "7s 8m",
		Port: "4321", Words: "pop",
	}
	pending := map[string]bool{
		"brokerId": true, // 0 is all there is
	}
	base := read(t, "").Node(node.DefaultConfig().Roles)
	base.Broker.API.Properties, base.NameServer.API.Properties = nil, nil
	for _, k := range Keys() {
		if k.Use != Used || pending[k.Name] {
			continue
		}
		value, ok := other[k.Type]
		switch {
		case ok:
		case k.Type == Bool:
			value = map[string]string{"true": "false", "false": "true"}[k.Default]
		case k.Type == Choice:
			value = k.Values[1]
		default:
			value = k.Default[:len(k.Default)-1] + map[bool]string{true: "1", false: "2"}[strings.HasSuffix(k.Default, "2")]
			if _, err := k.check(value); err != nil {
				value = k.Default + "0"
			}
		}
		s, err := Read(input("", set(k.Name+"="+value)))
		if err != nil {
			t.Errorf("%s=%s: %v", k.Name, value, err)
			continue
		}
		got := s.Node(base.Roles)
		got.Broker.API.Properties, got.NameServer.API.Properties = nil, nil
		if len(differences("", reflect.ValueOf(got), reflect.ValueOf(base))) == 0 {
			t.Errorf("%s=%s changes nothing in the node", k.Name, value)
		}
	}
}
