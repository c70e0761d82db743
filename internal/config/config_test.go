package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite docs/CONFIG.md from the table")

func read(t *testing.T, text string, more ...func(*Input)) *Settings {
	t.Helper()
	s, err := Read(input(text, more...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func input(text string, more ...func(*Input)) Input {
	in := Input{HostName: "host-1", Home: "/home/me"}
	if text != "" {
		in.File, in.Text = "broker.conf", []byte(text)
	}
	for _, f := range more {
		f(&in)
	}
	return in
}

func set(pairs ...string) func(*Input) {
	return func(in *Input) {
		for _, p := range pairs {
			o, err := ParseSet(p)
			if err != nil {
				panic(err)
			}
			in.Overrides = append(in.Overrides, o)
		}
	}
}

func TestDefaultsWithoutAFile(t *testing.T) {
	t.Parallel()
	s := read(t, "")
	for _, c := range []struct{ got, want any }{
		{s.ListenPort, 10911}, {s.FastListenPort, 10909}, {s.NamesrvListenPort, 9876},
		{s.BindAddress, "127.0.0.1"}, {s.StorePathRootDir, "sundial-data"}, {s.BrokerName, "host-1"},
		{s.BrokerClusterName, "DefaultCluster"}, {s.MappedFileSizeCommitLog, int64(1 << 30)}, {s.MappedFileSizeConsumeQueue, int64(6_000_000)},
		{s.MaxMessageSize, 4 << 20}, {s.SyncFlush(), false}, {s.FlushIntervalCommitLog, 500 * time.Millisecond},
		{s.FileReservedTime, 72 * time.Hour}, {s.ServerChannelMaxIdleTime, 2 * time.Minute}, {s.BrokerPermission, int32(6)},
		{len(s.NamesrvAddr), 0}, {len(s.StorePathCommitLog), 0}, {len(s.Warnings), 0}, {s.DiskMaxUsedSpaceRatio, 75},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if !slices.Equal(s.DeleteWhen, []int{4}) {
		t.Errorf("deleteWhen is %v", s.DeleteWhen)
	}
}

func TestWithAFileDefaultsAreRocketMQs(t *testing.T) {
	t.Parallel()
	s := read(t, "# nothing\n")
	if s.BindAddress != "0.0.0.0" || s.StorePathRootDir != filepath.Join("/home/me", "store") {
		t.Errorf("bind %s, root %s", s.BindAddress, s.StorePathRootDir)
	}
}

func TestValuesOfAFile(t *testing.T) {
	t.Parallel()
	s := read(t, `
! a remark
brokerName = 经纪-a
brokerClusterName:c1
listenPort 20911
namesrvAddr=10.0.0.1:9876; ns.example:9876
flushDiskType=SYNC_FLUSH   
deleteWhen=04;16
fileReservedTime=48
autoCreateTopicEnable=FALSE
storePathRootDir=\u4e2d/${HOME}/a\\b
storePathCommitLog=/d1/log,\
    /d2/log
mappedFileSizeConsumeQueue=1001
messageDelayLevel=1s 2m 3h 4d
brokerRole=ASYNC_MASTER
`)
	for _, c := range []struct{ got, want any }{
		{s.BrokerName, "经纪-a"}, {s.BrokerClusterName, "c1"}, {s.ListenPort, 20911}, {s.FastListenPort, 20909},
		{strings.Join(s.NamesrvAddr, " "), "10.0.0.1:9876 ns.example:9876"}, {s.SyncFlush(), true},
		{fmt.Sprint(s.DeleteWhen), "[4 16]"}, {s.FileReservedTime, 48 * time.Hour}, {s.AutoCreateTopicEnable, false},
		{s.StorePathRootDir, `中/${HOME}/a\b`}, {strings.Join(s.StorePathCommitLog, "+"), "/d1/log+/d2/log"},
		{s.MappedFileSizeConsumeQueue, int64(1020)}, {s.MessageDelayLevel, "1s 2m 3h 4d"},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	if len(s.Warnings) != 0 {
		t.Errorf("warned: %q", s.Warnings)
	}
}

func TestOriginsAndPrecedence(t *testing.T) {
	t.Parallel()
	s := read(t, "\nlistenPort=1000\nbrokerName=b\nmaxMessageSize=100\n",
		func(in *Input) { in.NamesrvAddr = "env:1"; in.PortOffset = 7 },
		set("listenPort=2000", "maxMessageSize=200", "maxMessageSize=0300"))
	got := map[string]string{}
	for _, e := range s.Effective() {
		got[e.Key] = e.Value + " " + e.Origin
	}
	for key, want := range map[string]string{
		"listenPort": "2000 --set", "fastListenPort": "1998 default (listenPort - 2)", "brokerName": "b broker.conf:3",
		"maxMessageSize": "300 --set", "namesrvAddr": "env:1 environment NAMESRV_ADDR", "regionId": "DefaultRegion default",
		"namesrvListenPort": "9883 default (--port-offset)",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if s.MaxMessageSize != 300 || s.ListenPort != 2000 {
		t.Error("what is printed is not what is in force")
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text         string
		more         func(*Input)
		listen, fast int
		namesrv      int
	}{
		{"", func(in *Input) { in.PortOffset = 100 }, 11011, 11009, 9976},
		{"listenPort=0", set(), 0, 0, 9876},
		{"listenPort=2", set(), 2, -1, 9876},
		{"fastListenPort=-1", set(), 10911, -1, 9876},
		{"listenPort=9999", func(in *Input) { in.NameServerOnly = true }, 10911, 10909, 9999},
		{"", func(in *Input) {
			in.NameServerOnly = true
			in.Overrides = []Override{{"listenPort", "9998", "--set"}}
		}, 10911, 10909, 9998},
	} {
		s := read(t, c.text, c.more)
		if s.ListenPort != c.listen || s.FastListenPort != c.fast || s.NamesrvListenPort != c.namesrv {
			t.Errorf("%q: ports %d %d %d, want %d %d %d", c.text, s.ListenPort, s.FastListenPort, s.NamesrvListenPort, c.listen, c.fast, c.namesrv)
		}
	}
}

func TestComplaintsNameFileLineKeyValueAndRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"\n\nbrokerNmae=x", `broker.conf:3: unknown key "brokerNmae": the nearest known key is brokerName`},
		{"flushDisktype=SYNC_FLUSH", `broker.conf:1: unknown key "flushDisktype": it is written flushDiskType`},
		{"filereservetime=3", `unknown key "filereservetime": the nearest known key is fileReservedTime`},
		{"abcdefgh=x", `unknown key "abcdefgh", which is like no key`},
		{"listenPort=70000", "broker.conf:1: listenPort=70000: want a whole number from 0 to 65535"},
		{"listenPort=1 2", "listenPort=1 2: want a whole number"},
		{"fileReservedTime=0", "fileReservedTime=0: want a whole number from 1 to 876000 (h)"},
		{"flushDiskType=SYNC", "flushDiskType=SYNC: want ASYNC_FLUSH or SYNC_FLUSH"},
		{"traceOn=yes", "traceOn=yes: want true or false"},
		{"deleteWhen=4;24", "deleteWhen=4;24: want hours from 0 to 23"},
		{"deleteWhen=", "deleteWhen=: want hours"},
		{"brokerName=", "brokerName=: want text that is not empty"},
		{"bindAddress=localhost", "want an IP address"},
		{"namesrvAddr=a:9876,b:9876", `"a:9876,b:9876" is not host:port; want host:port, several separated by semicolons`},
		{"namesrvAddr=a", `"a" is not host:port`},
		{"messageDelayLevel=1s 5x", `"5x" is not a delay; want numbers with s, m, h or d`},
		{"messageDelayLevel=1s m", `"m" is not a delay`},
		{"messageDelayLevel=", "want numbers with"},
		{"storePathRootDir=~/store", "write the whole path"},
		{"brokerId=1", "brokerId=1: want 0"},
		{"brokerRole=SLAVE", "broker.conf:1: brokerRole=SLAVE: only ASYNC_MASTER is served: replicas are not there yet"},
		{"enableDLegerCommitLog=true", "only false is served: commit logs of DLedger"},
		{"storeType=defaultRocksDB", "only default is served: there is no RocksDB"},
		{"enableControllerMode=TRUE", "only false is served: the controller"},
		{"messageStorePlugIn=x.y.TieredMessageStore", "only an empty value is served"},
		{"sendMessageThreadPoolNums=many", "sendMessageThreadPoolNums=many: want a whole number"},
		{"ignorePending=pop,money", "want some of pop"},
		{"listenPort=\\u12", "broker.conf:1:"},
		{"listenPort=1\xff", "not UTF-8"},
	} {
		_, err := Read(input(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q gave %v\nwant it to say %q", c.text, err, c.want)
		}
	}
	_, err := Read(input("a=1\nlistenPort=x\nbrokerRole=SLAVE", set("b=2")))
	if n := strings.Count(fmt.Sprint(err), "\n"); n != 3 {
		t.Errorf("not all complaints came at once: %v", err)
	}
	_, err = Read(input("brokerRole=SLAVE\nlistenPort=x\naclEnable=true"))
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "broker.conf:1:") || !strings.HasPrefix(lines[2], "broker.conf:3:") {
		t.Errorf("complaints are not in the order of the file: %v", err)
	}
	_, err = Read(input(strings.Repeat("dear sir\n", 1000)))
	if n := strings.Count(fmt.Sprint(err), "\n"); n != maxComplaints {
		t.Errorf("%d complaints about a file that is no configuration", n)
	}
	_, err = Read(input("", set("brokerNam=2")))
	if err == nil || !strings.HasPrefix(err.Error(), `--set: unknown key "brokerNam"`) {
		t.Errorf("a wrong --set gave %v", err)
	}
	if _, err := ParseSet("no value"); err == nil {
		t.Error("--set without = was accepted")
	}
}

func TestAcceptedKeysAreToldOnceUnlessTheyAskForNothing(t *testing.T) {
	t.Parallel()
	s := read(t, "sendMessageThreadPoolNums=8\npullMessageThreadPoolNums=8\nuseReentrantLockWhenPutMessage=true\ntransientStorePoolEnable=true\n"+
		"brokerName=a\nbrokerName=b\n", set("timerPrecisionMs=1000"))
	if len(s.Warnings) != 3 {
		t.Fatalf("%d warnings: %q", len(s.Warnings), s.Warnings)
	}
	all := strings.Join(s.Warnings, "\n")
	for _, want := range []string{
		"broker.conf:6: brokerName is given again; the value of broker.conf:5 does not count",
		"accepted and not needed: sendMessageThreadPoolNums, pullMessageThreadPoolNums (there are no thread pools",
		"accepted and not needed: transientStorePoolEnable (",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning says %q:\n%s", want, all)
		}
	}
	// What the command line takes back is neither refused nor warned of.
	s = read(t, "brokerRole=SLAVE\ntransientStorePoolEnable=true", set("brokerRole=ASYNC_MASTER", "transientStorePoolEnable=false"))
	if len(s.Warnings) != 0 {
		t.Errorf("warned: %q", s.Warnings)
	}
}

// The whole configuration of a running RocketMQ 5.5.0, as it prints it.
func TestEveryKeyOfRocketMQIsKnown(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/rocketmq-5.5.0.properties")
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, string(text))
	if s.ListenPort != 31911 || s.FastListenPort != 31909 || s.RegisterNameServerPeriod != 15*time.Second {
		t.Errorf("read %d, %d, %v", s.ListenPort, s.FastListenPort, s.RegisterNameServerPeriod)
	}
	if n := strings.Count(strings.Join(s.Warnings, " "), ","); n > 20 {
		t.Errorf("a configuration that is mostly RocketMQ's default gives too many warnings: %q", s.Warnings)
	}
}

func TestTheTableIsWhole(t *testing.T) {
	t.Parallel()
	var s Settings
	fields := map[any]string{}
	names := map[string]bool{}
	for _, k := range Keys() {
		if names[k.Name] {
			t.Errorf("%s is in the table twice", k.Name)
		}
		names[k.Name] = true
		if k.Doc == "" || k.Wants() == "" || (k.Use == Used) != (k.field != nil) || (k.Use == Used) != (k.Section != "") {
			t.Errorf("the line of %s is not whole", k.Name)
		}
		if k.Default != "" {
			if _, err := k.check(k.Default); err != nil {
				t.Errorf("the default of %s is not allowed: %v", k.Name, err)
			}
		}
		if k.field == nil {
			continue
		}
		f := k.field(&s)
		if fields[f] != "" {
			t.Errorf("%s and %s are the same field", k.Name, fields[f])
		}
		fields[f] = k.Name
		if _, timed := f.(*time.Duration); timed != (k.Unit == "ms" || k.Unit == "s" || k.Unit == "h") && k.Name != "startAcceptSendRequestTimeStamp" {
			t.Errorf("%s has the unit %q in a field of type %T", k.Name, k.Unit, f)
		}
	}
	exported := 0
	for i := range reflect.TypeFor[Settings]().NumField() {
		if f := reflect.TypeFor[Settings]().Field(i); f.IsExported() && f.Name != "Warnings" {
			exported++
		}
	}
	if exported != len(fields) {
		t.Errorf("Settings has %d values, the table fills %d", exported, len(fields))
	}
}

func TestNearestAndDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "ab", 1}, {"kitten", "sitting", 3}, {"", "ab", 2}, {"ca", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
	for given, want := range map[string]string{
		"brokername": "brokerName", "namesvrAddr": "namesrvAddr", "storePathRoot": "storePathRootDir", "listenport": "listenPort",
		"flushDiskTyp": "flushDiskType", "deletewhen ": "deleteWhen", "mapedFileSizeComitLog": "mapedFileSizeCommitLog",
	} {
		if got := nearest(given); got != want {
			t.Errorf("nearest to %q is %q, want %q", given, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"fileReservedTime":       "default: 72",
		"deliveryReserveSize":    "RocketMQ has no such key",
		"needWaitForService":     "whose default is false",
		"brokerRole":             "The only value that Sundial serves is ASYNC_MASTER: replicas",
		"haMasterAddress":        "is an empty one",
		"useEpollNativeSelector": "reads and does not need",
	} {
		text, err := Explain(name)
		if err != nil || !strings.HasPrefix(text, name+"\n") || !strings.Contains(text, want) {
			t.Errorf("%s is explained as %q, %v; want it to say %q", name, text, err, want)
		}
	}
	if _, err := Explain("nothing"); err == nil {
		t.Error("an unknown key was explained")
	}
}

func TestLoadReadsTheFileAndTheMachine(t *testing.T) {
	t.Setenv("NAMESRV_ADDR", "ns:9876")
	name := filepath.Join(t.TempDir(), "b.conf")
	if err := os.WriteFile(name, []byte("\xef\xbb\xbfbrokerClusterName=c\r\nlistenPort=1\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Load(name, Input{})
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if s.BrokerClusterName != "c" || s.ListenPort != 1 || s.BrokerName != host || len(s.NamesrvAddr) != 1 {
		t.Errorf("loaded %q %d %q %q", s.BrokerClusterName, s.ListenPort, s.BrokerName, s.NamesrvAddr)
	}
	if _, err := Load(name+"x", Input{}); err == nil {
		t.Error("a missing file was read")
	}
}

func TestTheDocumentIsFresh(t *testing.T) {
	t.Parallel()
	const name = "../../docs/CONFIG.md"
	want := Markdown()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is not what the table says (%v): run go test ./internal/config -update, and read the difference", name, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("brokerName=a\nlistenPort=1\n", "x=1")
	f.Add("a\\\n b=c\\u4e2d\n#x\n! y\nmessageDelayLevel=1s 2h", "listenPort=3")
	f.Add("namesrvAddr=a:1;b:2\ndeleteWhen=1;2\nstorePathCommitLog=/a,/b", "brokerName=")
	f.Add("listenPort = 10911 \\", "=")
	f.Add("\\", "brokerRole=SLAVE")
	f.Fuzz(func(t *testing.T, text, over string) {
		in := input(text)
		if o, err := ParseSet(over); err == nil {
			in.Overrides = append(in.Overrides, o)
		}
		s, err := Read(in)
		if err != nil {
			return
		}
		// What is in force, given again, is the same.
		again := Input{}
		for _, e := range s.Effective() {
			again.Overrides = append(again.Overrides, Override{e.Key, e.Value, "again"})
		}
		s2, err := Read(again)
		if err != nil {
			t.Fatalf("what is in force is refused: %v", err)
		}
		s.Warnings, s.origins, s2.Warnings, s2.origins = nil, nil, nil, nil
		if !reflect.DeepEqual(s, s2) {
			t.Fatalf("given again it is different:\n%+v\n%+v", s, s2)
		}
	})
}

// Files that have been copied from one another since RocketMQ 3 hold keys that it
// reads no more.
func TestKeysThatRocketMQLeftBehindAreAccepted(t *testing.T) {
	t.Parallel()
	s := read(t, "storePathConsumeQueue=/s/consumequeue\nstorePathIndex=/s/index\nstoreCheckpoint=/s/checkpoint\nabortFile=/s/abort\n"+
		"mapedFileSizeCommitLog=1073741824\nmapedFileSizeConsumeQueue=300000\ncheckTransactionMessageEnable=false")
	all := strings.Join(s.Warnings, "\n")
	for _, want := range []string{"storePathIndex", "abortFile", "mapedFileSizeConsumeQueue", "lie in storePathRootDir", "with two p"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not told in\n%s", want, all)
		}
	}
}

// Two nodes of one host in one cluster must not have one name.
func TestAPortOffsetIsPartOfTheDefaultName(t *testing.T) {
	t.Parallel()
	in := Input{HostName: "h", PortOffset: 100}
	if s, err := Read(in); err != nil || s.BrokerName != "h-100" {
		t.Errorf("the name is %q, %v", s.BrokerName, err)
	}
	in.Overrides = []Override{{"brokerName", "b", "--set"}}
	if s, err := Read(in); err != nil || s.BrokerName != "b" {
		t.Errorf("the name is %q, %v", s.BrokerName, err)
	}
}
