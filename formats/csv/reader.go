package csv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// scan is what the units of one file share.
type scan struct {
	opts    *Options
	d       dialect
	rules   *cells.Rules
	file    codec.File
	columns codec.Columns
	content []int    // columns of the source that files hold: all but the corrupt and the rescued one
	names   []string // of content
	req     connector.ScanRequest
	wanted  []int // columns to hand out, in order
	schema  *arrow.Schema
	// checkAll: columns nobody asked for are read too, for what is wrong with them.
	checkAll bool
	rescues  bool // the rescued column is wanted
	chain    *chain
	drift    *codec.Drift
}

func (f *format) newScan(file codec.File, columns codec.Columns, req connector.ScanRequest) (*scan, error) {
	sc := &scan{opts: &f.opts, file: file, columns: columns, req: req, wanted: req.Columns,
		schema: columnar.Select(columns.Schema, req.Columns)}
	var err error
	if sc.d, sc.rules, err = f.opts.compile(extension(file.Path)); err != nil {
		return nil, err
	}
	sc.rules.Inferred = columns.JudgedAsInferred()
	if sc.wanted == nil {
		sc.wanted = make([]int, columns.Schema.NumFields())
		for i := range sc.wanted {
			sc.wanted[i] = i
		}
	}
	if sc.req.BatchRows <= 0 {
		sc.req.BatchRows = columnar.DefaultBatchRows
	}
	if sc.req.Mem == nil {
		sc.req.Mem = memory.DefaultAllocator
	}
	for i, field := range columns.Schema.Fields() {
		if i == columns.CorruptColumn {
			if field.Type.ID() != arrow.STRING {
				return nil, fmt.Errorf("corrupt_column %s is %s; it must be VARCHAR", field.Name, columnar.TypeName(field.Type))
			}
			continue
		}
		if i == columns.RescuedAt() {
			continue
		}
		if !readable(field.Type) {
			return nil, fmt.Errorf("column %s: %s cannot be read from CSV; declare it VARCHAR and cast it", field.Name, columnar.TypeName(field.Type))
		}
		sc.content = append(sc.content, i)
		sc.names = append(sc.names, field.Name)
	}
	sc.rescues = columns.RescuedAt() >= 0 && slices.Contains(sc.wanted, columns.RescuedAt())
	sc.checkAll = sc.rescues || f.opts.Mode != codec.Permissive || columns.CorruptColumn >= 0 && slices.Contains(sc.wanted, columns.CorruptColumn)
	return sc, nil
}

func (sc *scan) input(r codec.Range) (*codec.Input, error) {
	return codec.OpenInput(codec.InputSpec{File: sc.file, Range: r, Compression: sc.opts.Compression,
		Encoding: sc.opts.Encoding, Mode: sc.opts.Mode, Stats: sc.req.Stats})
}

// open starts reading a unit.
func (sc *scan) open(u *unit) (columnar.Reader, error) {
	in, err := sc.input(u.r)
	if err != nil {
		return nil, err
	}
	r := &reader{scan: sc, in: in, s: newScanner(&sc.d, in)}
	if err := r.start(u); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// reader reads one unit.
type reader struct {
	*scan
	in      *codec.Input
	s       *scanner
	targets []*target
	out     []*target // of wanted, in order; nil: the rescued column
	corrupt *target
	kept    cells.Texts // of the chunk, for corrupt
	rest    *rest       // nil unless the rescued column is wanted
	layout  *layout
	rows    int // in the batch being filled
	// headerEnd is the offset of the text behind the file's first record.
	headerEnd int64
	failed    error
}

// target is a column being filled.
type target struct {
	column column
	name   string
	index  int // in the source
	field  int // in the file, -1 if it has none
	slot   int
	hidden bool // read only for what is wrong with it
}

// column is what a target fills: a cells.Column, or one of nested values.
type column interface {
	Append(buf []byte, cells []cells.Cell) (bad []int32)
	Truncate(n int)
	Len() int
	Nulls() int
	TextBytes() int
	Type() arrow.DataType
	Finish() arrow.Array
	Release()
}

// start finds the first record and where its fields go.
func (r *reader) start(u *unit) error {
	first, err := r.firstRecord(u)
	if err != nil {
		return r.explain(err)
	}
	l, err := r.match(first)
	if err != nil {
		return err
	}
	r.layout = l
	if err := r.aim(l); err != nil {
		return err
	}
	if u.index == 0 {
		if first != nil && !l.hasHeader {
			r.s.pos = r.s.start[0] // the first record is data
			r.s.moved()
		}
		if u.r.Divided && r.chain.passed(0, recordStart, r.own(u)) {
			r.s.noQuotesTo(r.in.Limit())
		}
		return nil
	}
	st, err := r.chain.start(u.index)
	if err != nil {
		return err
	}
	noQuotes := r.chain.passed(u.index, st, r.own(u))
	if err := r.s.skipRecord(st); err != nil {
		return r.explain(err)
	}
	if l.hasHeader {
		err = r.s.skipTo(r.headerEnd)
	}
	if noQuotes && err == nil {
		r.s.noQuotesTo(r.in.Limit())
	}
	return r.explain(err)
}

// own is the part of the first window that lies in the range.
func (r *reader) own(u *unit) []byte {
	lo := r.in.Lo()
	return r.in.Buf()[lo:max(lo, min(r.in.Hi(), r.in.Limit()))]
}

// firstRecord is the text of the file's first record; nil if there is none.
func (r *reader) firstRecord(u *unit) ([]string, error) {
	s := r.s
	if r.opts.Header == HeaderNo && !r.mayDiffer() {
		s.start[0] = s.pos // what the record says does not matter
		return []string{}, nil
	}
	if u.index > 0 {
		head := r.file
		head.Hash = nil
		in, err := codec.OpenInput(codec.InputSpec{File: head, Range: codec.Range{End: 1, Divided: true}})
		if err != nil {
			return nil, err
		}
		defer in.Close()
		s = newScanner(&r.d, in)
	}
	record, err := s.record()
	if err != nil || record == nil {
		return nil, err
	}
	r.headerEnd = s.in.Offset(s.pos)
	return texts(r.rules, s.in.Buf(), record), nil
}

// aim makes a target for each column that is read.
func (r *reader) aim(l *layout) error {
	slots := make([]int, l.fields)
	for f := range slots {
		slots[f] = -1
	}
	byColumn := map[int]*target{}
	make1 := func(c int, hidden bool) (*target, error) {
		if t := byColumn[c]; t != nil {
			return t, nil
		}
		field := r.columns.Schema.Field(c)
		col, err := r.newColumn(field.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name, err)
		}
		t := &target{column: col, name: field.Name, index: c, field: l.field[c], slot: len(r.targets), hidden: hidden}
		if t.field >= 0 {
			slots[t.field] = t.slot
		}
		byColumn[c] = t
		r.targets = append(r.targets, t)
		return t, nil
	}
	for _, c := range r.wanted {
		if c == r.columns.RescuedAt() {
			r.out = append(r.out, nil)
			continue
		}
		t, err := make1(c, false)
		if err != nil {
			return err
		}
		if c == r.columns.CorruptColumn {
			r.corrupt = t
		}
		r.out = append(r.out, t)
	}
	if r.checkAll {
		for _, c := range r.content {
			if l.field[c] >= 0 {
				if _, err := make1(c, true); err != nil {
					return err
				}
			}
		}
	}
	// A field that two columns read (only by_name can do that) goes to both by way of
	// the slot of the last.
	if r.rescues {
		r.rest = r.newRest(l, slots)
	}
	r.s.expect(slots, len(r.targets)+r.rest.fields())
	for _, t := range r.targets {
		if t.field >= 0 {
			t.slot = slots[t.field]
		}
	}
	return nil
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// Next fills a batch.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	for !r.s.done && !codec.BatchFull(r.rows, r.req.BatchRows, r.textBytes()) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.s.next(r.req.BatchRows - r.rows); err != nil {
			return nil, r.fail(r.explain(err))
		}
		if r.s.rows > 0 {
			if err := r.fill(); err != nil {
				return nil, r.fail(err)
			}
		}
	}
	if r.rows == 0 {
		if err := cmp.Or(r.in.Finish(), r.drift.Done()); err != nil {
			return nil, r.fail(err)
		}
		return nil, r.fail(io.EOF)
	}
	return r.batch(), nil
}

func (r *reader) fail(err error) error {
	r.failed = err
	return err
}

func (r *reader) textBytes() int {
	n := 0
	for _, t := range r.targets {
		n += t.column.TextBytes()
	}
	if r.rest != nil {
		n += r.rest.column.TextBytes()
	}
	return n
}

// fill appends the records of the chunk to the batch.
func (r *reader) fill() error {
	r.markNulls()
	if !r.layout.hasHeader {
		r.settleCounts()
	}
	buf := r.in.Buf()
	for _, t := range r.targets {
		if t == r.corrupt {
			continue
		}
		rows, nulls := t.column.Len(), t.column.Nulls()
		bad := t.column.Append(buf, r.s.slot(t.slot))
		r.drift.See(t.index, t.column.Len()-rows-(t.column.Nulls()-nulls), len(bad))
		for _, row := range bad {
			// Text that is none is damaged, not of another type.
			if r.columns.Evolution != codec.EvolveRescue || t.column.Type().ID() == arrow.STRING {
				r.s.problems = append(r.s.problems, problem{row, int32(t.field), notValue})
			}
			if r.rest != nil {
				r.rest.add(row, t)
			}
		}
	}
	if r.rest != nil {
		r.rest.fill(r, buf)
	}
	kept := r.s.rows
	if len(r.s.problems) > 0 {
		var err error
		if kept, err = r.handleProblems(buf); err != nil {
			return err
		}
	}
	if r.corrupt != nil && len(r.s.problems) == 0 {
		r.corrupt.column.Append(buf, r.s.slot(r.corrupt.slot))
	}
	for _, t := range r.targets {
		if t.hidden {
			t.column.Truncate(0)
		}
	}
	r.rows += kept
	return nil
}

// markNulls makes the cells that hold null_value absent.
func (r *reader) markNulls() {
	null := r.opts.NullValue
	if null == "" {
		return
	}
	buf := r.in.Buf()
	for _, t := range r.targets {
		slot := r.s.slot(t.slot)
		for i, c := range slot {
			if s, e := c.Span(); e-s == len(null) && !c.IsQuoted() && c != cells.Absent && string(buf[s:e]) == null {
				slot[i] = cells.Absent
			}
		}
	}
}

// handleProblems does what the mode says; it returns how many records remain.
func (r *reader) handleProblems(buf []byte) (kept int, err error) {
	slices.SortStableFunc(r.s.problems, func(a, b problem) int { return cmp.Compare(a.row, b.row) })
	if r.opts.Mode == codec.Fail {
		p := r.s.problems[0]
		e := r.describe(buf, p)
		e.Line = r.in.Line(r.in.Offset(r.s.start[p.row]))
		return 0, &e
	}
	last := int32(-1)
	for _, p := range r.s.problems {
		if p.row != last {
			codec.CountMalformed(r.req.Stats, r.in, r.s.start[p.row], r.s.end[p.row],
				func() connector.RecordError { return r.describe(buf, p) })
			last = p.row
		}
	}
	if r.opts.Mode == codec.Drop {
		return r.drop(buf), nil
	}
	if r.corrupt != nil {
		r.fillCorrupt(buf)
	}
	return r.s.rows, nil
}

// drop fills the chunk again without the records that have a problem.
func (r *reader) drop(buf []byte) (kept int) {
	bad := make([]bool, r.s.rows)
	for _, p := range r.s.problems {
		bad[p.row] = true
	}
	done := map[int]bool{}
	for _, t := range r.targets {
		slot := r.s.slot(t.slot)
		if !done[t.slot] {
			done[t.slot] = true
			kept = 0
			for i, c := range slot {
				if !bad[i] {
					slot[kept] = c
					kept++
				}
			}
		}
	}
	if len(r.targets) == 0 {
		for _, b := range bad {
			if !b {
				kept++
			}
		}
	}
	for _, t := range r.targets {
		if t.hidden {
			continue
		}
		if t != r.corrupt {
			t.column.Truncate(r.rows)
		}
		t.column.Append(buf, r.s.slot(t.slot)[:kept])
	}
	r.restoreAbsent()
	return kept
}

// restoreAbsent repairs the slots of columns the file has not, which are filled once.
func (r *reader) restoreAbsent() {
	for _, t := range r.targets {
		if t.field < 0 {
			slot := r.s.cells[t.slot*r.s.chunk:][:r.s.chunk]
			for i := range slot {
				slot[i] = cells.Absent
			}
		}
	}
}

// fillCorrupt gives the records with a problem to the corrupt column.
func (r *reader) fillCorrupt(buf []byte) {
	slot := r.s.slot(r.corrupt.slot)
	r.kept.Reset()
	for _, p := range r.s.problems {
		if slot[p.row] == cells.Absent { // the first problem of its record
			slot[p.row] = r.kept.Add(buf[r.s.start[p.row]:r.s.end[p.row]])
		}
	}
	r.corrupt.column.Append(r.kept.Buf(), slot)
	r.restoreAbsent()
}

// describe says what is wrong with a record of a chunk, without the line.
func (r *reader) describe(buf []byte, p problem) connector.RecordError {
	e := connector.RecordError{File: r.file.Path}
	switch p.what {
	case tooFew, tooMany:
		e.Reason = fmt.Sprintf("%s: %d are expected", faults[p.what], r.s.fields)
		return e
	case notValue:
		for _, t := range r.targets {
			if t.field == int(p.field) {
				e.Column = t.name
				e.Reason = r.rules.Misfit(buf, r.s.slot(t.slot)[p.row], t.column.Type())
			}
		}
		return e
	}
	e.Reason = faults[p.what]
	for _, c := range r.targets {
		if c.field == int(p.field) {
			e.Column = c.name
		}
	}
	return e
}

// explain names file and line of a record that is too large to be read.
func (r *reader) explain(err error) error {
	if errors.Is(err, codec.ErrRecordSize) {
		return &connector.RecordError{File: r.file.Path, Line: r.in.Line(r.in.Offset(r.in.Lo())), Reason: err.Error(), Err: err}
	}
	return err
}

// batch hands the filled columns over.
func (r *reader) batch() arrow.RecordBatch {
	arrays := make([]arrow.Array, len(r.out))
	finished := map[*target]arrow.Array{}
	for i, t := range r.out {
		if t == nil && finished[nil] == nil {
			finished[nil] = r.rest.column.Finish()
			arrays[i] = finished[nil]
			continue
		}
		if a := finished[t]; a != nil {
			a.Retain()
			arrays[i] = a
			continue
		}
		arrays[i] = t.column.Finish()
		finished[t] = arrays[i]
	}
	b := array.NewRecordBatch(r.schema, arrays, int64(r.rows))
	for _, a := range arrays {
		a.Release()
	}
	codec.CountRows(r.req.Stats, r.rows)
	r.rows = 0
	return b
}

// Close releases everything. It may be called more than once.
func (r *reader) Close() error {
	for _, t := range r.targets {
		t.column.Release()
	}
	if r.rest != nil {
		r.rest.column.Release()
	}
	if r.failed == nil {
		r.failed = io.EOF
	}
	return r.in.Close()
}
