package avro

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// plan is what one scan reads from one file.
type plan struct {
	x      *index
	schema *arrow.Schema // of the Readers
	all    *arrow.Schema // of the source
	mem    memory.Allocator
	zone   *time.Location
	rows   int // of a batch
	stats  *connector.ScanStats
}

// newPlan matches the columns wanted of schema with those of the file.
func newPlan(x *index, schema *arrow.Schema, req connector.ScanRequest, zone *time.Location) (*plan, error) {
	p := &plan{x: x, schema: columnar.Select(schema, req.Columns), all: schema, mem: req.Mem, zone: zone, rows: req.BatchRows, stats: req.Stats}
	if p.mem == nil {
		p.mem = memory.DefaultAllocator
	}
	if p.rows <= 0 {
		p.rows = columnar.DefaultBatchRows
	}
	_, _, err := p.program()
	return p, err
}

// program makes the steps that decode a record, and the vectors of the wanted columns.
func (p *plan) program() ([]step, []vector, error) {
	return p.recordSteps(p.x.root, p.schema.Fields(), p.all)
}

// recordSteps decode the wanted fields of a record, which are some of all; a vector is nil
// where the file has no field of the name.
func (p *plan) recordSteps(n *node, want []arrow.Field, all *arrow.Schema) ([]step, []vector, error) {
	steps := make([]step, len(n.children))
	for i, c := range n.children {
		steps[i] = step{name: n.names[i], node: c}
	}
	names := codec.NewFields(n.names)
	vectors := make([]vector, len(want))
	for k, f := range want {
		i, err := names.Of(p.x.path, all, f.Name)
		if err != nil {
			return nil, nil, err
		}
		if i < 0 {
			continue
		}
		if vectors[k], err = p.vector(n.children[i], f.Type); err != nil {
			return nil, nil, p.columnError(f.Name, err)
		}
		steps[i].into = append(steps[i].into, vectors[k])
	}
	return steps, vectors, nil
}

// columnError names the column of an error, and the fields on the way to it.
func (p *plan) columnError(name string, err error) error {
	var inner *connector.RecordError
	if errors.As(err, &inner) && inner.File == p.x.path {
		return &connector.RecordError{File: p.x.path, Column: name + "." + inner.Column, Reason: inner.Reason, Err: inner.Err}
	}
	return &connector.RecordError{File: p.x.path, Column: name, Reason: err.Error(), Err: err}
}

// vector decodes values of n as values of type want.
func (p *plan) vector(n *node, want arrow.DataType) (vector, error) {
	switch n.kind {
	case kindNull:
		return &nothings{dt: want}, nil
	case kindUnion:
		if n.value < 0 {
			return nil, fmt.Errorf("%s, for which there is no type; leave the column out, or let its writer use a union of one type and null", n.why)
		}
		v, err := p.vector(n.children[n.value], want)
		return &optional{vector: v, value: int64(n.value), none: int64(n.null)}, err
	case kindArray:
		if w, ok := want.(*arrow.ListType); ok {
			item, err := p.vector(n.children[0], w.Elem())
			return &lists{dt: w, item: item, least: n.children[0].least, ends: []int32{0}}, err
		}
	case kindMap:
		if w, ok := want.(*arrow.MapType); ok {
			return p.maps(n, w)
		}
	case kindRecord:
		if w, ok := want.(*arrow.StructType); ok {
			steps, fields, err := p.recordSteps(n, w.Fields(), arrow.NewSchema(w.Fields(), nil))
			return &records{dt: w, steps: steps, fields: fields}, err
		}
	default:
		if n.typ == nil {
			return nil, fmt.Errorf("%s, for which there is no type", n.why)
		}
		return p.leaf(n, want)
	}
	return nil, misfit(n, want)
}

// misfit says that values of n cannot be given as type want.
func misfit(n *node, want arrow.DataType) error {
	have := strings.ToUpper(n.word)
	if n.typ != nil {
		have = columnar.TypeName(n.typ)
	}
	return fmt.Errorf("it is %s in the file, which does not fit %s", have, columnar.TypeName(want))
}

func (p *plan) maps(n *node, want *arrow.MapType) (vector, error) {
	key, err := p.leaf(&node{kind: kindString, typ: columnar.String}, want.KeyType())
	if err != nil {
		return nil, err
	}
	value, err := p.vector(n.children[0], want.ItemType())
	return &lists{dt: want, item: &pairs{dt: want.Elem(), key: key, value: value}, least: 1 + n.children[0].least, ends: []int32{0}}, err
}

func isBytes(dt arrow.DataType) bool { return dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY }

// leaf decodes values that are not nested.
func (p *plan) leaf(n *node, want arrow.DataType) (vector, error) {
	have := n.typ
	switch {
	case isBytes(have) && isBytes(want):
		return newTexts(want, p.nextText(n, want)), nil
	case isBytes(have):
		return nil, misfit(n, want)
	case arrow.TypeEqual(have, want):
		return p.values(n), nil
	}
	if common, ok := columnar.Common(have, want); !ok || !arrow.TypeEqual(common, want) || !kernel.CanCast(have, want, kernel.CastOptions{}) {
		return nil, misfit(n, want)
	}
	return &widened{p.values(n), want}, nil
}

func (p *plan) nextText(n *node, want arrow.DataType) func(c *cursor, dst []byte) []byte {
	next := nextBytes
	switch {
	case n.kind == kindEnum:
		return nextSymbol(n.symbols)
	case n.logical == "uuid":
		return nextUUID
	case n.kind == kindFixed:
		next = nextFixed(n.size)
	}
	if want.ID() == arrow.STRING {
		return checked(next)
	}
	return next
}

// values decodes values of one width.
func (p *plan) values(n *node) vector {
	switch n.kind {
	case kindBoolean:
		return &booleans{fixed[bool]{dt: n.typ, next: (*cursor).boolean}}
	case kindFloat:
		return &fixed[float32]{dt: n.typ, next: (*cursor).float}
	case kindDouble:
		return &fixed[float64]{dt: n.typ, next: (*cursor).double}
	case kindInt:
		if n.logical == "time-millis" {
			return &fixed[int64]{dt: n.typ, next: func(c *cursor) int64 { return timeOfDay(c, int64(c.int())*1000) }}
		}
		switch n.typ {
		case columnar.Int8:
			return &fixed[int8]{dt: n.typ, next: narrow[int8]}
		case columnar.Int16:
			return &fixed[int16]{dt: n.typ, next: narrow[int16]}
		}
		return &fixed[int32]{dt: n.typ, next: (*cursor).int}
	case kindLong:
		if n.logical == "time-micros" {
			return &fixed[int64]{dt: n.typ, next: func(c *cursor) int64 { return timeOfDay(c, c.long()) }}
		}
		if local, ok := strings.CutPrefix(n.logical, "local-timestamp-"); ok {
			return &fixed[int64]{dt: n.typ, next: times(local, p.zone)}
		}
		return &fixed[int64]{dt: n.typ, next: times(strings.TrimPrefix(n.logical, "timestamp-"), nil)}
	}
	if n.logical == "duration" {
		return &fixed[arrow.MonthDayNanoInterval]{dt: n.typ, next: durations}
	}
	return newDecimals(n)
}
