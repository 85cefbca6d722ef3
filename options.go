package tidemill

import (
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
)

// Options are what a Session starts with. The zero value works.
type Options struct {
	// Settings are SET name = value: time_zone, watermark_policy, memory_limit,
	// threads, batch_rows, disabled_rules. An unknown one is an error of NewSession.
	Settings map[string]string
	// Warn is told what a user should know and need not act on; nil drops it.
	Warn func(text string)
	// Stdout is where the console sink prints; nil is the process's.
	Stdout io.Writer

	fs    vfs.FS            // tests bring their own
	clock incremental.Clock // of queries; nil is the wall clock
}

// settings are the values of SET.
type settings struct {
	zoneName    string
	zone        *time.Location
	policy      incremental.WatermarkPolicy
	memoryLimit int64
	threads     int64
	batchRows   int64
	disabled    []string
}

func defaultSettings() settings {
	return settings{zoneName: "UTC", zone: time.UTC, threads: int64(runtime.GOMAXPROCS(0)), batchRows: columnar.DefaultBatchRows}
}

// keys are the settings by name.
func (s *settings) keys() []connector.Key {
	return []connector.Key{
		connector.FuncKey("time_zone", "a time zone such as 'Europe/Berlin'", s.setZone),
		connector.FuncKey("watermark_policy", "'min' or 'max'", func(text string) (err error) {
			s.policy, err = incremental.ParseWatermarkPolicy(text)
			return err
		}),
		connector.BytesKey("memory_limit", &s.memoryLimit),
		connector.IntKey("threads", &s.threads, 1),
		connector.IntKey("batch_rows", &s.batchRows, 1),
		connector.FuncKey("disabled_rules", "names of optimizer rules, separated by commas", s.setDisabled),
	}
}

func (s *settings) setZone(text string) error {
	zone, err := columnar.LoadZone(text)
	if err != nil {
		return err
	}
	s.zoneName, s.zone = zone.String(), zone
	return nil
}

func (s *settings) setDisabled(text string) error {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	if slices.Contains(names, "") {
		return errors.New("it takes names of optimizer rules, separated by commas")
	}
	if _, err := optimizer.New(&function.Env{}, names...); err != nil {
		return err
	}
	s.disabled = names
	return nil
}

// sharedSettings are those of a session, safe for concurrent use.
type sharedSettings struct {
	mu  sync.Mutex
	now settings
}

// get is the settings as they are now.
func (s *sharedSettings) get() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *sharedSettings) set(name, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.set(name, value)
}

func (s *sharedSettings) list() []sql.Setting {
	now := s.get()
	return now.list()
}

// budget is the memory one query may take; nil without a limit.
func (s *settings) budget() *columnar.Budget {
	if s.memoryLimit == 0 {
		return nil
	}
	return columnar.NewBudget(s.memoryLimit)
}

// set applies one SET.
func (s *settings) set(name, value string) error {
	return connector.Decode(map[string]string{strings.ToLower(name): value}, s.keys()...)
}

// list gives the settings and their values, for SHOW.
func (s *settings) list() []sql.Setting {
	limit := "none"
	if s.memoryLimit > 0 {
		limit = strconv.FormatInt(s.memoryLimit, 10)
	}
	return []sql.Setting{
		{Name: "time_zone", Value: s.zoneName},
		{Name: "watermark_policy", Value: s.policy.String()},
		{Name: "memory_limit", Value: limit},
		{Name: "threads", Value: strconv.FormatInt(s.threads, 10)},
		{Name: "batch_rows", Value: strconv.FormatInt(s.batchRows, 10)},
		{Name: "disabled_rules", Value: strings.Join(s.disabled, ", ")},
	}
}

// pinned are the settings a checkpoint keeps: another value at a restart is refused.
func (s *settings) pinned() map[string]string {
	return map[string]string{"time_zone": s.zoneName, "watermark_policy": s.policy.String()}
}

func (o Options) withDefaults() Options {
	if o.fs == nil {
		o.fs = vfs.OS()
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	} else {
		o.Stdout = guardedWriter{o.Stdout}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	warn := o.Warn
	o.Warn = func(text string) {
		defer columnar.NamePanic("Options.Warn")
		warn(text)
	}
	return o
}
