package incremental

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/incremental/stateful"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// strategies are what makes a plan incremental: they come before those of the batch
// engine. A stream's scan reads the batch's part of it, a watermark is observed, a
// stateful node restores and saves. s and entry are nil for EXPLAIN.
func (r *batchRun) strategies(s *streamExecution, entry *checkpoint.OffsetEntry) []physical.Strategy {
	return []physical.Strategy{
		func(pl *physical.Planner, n logical.Node) (physical.Plan, error) {
			switch x := n.(type) {
			case *logical.StreamScan:
				return r.planScan(pl, x, s, entry)
			case *logical.Scan:
				return planTable(pl, x, entry)
			}
			return nil, nil
		},
		stateful.PlanTrace,
		r.planWatermark,
		r.planStateful,
		stateful.PlanBoundedGroups,
	}
}

// planScan reads the part of a stream that the entry names.
func (r *batchRun) planScan(pl *physical.Planner, x *logical.StreamScan, s *streamExecution, entry *checkpoint.OffsetEntry) (physical.Plan, error) {
	filters, err := physical.BindAll(x.Filters, x.Full)
	if err != nil {
		return nil, err
	}
	name := x.Stream.Name
	if r.scans[name] == nil {
		r.scans[name] = &connector.ScanStats{}
		if r.exec.cfg.KeepBad {
			r.scans[name].Kept = connector.NewBadRecords(r.exec.cfg.Budget)
		}
	}
	return physical.NewScan(physical.ScanSpec{
		Name: name, Schema: x.Full.Arrow(), Units: rangeUnits(name, s, entry),
		Columns: append([]int{}, x.Positions...), Filters: filters, Ordinal: pl.WantsOrdinal(),
		LastTaken: r.input.await(),
	})
}

// rangeUnits lists the work of a stream's part of a batch.
func rangeUnits(name string, s *streamExecution, entry *checkpoint.OffsetEntry) physical.UnitSource {
	return func(ctx context.Context, req connector.ScanRequest) ([]connector.Unit, error) {
		for i, source := range s.sources {
			if !strings.EqualFold(source.name, name) {
				continue
			}
			r := entry.Sources[i]
			if r.Start == r.End {
				return nil, nil
			}
			return source.source.Units(ctx, r.Start, r.End, req)
		}
		return nil, fmt.Errorf("bug: stream %s is not open", name)
	}
}

// planTable reads a bounded table of files as it was when the batch was logged; other
// tables are left to the batch engine.
func planTable(pl *physical.Planner, x *logical.Scan, entry *checkpoint.OffsetEntry) (physical.Plan, error) {
	table, ok := x.Table.(connector.FileTable)
	if !ok || entry == nil {
		return nil, nil
	}
	for _, logged := range entry.Tables {
		if logged.Name != x.Name {
			continue
		}
		filters, err := physical.BindAll(x.Filters, x.Full)
		if err != nil {
			return nil, err
		}
		return physical.NewScan(physical.ScanSpec{
			Name: x.Name, Schema: x.Full.Arrow(), Units: table.At(identities(logged.Files)).Units,
			Columns: append([]int{}, x.Positions...), Filters: filters, Limit: x.Limit, Ordinal: pl.WantsOrdinal(),
		})
	}
	return nil, nil
}

// planWatermark observes the event time at a Watermark over a stream.
func (r *batchRun) planWatermark(pl *physical.Planner, n logical.Node) (physical.Plan, error) {
	x, ok := n.(*logical.Watermark)
	if !ok || !logical.IsStreaming(x) {
		return nil, nil
	}
	in, err := pl.PlanSame(x.Input)
	if err != nil {
		return nil, err
	}
	column := x.Input.Schema().Index(x.Column)
	if column < 0 {
		return nil, fmt.Errorf("bug: the event time of %s is not in its input", x.Label)
	}
	ahead, err := streamOption(x, "max_future")
	if err != nil {
		return nil, err
	}
	return stateful.NewObserve(in, stateful.ObserveSpec{
		Column: column, Label: x.Label, Delay: x.Delay, MaxFuture: ahead, Observer: r.eventTimes, Ended: r.input.await(),
	}), nil
}

// planStateful plans the nodes that keep state.
func (r *batchRun) planStateful(pl *physical.Planner, n logical.Node) (physical.Plan, error) {
	name := stateful.StateName(n)
	if name == "" {
		return nil, nil
	}
	for _, inst := range r.states {
		if inst.Operator().Name() != name {
			continue
		}
		return stateful.PlanNode(pl, n, inst)
	}
	return nil, fmt.Errorf("bug: the state %s of %s is not open", name, n)
}
