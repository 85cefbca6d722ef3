package incremental_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/streamtest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// A checkpoint of the former form is read by the query it was made by: in the former form
// where the state of a join has other columns, else it is brought into the present one. An
// edited query is judged as it was then.
func TestFormerCheckpoint(t *testing.T) {
	t.Parallel()
	const joined = "SELECT l.k, r.v FROM l JOIN r ON l.k = r.k AND l.ts = r.ts"
	for name, c := range map[string]struct {
		mode          connector.OutputMode
		query, edited string
		form          int    // in which it goes on
		refusal       string // of edited
	}{
		"filtered join": {connector.Append, joined + " WHERE l.a > 0", joined + " WHERE l.a > 1",
			checkpoint.FormerReads, "left.a > CAST(0 AS BIGINT)"},
		"filter of pairs": {connector.Append, joined + " WHERE l.a = r.v", joined,
			checkpoint.FormerReads, "join(k, ts, a): it is gone"},
		"join": {connector.Append, joined, joined + " AND l.a < r.v",
			checkpoint.ReadsForm, "is now inner on=(left.a < right.v)"},
		"aggregate": {connector.Complete, "SELECT k, count(*) AS n FROM l WHERE 0 < a GROUP BY k", "SELECT k, count(*) AS n FROM (SELECT upper(k) AS k FROM l) GROUP BY k",
			checkpoint.ReadsForm, "k was read as l.k and is now read as upper(l.k)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{})
			defer func() {
				if err := w.Release(); err != nil {
					t.Error(err)
				}
			}()
			w.Declare(`CREATE STREAM l (ts TIMESTAMP, k VARCHAR, a BIGINT, WATERMARK FOR ts AS ts) WITH (path = '/in/l', format = 'json');`)
			w.Declare(`CREATE STREAM r (ts TIMESTAMP, k VARCHAR, v BIGINT, WATERMARK FOR ts AS ts) WITH (path = '/in/r', format = 'json');`)
			for _, in := range []string{"l", "r"} {
				if err := w.WriteInput(t.Context(), in+"/1.json", []byte(`{"ts":"2024-01-01T00:00:05Z","k":"x","a":1,"v":1}`+"\n")); err != nil {
					t.Fatal(err)
				}
			}
			writeFormerPlan(t, w, c.query, c.mode)
			for range 2 {
				open(t, w, c.query, c.mode, "")
				if _, err := w.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := keptPlan(t, w).Operators[0].Reads.Form; got != c.form {
					t.Errorf("it goes on in form %d, want %d", got, c.form)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			open(t, w, c.edited, c.mode, c.refusal)
		})
	}
}

// The state of an engine that did not keep how the first row of a group writes its key is
// refused for that, and not as if the query had changed.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  connector.OutputMode
		query string
	}{
		"interval": {connector.Complete, "SELECT k, count(*) AS n FROM t GROUP BY k"},
		"distinct": {connector.Update, "SELECT DISTINCT v, k FROM t"},
		"map":      {connector.Complete, "SELECT map(['a', 'b'], [1, v]) AS m, k, sum(v) AS s FROM t GROUP BY m, k"},
		"window":   {connector.Append, "SELECT window.start AS start, k, first(k) AS f FROM t GROUP BY window(ts, '10 seconds'), k"},
		"session":  {connector.Append, "SELECT session_window.start AS start, k, count(*) AS n FROM t GROUP BY k, session_window(ts, '10 seconds')"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := streamtest.NewWorld(vfs.NewMem(), columnartest.Mem(t), streamtest.Variant{})
			defer func() {
				if err := w.Release(); err != nil {
					t.Error(err)
				}
			}()
			w.Declare(`CREATE STREAM t (ts TIMESTAMP, k INTERVAL, v BIGINT, WATERMARK FOR ts AS ts) WITH (path = '/in/t', format = 'json');`)
			writePlan(t, w, c.query, c.mode, checkpoint.Plan{}, func(p *checkpoint.Plan) {
				o := &p.Operators[0]
				o.Text, o.Fingerprint, o.Reads = o.Former, checkpoint.HashBytes([]byte(o.Kind+" "+o.Former)), nil
			})
			open(t, w, c.query, c.mode, "an earlier engine made its state")
		})
	}
}

// writeFormerPlan begins a checkpoint as an engine of the former form does.
func writeFormerPlan(t *testing.T, w *streamtest.World, query string, mode connector.OutputMode) {
	t.Helper()
	writePlan(t, w, query, mode, checkpoint.Plan{Operators: []checkpoint.Operator{{}}}, nil)
}

// writePlan begins a checkpoint with the plan of a query, described as for one with the plan
// was. If edit changes it, a batch is logged, too: without one nothing is kept.
func writePlan(t *testing.T, w *streamtest.World, query string, mode connector.OutputMode, was checkpoint.Plan, edit func(*checkpoint.Plan)) {
	t.Helper()
	if err := w.Query(query, mode, nil); err != nil {
		t.Fatal(err)
	}
	plan, err := w.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := w.Config(plan)
	kept, err := incremental.Describe(cfg, was)
	if err != nil {
		t.Fatal(err)
	}
	d, err := checkpoint.Open(w.FS, cfg.Checkpoint, checkpoint.Options{ID: cfg.ID})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&kept)
	}
	err = d.CheckPlan(kept)
	if edit != nil {
		err = errors.Join(err, d.Offsets().Add(0, checkpoint.OffsetEntry{Query: cfg.ID}))
	}
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
}

// open starts a query, which is refused if refusal is part of the error it is to give.
func open(t *testing.T, w *streamtest.World, query string, mode connector.OutputMode, refusal string) {
	t.Helper()
	err := w.Query(query, mode, nil)
	if err == nil {
		err = w.Open(t.Context())
	}
	switch {
	case refusal == "" && err != nil:
		t.Fatal(err)
	case refusal != "" && !errors.Is(err, checkpoint.ErrIncompatible), refusal != "" && !strings.Contains(err.Error(), refusal):
		t.Errorf("%s: got %v, want %q", query, err, refusal)
	}
}

func keptPlan(t *testing.T, w *streamtest.World) checkpoint.Plan {
	t.Helper()
	plan, err := checkpoint.ReadPlan(w.FS, w.Config(nil).Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
