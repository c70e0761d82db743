package nameapi

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
	"github.com/sundial-mq/sundial/internal/remoting"
	"github.com/sundial-mq/sundial/internal/remoting/server"
	"github.com/sundial-mq/sundial/internal/storage/table"
	"github.com/sundial-mq/sundial/internal/vfs"
)

// Settings are what UPDATE_NAMESRV_CONFIG changes while the name server runs.
type Settings struct {
	// OrderMessages adds the settings of ordered topics to routes
	// (orderMessageEnable).
	OrderMessages bool
	// ReturnOrder adds them to the answers that brokers get to a registration
	// (returnOrderTopicConfigToBroker).
	ReturnOrder bool
	// AllTopicList allows the list of all topics (enableAllTopicList), TopicList the
	// others (enableTopicList).
	AllTopicList, TopicList bool
	// ActingMaster shows the first slave of a group without a master as its master,
	// if the brokers take part in that (supportActingMaster).
	ActingMaster bool
	// NotifyMinID tells the brokers of a group when another of them has the lowest id
	// (notifyMinBrokerIdChanged).
	NotifyMinID bool
	// Wait says whether, and WarmUp for how long after the start, an absent topic is
	// answered "not ready" (needWaitForService, waitSecondsForService). 0 to 24 h.
	Wait   bool
	WarmUp time.Duration
	// Scan is the time between two looks for silent brokers
	// (scanNotActiveBrokerInterval). 1 ms to 24 h.
	Scan time.Duration
}

// DefaultSettings are RocketMQ's, but that the name server waits.
func DefaultSettings() Settings {
	return Settings{ReturnOrder: true, AllTopicList: true, TopicList: true, Wait: true, WarmUp: 45 * time.Second, Scan: 5 * time.Second}
}

// Validate names everything that is wrong.
func (s Settings) Validate() error {
	var errs []error
	for key, f := range liveFields {
		if err := f.set(&s, f.get(&s)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// liveField is a setting as text.
type liveField struct {
	get func(*Settings) string
	set func(*Settings, string) error
}

// liveFields are all settings that can be changed, under RocketMQ's names.
var liveFields = map[string]liveField{
	"orderMessageEnable":             boolField(func(s *Settings) *bool { return &s.OrderMessages }),
	"returnOrderTopicConfigToBroker": boolField(func(s *Settings) *bool { return &s.ReturnOrder }),
	"enableAllTopicList":             boolField(func(s *Settings) *bool { return &s.AllTopicList }),
	"enableTopicList":                boolField(func(s *Settings) *bool { return &s.TopicList }),
	"supportActingMaster":            boolField(func(s *Settings) *bool { return &s.ActingMaster }),
	"notifyMinBrokerIdChanged":       boolField(func(s *Settings) *bool { return &s.NotifyMinID }),
	"needWaitForService":             boolField(func(s *Settings) *bool { return &s.Wait }),
	"waitSecondsForService":          timeField(time.Second, 0, 86_400, func(s *Settings) *time.Duration { return &s.WarmUp }),
	"scanNotActiveBrokerInterval":    timeField(time.Millisecond, 1, 86_400_000, func(s *Settings) *time.Duration { return &s.Scan }),
}

func boolField(at func(*Settings) *bool) liveField {
	return liveField{
		get: func(s *Settings) string { return strconv.FormatBool(*at(s)) },
		set: func(s *Settings, text string) error {
			switch strings.ToLower(text) {
			case "true", "false":
				*at(s) = strings.EqualFold(text, "true")
				return nil
			}
			return fmt.Errorf("%q is neither true nor false", text)
		},
	}
}

func timeField(unit time.Duration, least, most int64, at func(*Settings) *time.Duration) liveField {
	return liveField{
		get: func(s *Settings) string { return strconv.FormatInt(int64(*at(s)/unit), 10) },
		set: func(s *Settings, text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < least || n > most {
				return fmt.Errorf("%q is no number from %d to %d", text, least, most)
			}
			*at(s) = time.Duration(n) * unit
			return nil
		},
	}
}

// fixed are RocketMQ's settings that stand as they are, and why.
var fixed = map[string]string{
	"deleteTopicWithBrokerRegistration": "the topics of a broker are always those that it registered last",
	"unRegisterBrokerQueueCapacity":     "brokers are unregistered when they say so, not from a queue",
	"enableControllerInNamesrv":         "the controller is not served yet",
}

// blackList are the keys that RocketMQ lets nobody change.
var blackList = []string{"configBlackList", "configStorePath", "kvConfigPath"}

// changesFile is liveConfig.json: the settings changed by command.
type changesFile struct {
	Changed map[string]string `json:"changed"`
}

// openSettings reads what was changed by command, which goes before what the
// configuration says.
func (a *API) openSettings(fs vfs.FS, dir string) error {
	now := a.cfg.Settings
	doc, kept, report, err := table.Open[changesFile](fs, filepath.Join(dir, "liveConfig.json"))
	if err != nil {
		return err
	}
	if text := report.String(); text != "" {
		a.log.Warn("liveConfig.json is " + text)
	}
	a.changes, a.changed = doc, kept.Changed
	if a.changed == nil {
		a.changed = map[string]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(a.changed)) {
		f, known := liveFields[key]
		if !known {
			return fmt.Errorf("liveConfig.json in %s has the key %q, which cannot be changed while running", dir, key)
		}
		says := f.get(&now)
		if err := f.set(&now, a.changed[key]); err != nil {
			return fmt.Errorf("liveConfig.json in %s: %s: %w", dir, key, err)
		}
		a.log.Warn("setting was changed by command and stays so; set it back the same way", "key", key, "value", f.get(&now), "configuration", says)
	}
	a.apply(now)
	return nil
}

func (a *API) settings() *Settings { return a.live.Load() }

// apply puts settings in force.
func (a *API) apply(s Settings) {
	a.live.Store(&s)
	warmUp := s.WarmUp
	if !s.Wait {
		warmUp = 0
	}
	a.routes.SetWarmUp(warmUp)
	select {
	case a.lookSooner <- struct{}{}:
	default:
	}
}

// properties lists every setting in force.
func (a *API) properties() map[string]string {
	all := map[string]string{
		"configBlackList":                   strings.Join(blackList, ";"),
		"deleteTopicWithBrokerRegistration": "true",
		"enableControllerInNamesrv":         "false",
		"serverChannelMaxIdleTimeSeconds":   "120",
	}
	maps.Copy(all, a.cfg.Properties)
	live := a.settings()
	for key, f := range liveFields {
		all[key] = f.get(live)
	}
	return all
}

// getConfig tells what is in force, as a Java properties text.
func (a *API) getConfig(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	all := a.properties()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", key, propertyEscapes.Replace(all[key]))
	}
	resp := ok(req, nil, nil)
	resp.Body = []byte(text.String())
	return resp, nil
}

var propertyEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// updateConfig changes settings, all that the text names or none. They are on
// disk when the answer goes out.
func (a *API) updateConfig(_ *server.Conn, req *remoting.Command) (*remoting.Command, error) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	text, err := loader.LoadBytes(req.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: the body is no properties text: %v", mq.ErrInvalid, err)
	}
	asked := text.Map()
	if len(asked) == 0 {
		return nil, fmt.Errorf("%w: the body names no setting", mq.ErrInvalid)
	}
	for _, key := range blackList {
		if _, said := asked[key]; said {
			return nil, answer(protocol.NoPermission, "Can not update config in black list.")
		}
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	next, changed := *a.settings(), maps.Clone(a.changed)
	now := a.properties()
	var told []any
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		value := strings.TrimSpace(asked[key])
		f, live := liveFields[key]
		switch why, stands := fixed[key]; {
		case live:
			if err := f.set(&next, value); err != nil {
				return nil, fmt.Errorf("%w: %s: %v; nothing was changed", mq.ErrInvalid, key, err)
			}
			if changed[key] = f.get(&next); changed[key] == f.get(&a.cfg.Settings) {
				delete(changed, key)
			}
			told = append(told, key, f.get(&next))
		case now[key] == value && hasKey(now, key): // what is asked for is so
		case stands:
			return nil, fmt.Errorf("%w: %s: %s; nothing was changed", mq.ErrUnsupported, key, why)
		case hasKey(now, key):
			return nil, fmt.Errorf("%w: %s does not change while the name server runs: edit the configuration and restart; nothing was changed", mq.ErrUnsupported, key)
		default:
			return nil, fmt.Errorf("%w: the name server has no setting %q that changes while it runs; it has %s; nothing was changed",
				mq.ErrInvalid, key, strings.Join(slices.Sorted(maps.Keys(liveFields)), ", "))
		}
	}
	if err := a.changes.Save(changesFile{changed}); err != nil {
		a.log.Error("settings are not saved", "err", err)
		return nil, fmt.Errorf("%w: %v; nothing was changed", mq.ErrSystem, err)
	}
	a.changed = changed
	a.apply(next)
	a.log.Info("settings changed by command", told...)
	return ok(req, nil, nil), nil
}

func hasKey(m map[string]string, key string) bool {
	_, has := m[key]
	return has
}
