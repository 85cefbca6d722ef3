package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Operators whose results depend on when rows come, so that no batch gives them, are held
// to a model: a few lines of Go that are told the batches and their watermarks.

// modelRow is a row of a model's stream; key 0 stands for null, ts nil for null.
type modelRow struct {
	id, key int
	ts      *int64
}

func (r modelRow) json() string {
	key, ts := "null", "null"
	if r.key > 0 {
		key = fmt.Sprint(r.key)
	}
	if r.ts != nil {
		ts = time.UnixMicro(*r.ts).UTC().Format(`"2006-01-02T15:04:05.999999Z07:00"`)
	}
	return fmt.Sprintf("{\"id\":%d,\"k\":%s,\"ts\":%s}\n", r.id, key, ts)
}

// model is an operator, told one batch after the other.
type model interface {
	// batch gives what the batch emits, one text a row, and how many rows were late.
	batch(rows []modelRow, late, evict *int64) (out []string, dropped int64)
}

// passed says whether a watermark has passed a time.
func passed(t int64, watermark *int64) bool { return watermark != nil && t <= *watermark }

// within is DISTINCT ON (k) … WITHIN WATERMARK.
type within struct {
	delay   int64
	expires map[int]*int64 // by key; nil is never
}

func (m *within) batch(rows []modelRow, late, evict *int64) (out []string, dropped int64) {
	for _, r := range rows {
		_, seen := m.expires[r.key]
		switch {
		case r.ts != nil && passed(*r.ts, late):
			dropped++
		case !seen:
			out = append(out, fmt.Sprint(r.id))
			m.expires[r.key] = nil
			if r.ts != nil {
				at := *r.ts + m.delay
				m.expires[r.key] = &at
			}
		}
	}
	for key, at := range m.expires {
		if at != nil && passed(*at, evict) {
			delete(m.expires, key)
		}
	}
	return out, dropped
}

// sessionModel is GROUP BY session_window(ts, gap), k in append mode.
type sessionModel struct {
	gap  int64
	live map[int][]liveSession
}

type liveSession struct{ start, end, rows, ids int64 }

func (m *sessionModel) batch(rows []modelRow, late, evict *int64) (out []string, dropped int64) {
	for _, r := range rows {
		if r.ts == nil {
			continue
		}
		s := liveSession{*r.ts, *r.ts + m.gap, 1, int64(r.id)}
		if passed(s.end, late) {
			dropped++
			continue
		}
		m.live[r.key] = append(slices.DeleteFunc(m.live[r.key], func(o liveSession) bool {
			if o.start > s.end || o.end < s.start {
				return false
			}
			s = liveSession{min(o.start, s.start), max(o.end, s.end), o.rows + s.rows, o.ids + s.ids}
			return true
		}), s)
	}
	for key := range m.live {
		m.live[key] = slices.DeleteFunc(m.live[key], func(s liveSession) bool {
			if passed(s.end, evict) {
				out = append(out, fmt.Sprint(s.start, " ", s.end, " ", key, " ", s.rows, " ", s.ids))
				return true
			}
			return false
		})
	}
	return out, dropped
}

// TestOperatorsAreTheirModels runs generated rows in generated batches.
func TestOperatorsAreTheirModels(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		model func(delay, length int64) model
	}{
		"within": {"SELECT DISTINCT ON (k) id FROM t WITHIN WATERMARK",
			func(delay, _ int64) model { return &within{delay, map[int]*int64{}} }},
		"sessions": {"SELECT unix_micros(session_window.start) AS s, unix_micros(session_window.end) AS e, coalesce(k, 0) AS k, count(*) AS n, sum(id) AS ids FROM t GROUP BY session_window(ts, INTERVAL '%d seconds'), k",
			func(_, gap int64) model { return &sessionModel{gap, map[int][]liveSession{}} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mem := columnartest.Mem(t)
			for seed := *lawSeed; seed < *lawSeed+uint64(*modelCases); seed++ {
				rng := rand.New(rand.NewPCG(seed, 11))
				delay, length := rng.Int64N(9), 1+rng.Int64N(6)
				query := c.query
				if strings.Contains(query, "%d") {
					query = fmt.Sprintf(query, length)
				}
				r := &modelRun{rng: rng, rows: map[string][]modelRow{}, model: c.model(delay*second, length*second)}
				if err := r.run(t, mem, delay, query); err != nil {
					t.Fatalf("seed %d: delay %d: %s: %v", seed, delay, query, err)
				}
			}
		})
	}
}

// modelRun is one run of a query beside its model.
type modelRun struct {
	rng   *rand.Rand
	rows  map[string][]modelRow // by file
	ids   int
	model model
}

func (r *modelRun) run(t *testing.T, mem memory.Allocator, delay int64, query string) error {
	ctx, fsys := t.Context(), vfs.NewMem()
	matrix := streamtest.Matrix()
	variant := matrix[r.rng.IntN(len(matrix))]
	variant.Shards = 1 + r.rng.IntN(3)
	variant.NamedInputs = 0 // the model reads from the commits which files a batch had
	w := streamtest.NewWorld(fsys, mem, variant)
	fsys.SetClock(w.Clock.Now)
	defer func() {
		if err := w.Release(); err != nil {
			t.Error(err)
		}
	}()
	w.Declare(fmt.Sprintf("CREATE STREAM t (id BIGINT, k BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '%d seconds') WITH (path = '/in/t', format = 'json');", delay))
	if err := w.Query(query, connector.Append, nil); err != nil {
		return err
	}
	around := time.Date(1970, 1, 1, 0, 0, 3, 0, time.UTC).UnixMicro()
	for i := range 2 + r.rng.IntN(7) {
		for k := range r.rng.IntN(3) {
			file := fmt.Sprintf("t/%02d-%d.json", i, k)
			if err := w.WriteInput(ctx, file, r.file(file, around)); err != nil {
				return err
			}
		}
		around += r.rng.Int64N(9) * second
		for again := true; again; again = again && r.rng.IntN(2) == 0 {
			var err error
			if again, err = w.Step(ctx); err != nil {
				return err
			}
			if err := r.compare(t, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// file makes the rows of a file.
func (r *modelRun) file(name string, around int64) []byte {
	var text strings.Builder
	for range r.rng.IntN(9) {
		r.ids++
		row := modelRow{id: r.ids, key: r.rng.IntN(4)}
		if r.rng.IntN(12) > 0 {
			ts := around + (r.rng.Int64N(14)-7)*second + r.rng.Int64N(5)/4
			row.ts = &ts
		}
		r.rows[name] = append(r.rows[name], row)
		text.WriteString(row.json())
	}
	return []byte(text.String())
}

// compare holds the newest batches to the model.
func (r *modelRun) compare(t *testing.T, w *streamtest.World) error {
	commits, err := w.NewCommits()
	if err != nil {
		return err
	}
	for _, c := range commits {
		var names []string
		for _, f := range c.Inputs {
			names = append(names, "t/"+path.Base(f.Path))
		}
		slices.Sort(names)
		var rows []modelRow
		for _, name := range names {
			rows = append(rows, r.rows[name]...)
		}
		want, late := r.model.batch(rows, c.Offsets.LateWatermark, c.Offsets.EvictionWatermark)
		text, err := w.Rows(t.Context(), c.Batch, false)
		if err != nil {
			return err
		}
		var got []string
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if i > 0 {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || c.Counters.Late != late {
			return fmt.Errorf("batch %d of %v: got %v, %d late, want %v, %d late", c.Batch, names, got, c.Counters.Late, want, late)
		}
	}
	return nil
}
