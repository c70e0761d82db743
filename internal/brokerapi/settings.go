package brokerapi

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"github.com/sundial-mq/sundial/internal/mq"
	"github.com/sundial-mq/sundial/internal/protocol"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Settings are what UPDATE_BROKER_CONFIG changes while the broker runs.
type Settings struct {
	// Perm is what the broker may do: give messages, take them (brokerPermission).
	Perm mq.Perm
	// AutoTopics and AutoGroups let topics and groups come by themselves
	// (autoCreateTopicEnable, autoCreateSubscriptionGroup).
	AutoTopics, AutoGroups bool
	// Reserved is how long messages are kept (fileReservedTime), 1 hour or more.
	Reserved time.Duration
	// Hours of the day in which expired files go (deleteWhen).
	Hours []int
	// MaxUsed is the percentage of the disk above which they go at any hour
	// (diskMaxUsedSpaceRatio), 10 to 95.
	MaxUsed int
}

// liveField is a setting as text.
type liveField struct {
	get func(*Settings) string
	set func(*Settings, string) error
}

// liveFields are all settings that can be changed, under RocketMQ's names. Each
// takes effect with the answer; name servers know of a permission at once.
var liveFields = map[string]liveField{
	"brokerPermission": {
		func(s *Settings) string { return strconv.Itoa(int(s.Perm)) },
		func(s *Settings, text string) error {
			n, err := number(text, 0, 6)
			if err != nil || n&1 != 0 {
				return fmt.Errorf("%q must be 2 (take messages), 4 (give messages), 6 (both) or 0", text)
			}
			s.Perm = mq.Perm(n)
			return nil
		},
	},
	"autoCreateTopicEnable":       liveBool(func(s *Settings) *bool { return &s.AutoTopics }),
	"autoCreateSubscriptionGroup": liveBool(func(s *Settings) *bool { return &s.AutoGroups }),
	"fileReservedTime": {
		func(s *Settings) string { return strconv.FormatInt(int64(s.Reserved/time.Hour), 10) },
		func(s *Settings, text string) error {
			n, err := number(text, 1, 24*365*100)
			s.Reserved = time.Duration(n) * time.Hour
			return err
		},
	},
	"deleteWhen": {
		func(s *Settings) string {
			hours := make([]string, len(s.Hours))
			for i, h := range s.Hours {
				hours[i] = fmt.Sprintf("%02d", h)
			}
			return strings.Join(hours, ";")
		},
		func(s *Settings, text string) error {
			var hours []int
			for part := range strings.SplitSeq(text, ";") {
				h, err := number(strings.TrimSpace(part), 0, 23)
				if err != nil {
					return err
				}
				hours = append(hours, h)
			}
			s.Hours = hours
			return nil
		},
	},
	"diskMaxUsedSpaceRatio": {
		func(s *Settings) string { return strconv.Itoa(s.MaxUsed) },
		func(s *Settings, text string) (err error) {
			s.MaxUsed, err = number(text, 10, 95)
			return err
		},
	},
}

func liveBool(at func(*Settings) *bool) liveField {
	return liveField{
		func(s *Settings) string { return strconv.FormatBool(*at(s)) },
		func(s *Settings, text string) error {
			if !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
				return fmt.Errorf("%q is neither true nor false", text)
			}
			*at(s) = strings.EqualFold(text, "true")
			return nil
		},
	}
}

func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is no whole number from %d to %d", text, least, most)
	}
	return n, nil
}

// blackList are the keys that RocketMQ lets nobody change.
var blackList = []string{"brokerConfigPath", "rocketmqHome", "configBlackList"}

// changesFile is liveConfig.json: the settings changed by command, which go
// before what the configuration says.
type changesFile struct {
	Changed map[string]string `json:"changed"`
}

// openSettings reads what was changed by command in earlier lives and puts it in
// force.
func (a *API) openSettings(fs vfs.FS, dir string) error {
	now := a.cfg.Settings
	a.live.now = &now
	if fs == nil {
		return nil // nothing can be changed
	}
	doc, kept, report, err := table.Open[changesFile](fs, filepath.Join(dir, "liveConfig.json"))
	if err != nil {
		return err
	}
	if text := report.String(); text != "" {
		a.log.Warn("liveConfig.json is " + text)
	}
	a.live.file, a.live.changed = doc, kept.Changed
	for _, key := range slices.Sorted(maps.Keys(kept.Changed)) {
		f, known := liveFields[key]
		if !known {
			return fmt.Errorf("liveConfig.json in %s has the key %q, which cannot be changed while running", dir, key)
		}
		says := f.get(&now)
		if err := f.set(&now, kept.Changed[key]); err != nil {
			return fmt.Errorf("liveConfig.json in %s: %s: %w", dir, key, err)
		}
		a.log.Warn("setting was changed by command and stays so; set it back the same way", "key", key, "value", f.get(&now), "configuration", says)
	}
	if len(kept.Changed) == 0 {
		return nil
	}
	return a.apply(&a.cfg.Settings, &now)
}

// apply puts settings in force that differ from those before.
func (a *API) apply(before, s *Settings) error {
	a.live.now = s
	a.p.Store.SetExpiry(s.Reserved, s.Hours, s.MaxUsed)
	a.p.Groups.SetAutoCreate(s.AutoGroups)
	var errs []error
	if s.AutoTopics != before.AutoTopics {
		errs = append(errs, a.p.Topics.SetAutoCreate(s.AutoTopics))
	}
	if s.Perm != before.Perm {
		a.p.Produce.SetPerm(s.Perm)
		a.p.Redeliver.SetPerm(s.Perm)
		a.p.Fetch.SetPerm(s.Perm)
		if a.p.SetPerm != nil {
			a.p.SetPerm(s.Perm)
		}
		// Name servers listen only when the version of the topics steps.
		errs = append(errs, a.p.Topics.Touch())
	}
	return errors.Join(errs...)
}

// updateConfig changes settings (25), all that the body names or none. They are on
// disk and in force when the answer goes out.
func (a *API) updateConfig(r *request) (answer, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	text, err := loader.LoadBytes(r.cmd.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%w: the body is no properties text: %v", mq.ErrInvalid, err)
	}
	asked := text.Map()
	if len(asked) == 0 {
		return answer{}, fmt.Errorf("%w: the body names no setting", mq.ErrInvalid)
	}
	for _, key := range blackList {
		if _, said := asked[key]; said {
			return answer{}, fmt.Errorf("%w: Can not update config in black list. (%s)", mq.ErrNoPermission, key)
		}
	}
	a.live.Lock()
	defer a.live.Unlock()
	before := a.live.now
	next, changed, err := a.change(asked, before)
	if err != nil {
		return answer{}, fmt.Errorf("%w; nothing was changed", err)
	}
	if a.live.file == nil {
		return answer{}, fmt.Errorf("%w: this broker has no place to keep changed settings", mq.ErrUnsupported)
	}
	if err := a.live.file.Save(changesFile{changed}); err != nil {
		return answer{}, fmt.Errorf("%w: %w; nothing was changed", mq.ErrSystem, err)
	}
	a.live.changed = changed
	a.live.version = a.live.version.Next(time.Now().UnixMilli())
	if err := a.apply(before, next); err != nil {
		return answer{}, fmt.Errorf("the settings are changed, but not all that follows is saved yet: %w", err)
	}
	a.log.Info("settings changed by command", "settings", changed, "asked", asked)
	a.announce(r)
	return answer{}, nil
}

// change is what comes of asked, without doing it: the settings, and those that
// differ from the configuration.
func (a *API) change(asked map[string]string, now *Settings) (next *Settings, changed map[string]string, err error) {
	copied := *now
	next, changed = &copied, maps.Clone(a.live.changed)
	if changed == nil {
		changed = map[string]string{}
	}
	fixed := map[string]string{}
	for _, kv := range a.cfg.Properties {
		fixed[kv[0]] = kv[1]
	}
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		value := strings.TrimSpace(asked[key])
		f, live := liveFields[key]
		stands, known := fixed[key]
		switch {
		case live:
			if err := f.set(next, value); err != nil {
				return nil, nil, fmt.Errorf("%w: %s: %v", mq.ErrInvalid, key, err)
			}
			if changed[key] = f.get(next); changed[key] == f.get(&a.cfg.Settings) {
				delete(changed, key)
			}
		case known && stands == value: // it is so
		case known:
			return nil, nil, fmt.Errorf("%w: %s needs a restart: edit the configuration, where it is %q; while the broker runs %s can be changed",
				mq.ErrUnsupported, key, stands, strings.Join(slices.Sorted(maps.Keys(liveFields)), ", "))
		default:
			return nil, nil, fmt.Errorf("%w: there is no setting %q; while the broker runs %s can be changed", mq.ErrInvalid, key, strings.Join(slices.Sorted(maps.Keys(liveFields)), ", "))
		}
	}
	return next, changed, nil
}

// brokerConfig shows the settings in force (26) as the text of a Java
// properties file.
func (a *API) brokerConfig(*request) (answer, error) {
	a.live.Lock()
	now, version := a.live.now, a.live.version
	a.live.Unlock()
	settings := slices.Clone(a.cfg.Properties)
	if len(settings) == 0 { // Java's tools take no empty body
		settings = [][2]string{
			{"brokerClusterName", a.cfg.Cluster}, {"brokerName", a.cfg.Broker}, {"brokerId", strconv.FormatInt(a.cfg.BrokerID, 10)},
			{"brokerIP1", a.cfg.Addr.Addr().String()}, {"listenPort", strconv.Itoa(int(a.cfg.Addr.Port()))},
		}
	}
	var b strings.Builder
	for _, kv := range settings {
		if f, live := liveFields[kv[0]]; live {
			kv[1] = f.get(now)
		}
		b.WriteString(escapeProperty(kv[0], true))
		b.WriteByte('=')
		b.WriteString(escapeProperty(kv[1], false))
		b.WriteByte('\n')
	}
	return answer{header: &protocol.ConfigResponse{Version: string(protocol.EncodeBody(&version))}, body: []byte(b.String())}, nil
}
