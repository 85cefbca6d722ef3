// Package rate is a source of generated rows: a timestamp and a value counting from
// 0, so many a second, or so many a batch. It is replayable: which rows a range holds
// follows from the offsets alone.
package rate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sort"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/logical/connector"
)

// Options of the source. Either RowsPerSecond or RowsPerBatch is used.
type Options struct {
	RowsPerSecond int64         // default 1
	RampUp        time.Duration // whole seconds in which the rate grows from 0
	Partitions    int64         // units a range is split into; default 1

	RowsPerBatch int64         // each batch has so many rows, whatever the clock says
	Start        string        // with RowsPerBatch: time of the first batch; default the epoch
	Advance      time.Duration // with RowsPerBatch: how far time moves a batch; default 1 s
}

// Schema of every rate source.
var Schema = columnar.NewSchema(columnar.Field("timestamp", columnar.Timestamp), columnar.Field("value", columnar.Int64))

// Connector is the connector rate.
func Connector() connector.Connector {
	return connector.Connector{
		Name: "rate",
		Doc:  "generated rows",
		Discover: func(_ context.Context, env connector.Env) (connector.Discovery, error) {
			_, err := decode(env)
			return connector.Discovery{Schema: Schema}, err
		},
		Source: func(_ context.Context, env connector.Env) (connector.Source, error) {
			o, err := decode(env)
			if err != nil {
				return nil, err
			}
			return New(o, env)
		},
	}
}

func decode(env connector.Env) (Options, error) {
	o := Options{RowsPerSecond: 1, Partitions: 1, Advance: time.Second}
	err := connector.Decode(env.Options,
		connector.IntKey("rows_per_second", &o.RowsPerSecond, 1),
		connector.DurationKey("ramp_up_time", &o.RampUp),
		connector.IntKey("num_partitions", &o.Partitions, 1),
		connector.IntKey("rows_per_batch", &o.RowsPerBatch, 1),
		connector.TextKey("start_timestamp", &o.Start),
		connector.DurationKey("advance_per_batch", &o.Advance))
	if err == nil && env.Columns != nil && !columnar.EqualTypes(env.Columns, Schema) {
		err = &connector.OptionError{Reason: "a rate source has the columns " + columnar.SchemaString(Schema) + "; leave them out"}
	}
	return o, err
}

// Source generates rows. The time it began at is in its log.
type Source struct {
	o     Options
	env   connector.Env
	start int64 // microseconds since the epoch
	// granted says that the newest Target, of rows a batch, has not been used: it
	// stands for one more batch, wherever the query is.
	granted bool
}

var _ connector.Source = (*Source)(nil)

// New opens the source: for the first time, or where its log says it began.
func New(o Options, env connector.Env) (*Source, error) {
	if o.RampUp%time.Second != 0 {
		return nil, &connector.OptionError{Key: "ramp_up_time", Value: o.RampUp.String(), HasValue: true, Reason: "it takes whole seconds"}
	}
	o.Partitions = max(o.Partitions, 1)
	s := &Source{o: o, env: env}
	if o.RowsPerBatch > 0 {
		if o.Start != "" {
			us, ok := columnar.ParseTimestamp(o.Start, env.Location)
			if !ok {
				return nil, &connector.OptionError{Key: "start_timestamp", Value: o.Start, HasValue: true, Reason: "it takes a timestamp such as '2024-01-01 00:00:00'"}
			}
			s.start = us
		}
		return s, nil
	}
	return s, s.began()
}

type beginning struct {
	Start int64 `json:"start"`
}

// began reads, or writes, when the source began.
func (s *Source) began() error {
	s.start = s.env.Clock().UnixMicro()
	if s.env.Log == nil {
		return nil
	}
	for e, err := range s.env.Log.Range(-1, 0) {
		if err != nil {
			return err
		}
		var b beginning
		if err := json.Unmarshal(e.Data, &b); err != nil {
			return fmt.Errorf("rate source: entry 0 of its log: %w", err)
		}
		s.start = b.Start
		return nil
	}
	text, err := json.Marshal(beginning{s.start})
	if err != nil {
		return err
	}
	return s.env.Log.Put(0, text)
}

// position is the JSON of an Offset: how many seconds, or batches, of rows came.
type position struct {
	Steps int64 `json:"steps"`
	// More, in an offset of Target, stands for so many steps beyond the start.
	More int64 `json:"more,omitempty"`
}

func offset(steps int64) connector.Offset {
	if steps == 0 {
		return ""
	}
	text, err := json.Marshal(position{Steps: steps})
	if err != nil {
		panic("bug: " + err.Error())
	}
	return connector.Offset(text)
}

func parse(o connector.Offset) (int64, error) {
	p, err := parsePosition(o)
	return p.Steps, err
}

func parsePosition(o connector.Offset) (position, error) {
	var p position
	if o == "" {
		return p, nil
	}
	d := json.NewDecoder(strings.NewReader(string(o)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.Steps < 0 {
		return p, fmt.Errorf("%q is not an offset of a rate source", string(o))
	}
	return p, nil
}

// Schema implements connector.Source.
func (s *Source) Schema() *arrow.Schema { return Schema }

// Description implements connector.Describer.
func (s *Source) Description() string {
	if s.o.RowsPerBatch > 0 {
		return fmt.Sprintf("RateSource[%d rows a batch]", s.o.RowsPerBatch)
	}
	return fmt.Sprintf("RateSource[%d rows a second]", s.o.RowsPerSecond)
}

// seconds is how many whole seconds have passed since the source began.
func (s *Source) seconds() int64 {
	return max((s.env.Clock().UnixMicro()-s.start)/1e6, 0)
}

// Target implements connector.Source. Of rows a batch there is always one batch more.
func (s *Source) Target(context.Context) (connector.Offset, error) {
	if s.o.RowsPerBatch > 0 {
		s.granted = true
		return `{"steps":0,"more":1}`, nil
	}
	return offset(s.seconds()), nil
}

// LatestOffset implements connector.Source.
func (s *Source) LatestOffset(_ context.Context, start connector.Offset, limit connector.Limit) (connector.Offset, error) {
	from, err := parse(start)
	if err != nil {
		return "", err
	}
	to := from + 1
	if s.o.RowsPerBatch == 0 {
		to = s.seconds()
	}
	if limit.Until != "" {
		until, err := parsePosition(limit.Until)
		if err != nil {
			return "", err
		}
		switch {
		case until.More == 0:
			to = min(to, until.Steps)
		case !s.granted:
			return start, nil
		}
		s.granted = false
	}
	if to <= from {
		return start, nil
	}
	return offset(to), nil
}

// valueAt is how many rows came in the first steps seconds. While the rate ramps up
// it grows by the same amount each second.
func (s *Source) valueAt(steps int64) (int64, error) {
	if s.o.RowsPerBatch > 0 {
		return product(steps, s.o.RowsPerBatch)
	}
	ramp := int64(s.o.RampUp / time.Second)
	delta := float64(s.o.RowsPerSecond) / float64(ramp+1)
	ramping := min(steps, ramp)
	ramped := int64(math.Floor(delta * float64(ramping) * float64(ramping+1) / 2))
	if steps <= ramp {
		return ramped, nil
	}
	rest, err := product(steps-ramp, s.o.RowsPerSecond)
	if err != nil || ramped > math.MaxInt64-rest {
		return 0, errors.New("rate source: the values are beyond 64 bits")
	}
	return ramped + rest, nil
}

func product(a, b int64) (int64, error) {
	if b != 0 && a > math.MaxInt64/b {
		return 0, errors.New("rate source: the values are beyond 64 bits")
	}
	return a * b, nil
}

// Units implements connector.Source: the values of a range, every Partitions-th in
// one unit.
func (s *Source) Units(_ context.Context, start, end connector.Offset, req connector.ScanRequest) ([]connector.Unit, error) {
	from, err := parse(start)
	if err != nil {
		return nil, err
	}
	to, err := parse(end)
	if err != nil {
		return nil, err
	}
	low, err := s.valueAt(from)
	if err != nil {
		return nil, err
	}
	high, err := s.valueAt(to)
	if err != nil {
		return nil, err
	}
	span := spanOf{source: s, rows: high - low, low: low}
	parts := min(s.o.Partitions, max(span.rows, 1))
	var units []connector.Unit
	for p := range parts {
		a, b := span.rows*p/parts, span.rows*(p+1)/parts
		if span.rows > math.MaxInt64/parts {
			a, b = span.rows/parts*p, span.rows/parts*(p+1)
			if p == parts-1 {
				b = span.rows
			}
		}
		if a < b {
			units = append(units, &unit{span: span, from: a, to: b, req: req})
		}
	}
	return units, nil
}

// Withdraw implements connector.Source.
func (s *Source) Withdraw(context.Context, connector.Offset, connector.Offset) error { return nil }

// Commit implements connector.Source.
func (s *Source) Commit(context.Context, connector.Offset) error { return nil }

// Close implements connector.Source.
func (s *Source) Close() error { return nil }

// spanOf is the rows of a range: row i has the value low + i.
type spanOf struct {
	source    *Source
	rows, low int64
}

// time is when the row of a value came: the rows of a second are spread over it
// evenly, those of a batch come at once. It depends on the value alone, so that ranges
// may be joined and split.
func (s *Source) time(value int64) int64 {
	if s.o.RowsPerBatch > 0 {
		return s.start + value/s.o.RowsPerBatch*s.o.Advance.Microseconds()
	}
	ramp := int64(s.o.RampUp / time.Second)
	ramped, _ := s.valueAt(ramp)
	if rest := value - ramped; rest >= 0 {
		return s.start + (ramp+rest/s.o.RowsPerSecond)*1e6 + part(rest%s.o.RowsPerSecond, s.o.RowsPerSecond)
	}
	// The last second that begins at or before the value.
	second := int64(sort.Search(int(ramp), func(i int) bool {
		end, _ := s.valueAt(int64(i) + 1)
		return end > value
	}))
	begin, _ := s.valueAt(second)
	end, _ := s.valueAt(second + 1)
	return s.start + second*1e6 + part(value-begin, end-begin)
}

// part is n of rows rows of a second, in microseconds.
func part(n, rows int64) int64 {
	hi, lo := bits.Mul64(uint64(n), 1e6)
	us, _ := bits.Div64(hi, lo, uint64(rows))
	return int64(us)
}

type unit struct {
	span     spanOf
	from, to int64
	req      connector.ScanRequest
}

func (u *unit) Name() string { return fmt.Sprintf("rate[%d:%d]", u.span.low+u.from, u.span.low+u.to) }
func (u *unit) Bytes() int64 { return (u.to - u.from) * 16 }

// Open implements connector.Unit.
func (u *unit) Open(context.Context) (columnar.Reader, error) {
	mem := u.req.Mem
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	fields := append([]arrow.Field(nil), columnar.Select(Schema, u.req.Columns).Fields()...)
	for _, name := range u.req.Hidden {
		fields = append(fields, columnar.Field(name, columnar.String))
	}
	return &reader{unit: u, at: u.from, mem: mem, schema: arrow.NewSchema(fields, nil)}, nil
}

type reader struct {
	unit   *unit
	at     int64
	mem    memory.Allocator
	schema *arrow.Schema
}

func (r *reader) Schema() *arrow.Schema { return r.schema }
func (r *reader) Close() error          { r.at = r.unit.to; return nil }

func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	size := int64(r.unit.req.BatchRows)
	if size <= 0 {
		size = columnar.DefaultBatchRows
	}
	n := int(min(size, r.unit.to-r.at))
	if n <= 0 {
		return nil, io.EOF
	}
	columns := make([]arrow.Array, r.schema.NumFields())
	for i := range columns {
		columns[i] = r.column(i, n)
		defer columns[i].Release()
	}
	r.at += int64(n)
	if r.unit.req.Stats != nil {
		r.unit.req.Stats.Rows.Add(int64(n))
	}
	return array.NewRecordBatch(r.schema, columns, int64(n)), nil
}

func (r *reader) column(i, n int) arrow.Array {
	wanted := i
	if r.unit.req.Columns != nil && i < len(r.unit.req.Columns) {
		wanted = r.unit.req.Columns[i]
	}
	if i >= r.schema.NumFields()-len(r.unit.req.Hidden) {
		return columnar.Nulls(r.mem, columnar.String, n)
	}
	buf, values := kernel.Make[int64](r.mem, n)
	span := &r.unit.span
	for j := range values {
		if wanted == 0 {
			values[j] = span.source.time(span.low + r.at + int64(j))
		} else {
			values[j] = span.low + r.at + int64(j)
		}
	}
	return kernel.Wrap(Schema.Field(wanted).Type, n, 0, nil, buf)
}
