package physical

import (
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

// handKeysDown has the probe side of j leave out early the rows that meet nothing: below
// its aggregates and joins, at the scans. It is done where the join is advised to, and
// rows of the probe side that meet nothing leave no trace.
func (pl *Planner) handKeysDown(x *logical.Join, j *HashJoin) (*HashJoin, error) {
	if !x.KeyFilters || j.Spec.NullAware || sidesOf(x.Kind, j.Spec.BuildLeft).probeUnmatched {
		return j, nil
	}
	probe, probeKeys, buildKeys, build := j.Left, j.Spec.LeftKeys, j.Spec.RightKeys, x.Right
	if j.Spec.BuildLeft {
		probe, probeKeys, buildKeys, build = j.Right, j.Spec.RightKeys, j.Spec.LeftKeys, x.Left
	}
	out := *j
	for i, key := range probeKeys {
		at, ok := wholeColumn(key)
		if !ok || j.Spec.NullSafe[i] || !columnar.IsWord(buildKeys[i].Type()) {
			continue
		}
		push := keyPush{key: pl.keys + 1}
		if column, ok := wholeColumn(buildKeys[i]); ok {
			var known bool
			if push.narrow, known = pl.rows.IsNarrow(build, build.Schema().Columns[column].ID); known && !push.narrow {
				continue
			}
		}
		p, landed, err := push.into(probe, at, false)
		if err != nil {
			return nil, err
		}
		if landed {
			pl.keys++
			probe = p
			out.Spec.Gives = append(out.Spec.Gives, KeyGift{push.key, i})
		}
	}
	if j.Spec.BuildLeft {
		out.Right = probe
	} else {
		out.Left = probe
	}
	return &out, nil
}

// wholeColumn is the column e is, be it as a wider integer, whose values are the same.
func wholeColumn(e expr.Expr) (column int, ok bool) {
	if c, isCast := e.(*expr.Cast); isCast && columnar.IsInteger(c.To) && columnar.IsInteger(c.Input.Type()) {
		e = c.Input // a cast to a narrower type is of the same value, or an error
	}
	r, ok := e.(*expr.Ref)
	if !ok || !columnar.IsWord(r.DataType) {
		return 0, false
	}
	return r.Index, true
}

// keyPush brings one KeyTest down a plan.
type keyPush struct {
	key    KeyID
	narrow bool // worth it, whatever is on the way
}

// into has p leave out rows by its column at. landed is false, and p as it was, where
// that is not possible or of no use. spared says that there is a node above, within the
// probe side, for which fewer rows are less work.
func (k keyPush) into(p Plan, at int, spared bool) (out Plan, landed bool, err error) {
	switch x := p.(type) {
	case *Scan:
		return k.intoScan(x, at, spared)
	case *Coalesce, *KeyFilter:
		return k.intoOnly(p, at, spared)
	case *Filter:
		if !x.filter.IsVolatile() {
			return k.intoOnly(p, at, spared)
		}
	case *Project:
		if below, ok := wholeColumn(x.Columns[at].Expr); ok && !x.program.IsVolatile() {
			return k.intoOnly(p, below, spared)
		}
	case *Exchange:
		if !x.program.IsVolatile() {
			return k.intoOnly(p, at, spared)
		}
	case *Union:
		return k.intoAll(x, at, spared)
	case *PartialAggregate:
		if below, ok := groupedColumn(x.Spec, at); ok {
			return k.intoOnly(p, below, true)
		}
	case *HashAggregate:
		below, ok := groupedColumn(x.Spec, at)
		if _, partial := x.Input.(*PartialAggregate); partial && ok {
			return k.intoOnly(p, at, true)
		}
		if ok && x.Single {
			return k.intoOnly(p, below, true)
		}
	case *HashJoin:
		if out, landed, err = k.intoJoin(x, at); landed || err != nil {
			return out, landed, err
		}
	}
	if !spared {
		return p, false, nil
	}
	return NewKeyFilter(p, KeyTest{k.key, at}), true, nil
}

// groupedColumn is the column of the input that column at of an aggregate's output is:
// all rows of a group have the same value there.
func groupedColumn(s *AggregateSpec, at int) (column int, ok bool) {
	if at >= len(s.Keys) || s.program.IsVolatile() {
		return 0, false
	}
	return wholeColumn(s.Keys[at].Expr)
}

func (k keyPush) intoScan(s *Scan, at int, spared bool) (Plan, bool, error) {
	if s.spec.Tap != nil || s.spec.Limit > 0 || !spared && !k.narrow || s.schema.Field(at).Name == columnar.OrdinalName {
		return s, false, nil
	}
	spec := s.spec
	spec.Keys = append(spec.Keys[:len(spec.Keys):len(spec.Keys)], KeyTest{k.key, at})
	n, err := NewScan(spec)
	return n, err == nil, err
}

func (k keyPush) intoOnly(p Plan, at int, spared bool) (Plan, bool, error) {
	in, landed, err := k.into(p.Children()[0], at, spared)
	if err != nil || !landed {
		return p, false, err
	}
	return p.WithChildren([]Plan{in}), true, nil
}

func (k keyPush) intoAll(u *Union, at int, spared bool) (Plan, bool, error) {
	inputs := make([]Plan, len(u.Inputs))
	some := false
	for i, in := range u.Inputs {
		p, landed, err := k.into(in, at, spared)
		if err != nil {
			return nil, false, err
		}
		inputs[i], some = p, some || landed
	}
	return u.WithChildren(inputs), some, nil
}

// intoJoin brings the test to the side that has column at, if leaving out rows of that
// side leaves out rows of the join and does nothing else; and to the other side where a
// key of the join makes a column of it equal: what it leaves out there meets only rows
// that are left out here.
func (k keyPush) intoJoin(j *HashJoin, at int) (Plan, bool, error) {
	left := j.Left.Schema().NumFields()
	onLeft := at < left
	kind := j.Spec.Kind
	own := kind == logical.InnerJoin || kind == logical.RightJoin && !onLeft ||
		onLeft && (kind == logical.LeftJoin || kind == logical.SemiJoin || kind == logical.AntiJoin)
	if !own || j.residual != nil && j.residual.IsVolatile() || j.leftKeys.IsVolatile() || j.rightKeys.IsVolatile() {
		return j, false, nil
	}
	children := []Plan{j.Left, j.Right}
	side, keys, others := 0, j.Spec.LeftKeys, j.Spec.RightKeys
	if !onLeft {
		side, keys, others, at = 1, others, keys, at-left
	}
	p, landed, err := k.into(children[side], at, true)
	if err != nil {
		return nil, false, err
	}
	children[side] = p
	for i, key := range keys {
		c, ok := wholeColumn(key)
		other, same := wholeColumn(others[i])
		if !ok || c != at || !same || j.Spec.NullSafe[i] || kind == logical.AntiJoin {
			continue
		}
		p, more, err := k.into(children[1-side], other, true)
		if err != nil {
			return nil, false, err
		}
		children[1-side], landed = p, landed || more
	}
	return j.WithChildren(children), landed, nil
}
