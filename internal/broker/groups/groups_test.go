package groups

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sundial-mq/sundial/internal/invariant"
	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
	"github.com/sundial-mq/sundial/internal/vfs/memfs"
)

const dir = "/store/config"

func open(t *testing.T, fs vfs.FS, cfg Config) *Register {
	t.Helper()
	r, err := Open(fs, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, fs vfs.FS, content []byte) {
	t.Helper()
	if err := fs.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create(dir + "/subscriptionGroup.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOwnGroupsAreThereAndCannotBeDeleted(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	for _, name := range mq.SystemGroups {
		if r.Get(name) == nil {
			t.Errorf("%s is missing", name)
		}
		if err := r.Delete(name); !errors.Is(err, mq.ErrInvalid) {
			t.Errorf("delete %s: %v", name, err)
		}
	}
	if err := r.Delete("never-was"); err != nil {
		t.Error(err)
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	r := open(t, memfs.New(1), DefaultConfig())
	g, err := r.Ensure("g")
	if err != nil || g.RetryMaxTimes != 16 || g.RetryQueues != 1 || !g.ConsumeEnable || !g.ConsumeBroadcastEnable || !g.NotifyIDsChanged {
		t.Fatalf("%+v, %v", g, err)
	}
	if again, err := r.Ensure("g"); err != nil || again != g || r.Get("g") != g {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := r.Ensure("a b"); !errors.Is(err, mq.ErrInvalid) {
		t.Errorf("a name with a blank: %v", err)
	}
	off := open(t, memfs.New(1), Config{MaxGroups: 100})
	if _, err := off.Ensure("g"); !errors.Is(err, mq.ErrNoGroup) || !strings.Contains(err.Error(), "autoCreateSubscriptionGroup") {
		t.Errorf("groups do not come by themselves: %v", err)
	}
	if _, err := off.Ensure("CID_RMQ_SYS_OTHER"); err != nil {
		t.Errorf("a group of the broker: %v", err)
	}
}

func TestGroupsComeByThemselvesUpToTheLimit(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.MaxGroups = len(mq.SystemGroups) + 2
	fs := memfs.New(1)
	r := open(t, fs, cfg)
	refused := func(name string) {
		t.Helper()
		_, err := r.Ensure(name)
		want := fmt.Sprintf("[%s] does not exist, and it is not made by itself: there are %d groups, the limit for that is %d (maxAutoCreatedGroups)", name, len(r.all()), cfg.MaxGroups)
		if !errors.Is(err, mq.ErrNoGroup) || !strings.Contains(err.Error(), want) || r.Get(name) != nil {
			t.Errorf("%s beyond the limit: %v\nwant it to say %s", name, err, want)
		}
	}
	ensured := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := r.Ensure(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	ensured("a", "b")
	refused("c")
	refused(mq.SystemGroupPrefix + "x") // anybody can name these
	if err := r.Put(mq.NewGroupConfig("c")); err != nil {
		t.Errorf("an administrator's: %v", err)
	}
	ensured("a", "b", "c")
	refused("d")
	for _, name := range []string{"a", "a", "b", "never-was"} {
		if err := r.Delete(name); err != nil {
			t.Error(err)
		}
	}
	ensured("d")
	refused("e")

	if err := r.Save(); err != nil {
		t.Fatal(err)
	}
	r = open(t, fs, cfg)
	ensured("c", "d")
	refused("e")
	if err := (Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "maxAutoCreatedGroups is 0") {
		t.Errorf("a limit of 0: %v", err)
	}
}

func (r *Register) all() []*mq.GroupConfig {
	groups, _ := r.All()
	return groups
}

func TestRocketMQsFile(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"clean", "pop", "retry-dlq"} {
		raw, err := os.ReadFile("testdata/" + store + ".json")
		if err != nil {
			t.Fatal(err)
		}
		fs := memfs.New(1)
		write(t, fs, raw)
		_, java, _, err := table.Open[document](fs, dir+"/subscriptionGroup.json")
		if err != nil {
			t.Fatal(err)
		}
		r := open(t, fs, DefaultConfig())
		for name, want := range java.groups {
			if got := r.Get(name); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: group %s is %+v, the file says %+v", store, name, got, want)
			}
		}
		if !reflect.DeepEqual(r.AllForbidden(), java.forbidden) {
			t.Errorf("%s: forbidden %v, the file says %v", store, r.AllForbidden(), java.forbidden)
		}
		if err := r.Put(mq.NewGroupConfig("one-more")); err != nil {
			t.Fatal(err)
		}
		again := open(t, fs, DefaultConfig())
		a, va := r.All()
		b, vb := again.All()
		if !reflect.DeepEqual(a, b) || va != vb || !reflect.DeepEqual(again.AllForbidden(), java.forbidden) {
			t.Errorf("%s: opened again it differs", store)
		}
		if store == "clean" && (r.Forbidden("g-some", "one") != 4 || !r.ReadForbidden("g-some", "one")) {
			t.Errorf("what g-some may not read is lost: %v", r.AllForbidden())
		}
	}
}

func TestForeignMembersAreKept(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	write(t, fs, []byte(`{"later":{"a":1},"forbiddenTable":null,"subscriptionGroupTable":{"g":{"groupName":"g","retryMaxTimes":3}}}`))
	r := open(t, fs, DefaultConfig())
	if g := r.Get("g"); g.RetryMaxTimes != 3 || !g.ConsumeEnable || g.Attributes == nil {
		t.Errorf("%+v", g)
	}
	b, err := fs.ReadFile(dir + "/subscriptionGroup.json")
	if err != nil || !strings.Contains(string(b), `"later"`) {
		t.Errorf("%s %v", b, err)
	}
}

func TestForbid(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	r := open(t, fs, DefaultConfig())
	steps := []struct {
		group, topic string
		bit          mq.Perm
		denied       bool
		want         int32
	}{
		{"g", "t", mq.PermRead, true, 4},
		{"g", "t", mq.PermWrite, true, 6},
		{"g", "t", mq.PermWrite, true, 6},
		{"g", "t", mq.PermRead, false, 2},
		{"g", "u", mq.PermRead, true, 4},
		{"g", "t", mq.PermWrite, false, 0},
	}
	for _, s := range steps {
		if err := r.Forbid(s.group, s.topic, s.bit, s.denied); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Register{r, open(t, fs, DefaultConfig())} {
			if got := r.Forbidden(s.group, s.topic); got != s.want {
				t.Errorf("after %+v: %d", s, got)
			}
		}
	}
	if err := r.Put(mq.NewGroupConfig("g")); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete("g"); err != nil {
		t.Fatal(err)
	}
	if r.Get("g") != nil || len(r.AllForbidden()) != 0 || open(t, fs, DefaultConfig()).Get("g") != nil {
		t.Error("a deleted group left something behind")
	}
}

func TestPutChangesAGroup(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	r := open(t, fs, DefaultConfig())
	g := mq.NewGroupConfig("g")
	g.RetryMaxTimes = 3
	if err := r.Put(g); err != nil {
		t.Fatal(err)
	}
	v := r.Version()
	if err := r.Put(g); err != nil || r.Version() != v {
		t.Errorf("no change steps the version: %v", err)
	}
	if got := open(t, fs, DefaultConfig()).Get("g"); got == nil || got.RetryMaxTimes != 3 {
		t.Errorf("%+v", got)
	}
	for _, bad := range []func(*mq.GroupConfig){
		func(g *mq.GroupConfig) { g.Name = "" },
		func(g *mq.GroupConfig) { g.Name = strings.Repeat("x", 121) },
		func(g *mq.GroupConfig) { g.RetryQueues = -1 },
		func(g *mq.GroupConfig) { g.RetryMaxTimes = -2 },
		func(g *mq.GroupConfig) { g.ConsumeTimeoutMinute = -1 },
		func(g *mq.GroupConfig) { g.Attributes = map[string]string{"+nosuch": "1"} },
		func(g *mq.GroupConfig) { g.RetryPolicy = &mq.RetryPolicy{Type: "NONE"} },
		func(g *mq.GroupConfig) {
			g.RetryPolicy = &mq.RetryPolicy{Type: mq.RetryExponential, Exponential: &mq.ExponentialPolicy{Initial: 10, Max: 5, Multiplier: 2}}
		},
		func(g *mq.GroupConfig) {
			g.RetryPolicy = &mq.RetryPolicy{Type: mq.RetryCustomized, Customized: &mq.CustomizedPolicy{Next: []int64{1, -1}}}
		},
	} {
		g := mq.NewGroupConfig("h")
		bad(g)
		if err := r.PutAll([]*mq.GroupConfig{mq.NewGroupConfig("i"), g}); !errors.Is(err, mq.ErrInvalid) && !errors.Is(err, mq.ErrSystem) || r.Get("i") != nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

// Attributes are changed with signs, as RocketMQ's tools send them; a group that
// is put as it was shown stays as it is.
func TestAttributesAreChanged(t *testing.T) {
	t.Parallel()
	fs := memfs.New(1)
	r := open(t, fs, DefaultConfig())
	put := func(attributes map[string]string) error {
		g := mq.NewGroupConfig("g")
		g.Attributes = attributes
		return r.Put(g)
	}
	for _, s := range []struct {
		change map[string]string
		want   map[string]string // nil: refused
	}{
		{nil, map[string]string{}},
		{map[string]string{"+priority.factor": "7", "+lite.bind.topic": "T"}, map[string]string{"priority.factor": "7", "lite.bind.topic": "T"}},
		{nil, map[string]string{"priority.factor": "7", "lite.bind.topic": "T"}},
		{map[string]string{"priority.factor": "7"}, map[string]string{"priority.factor": "7", "lite.bind.topic": "T"}},
		{map[string]string{"priority.factor": "8"}, nil},
		{map[string]string{"+priority.factor": "101"}, nil},
		{map[string]string{"+priority.factor": "x"}, nil},
		{map[string]string{"+lite.sub.model": "Some"}, nil},
		{map[string]string{"+nosuch": "1"}, nil},
		{map[string]string{"-nosuch": ""}, nil},
		{map[string]string{"+": "1"}, nil},
		{map[string]string{"+priority.factor": "1", "-priority.factor": ""}, nil},
		{map[string]string{"-priority.factor": "", "+lite.sub.model": "Exclusive"}, map[string]string{"lite.bind.topic": "T", "lite.sub.model": "Exclusive"}},
	} {
		before := r.Get("g")
		err := put(s.change)
		if s.want == nil {
			if err == nil || r.Get("g") != before {
				t.Errorf("%v: taken", s.change)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(r.Get("g").Attributes, s.want) {
			t.Errorf("%v: %v, %v", s.change, r.Get("g").Attributes, err)
		}
	}
	if got := open(t, fs, DefaultConfig()).Get("g").Attributes; len(got) != 2 {
		t.Errorf("opened again: %v", got)
	}
}

func TestPowerCutKeepsWhatWasPromised(t *testing.T) {
	t.Parallel()
	for cut := int64(1); ; cut++ {
		fs := memfs.New(uint64(cut))
		r := open(t, fs, DefaultConfig())
		fs.StopAfter(cut)
		promised := 0
		for i := range 4 {
			if r.Put(mq.NewGroupConfig(fmt.Sprintf("g%d", i))) != nil {
				break
			}
			promised++
		}
		stopped := fs.Stopped()
		again := open(t, fs.Crash(), DefaultConfig())
		for i := range promised {
			if again.Get(fmt.Sprintf("g%d", i)) == nil {
				t.Fatalf("cut %d: g%d is gone", cut, i)
			}
		}
		if !stopped {
			return
		}
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	if invariant.On {
		t.Skip("the race detector allocates")
	}
	r := open(t, memfs.New(1), DefaultConfig())
	name, topic := string([]byte("TOOLS_CONSUMER")), string([]byte("t"))
	if n := testing.AllocsPerRun(1000, func() { r.Get(name); r.ReadForbidden(name, topic) }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

func FuzzDocument(f *testing.F) {
	for _, store := range []string{"clean", "pop"} {
		raw, err := os.ReadFile("testdata/" + store + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"forbiddenTable":{"a":null},"subscriptionGroupTable":{"a":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d, again document
		if d.UnmarshalJSON(raw) != nil {
			return
		}
		b, err := d.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalJSON(b); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, b)
		}
		if len(again.groups) != len(d.groups) || again.version != d.version {
			t.Fatalf("written %+v, read %+v", d, again)
		}
	})
}
