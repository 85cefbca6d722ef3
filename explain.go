package tidemill

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/sql"
	"github.com/tidemill/tidemill/optimizer"
	"github.com/tidemill/tidemill/physical"
)

// Explain shows what becomes of a DataFrame: the logical, the optimized and the physical
// plan, and which rules fired. A DataFrame over a stream shows the incremental plan, too.
// With analyze the query is run over what is there now, and every operator shows its
// rows and time.
func (s *Session) Explain(ctx context.Context, df *logical.DataFrame, analyze bool) (string, error) {
	return acting(ctx, s, func() (string, error) { return s.explainIn(ctx, df, nil, analyze) })
}

// explain explains a query, an INSERT in the output mode of its sink.
func (s *Session) explain(ctx context.Context, p *sql.Planned, analyze bool) (string, error) {
	df := logical.NewDataFrame(p.Plan, s.functions)
	if p.Sink == nil {
		return s.explainIn(ctx, df, nil, analyze)
	}
	j := &job{session: s}
	if err := j.configure(p.Sink, RunOptions{}); err != nil {
		return "", err
	}
	return s.explainIn(ctx, df, &j.mode, analyze)
}

// explainIn explains df in an output mode, nil for the first in which it is legal.
func (s *Session) explainIn(ctx context.Context, df *logical.DataFrame, mode *OutputMode, analyze bool) (string, error) {
	node, err := df.Plan()
	if err != nil {
		return "", err
	}
	p, stages, err := s.physicalPlan(ctx, df)
	if err != nil {
		return "", err
	}
	var sb strings.Builder
	section(&sb, "logical", logical.Format(node))
	section(&sb, "optimized", logical.Format(stages.optimized))
	section(&sb, "rules", rules(stages.trace))
	if logical.IsStreaming(node) {
		set, m := s.settings.get(), explainMode(node)
		if mode != nil {
			m = *mode
		}
		text, err := incremental.Explain(incremental.Config{
			Plan: node, Mode: m, Registry: s.functions, Location: set.zone, DisableRules: set.disabled,
		})
		if err != nil {
			return "", err
		}
		section(&sb, "incremental", text)
	}
	if !analyze {
		section(&sb, "physical", physical.Explain(p))
		return sb.String(), nil
	}
	ec := s.execContext()
	ec.Metrics = &physical.Metrics{}
	ec.ScanStats = ec.Metrics.ScanStats
	if err := runToEnd(ctx, p, ec); err != nil {
		return "", err
	}
	section(&sb, "physical, measured", physical.ExplainAnalyze(p, ec.Metrics))
	return sb.String(), nil
}

// explainMode is the first output mode in which a streaming plan is legal.
func explainMode(n logical.Node) OutputMode {
	for _, m := range []OutputMode{Append, Update, Complete} {
		if logical.Check(n, m) == nil {
			return m
		}
	}
	return Append
}

func runToEnd(ctx context.Context, p physical.Plan, ec *physical.ExecContext) error {
	r, err := physical.Run(ctx, p, ec)
	if err != nil {
		return err
	}
	for _, e := range columnar.All(ctx, r) {
		err = errors.Join(err, e)
	}
	return columnar.JoinErrors(err, r.Close())
}

func section(sb *strings.Builder, title, text string) {
	fmt.Fprintf(sb, "== %s ==\n%s\n", title, strings.TrimRight(text, "\n"))
}

func rules(t *optimizer.Trace) string {
	parts := make([]string, len(t.Fired))
	for i, f := range t.Fired {
		parts[i] = fmt.Sprintf("%s x%d", f.Rule, f.Count)
	}
	if len(parts) == 0 {
		return "none fired"
	}
	return strings.Join(parts, "\n")
}

// ExplainSQL is Explain for the last query, or INSERT, of a text; file is what errors
// call it.
func (s *Session) ExplainSQL(ctx context.Context, file, text string, analyze bool) (string, error) {
	return acting(ctx, s, func() (out string, err error) {
		err = s.script(ctx, file, text, false, func(p *sql.Planned) (err error) {
			if p.Plan != nil {
				out, err = s.explain(ctx, p, analyze || p.Analyze)
			}
			return err
		})
		if err == nil && out == "" {
			return "", logical.Usagef("there is no query to explain")
		}
		return out, err
	})
}
