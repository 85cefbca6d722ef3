package json

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/logical/connector"
)

// chunkRows is how many records are scanned before their columns are filled: few
// enough that text and cells are still in cache.
const chunkRows = 1024

// scan is what the units of one file share.
type scan struct {
	opts    *Options
	rules   *cells.Rules
	file    codec.File
	columns codec.Columns
	req     connector.ScanRequest
	wanted  []int
	schema  *arrow.Schema
	// checkAll: columns nobody asked for are read too, for what is wrong with them.
	checkAll bool
	rescues  bool // the rescued column is wanted
	drift    *codec.Drift
}

func (f *format) newScan(file codec.File, columns codec.Columns, req connector.ScanRequest) (*scan, error) {
	rules := *f.rules
	rules.Inferred = columns.JudgedAsInferred()
	sc := &scan{opts: &f.opts, rules: &rules, file: file, columns: columns, req: req, wanted: req.Columns,
		schema: columnar.Select(columns.Schema, req.Columns)}
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
		if i == columns.CorruptColumn && field.Type.ID() != arrow.STRING {
			return nil, fmt.Errorf("corrupt_column %s is %s; it must be VARCHAR", field.Name, columnar.TypeName(field.Type))
		}
		if !Readable(field.Type) {
			return nil, fmt.Errorf("column %s: %s cannot be read from JSON; declare it VARCHAR and cast it", field.Name, columnar.TypeName(field.Type))
		}
	}
	sc.rescues = columns.RescuedAt() >= 0 && slices.Contains(sc.wanted, columns.RescuedAt())
	sc.checkAll = sc.rescues || f.opts.Mode != codec.Permissive || columns.CorruptColumn >= 0 && slices.Contains(sc.wanted, columns.CorruptColumn)
	return sc, nil
}

// open starts reading a unit.
func (sc *scan) open(u *unit) (columnar.Reader, error) {
	in, err := codec.OpenInput(codec.InputSpec{File: sc.file, Range: u.r, Compression: sc.opts.Compression,
		Encoding: sc.opts.Encoding, Mode: sc.opts.Mode, Stats: sc.req.Stats})
	if err != nil {
		return nil, err
	}
	r := &reader{scan: sc, in: in, root: &node{kind: object}}
	if err = r.plant(); err == nil {
		r.rec, err = newRecords(in, sc.opts.Multiline, u.r)
	}
	if err != nil {
		r.Close()
		return nil, r.explain(err)
	}
	return r, nil
}

// reader reads one unit.
type reader struct {
	*scan
	in      *codec.Input
	rec     *records
	root    *node
	out     []*node // of wanted, in order; nil: the rescued column
	hidden  []*node // read only for what is wrong with them
	corrupt *node
	kept    cells.Texts // of the chunk, for corrupt
	places  []int       // in the source, by child of root

	// later is an error of a record behind those of the chunk, which may have their own.
	later error

	// stranger is the first key of the record being scanned that is no column, if it is
	// strange.
	stranger string
	strange  bool

	rescued *codec.Rescued
	odd     []int32 // records of the chunk of which something is rescued

	// The records of the chunk.
	start, end []int
	problems   []problem

	rows   int // in the batch being filled
	failed error
}

// problem is what is wrong with a record: it is no JSON, in the words of fault or, if
// that is empty, of the strict decoder; or node holds a value of another kind in its row
// at.
type problem struct {
	row   int32
	node  *node
	at    int32
	fault string
}

// plant makes the tree of the columns that are read.
func (r *reader) plant() error {
	byColumn := map[int]*node{}
	grow := func(c int) (*node, error) {
		field := r.columns.Schema.Field(c)
		n, err := newNode(r.req.Mem, field.Name, field.Type, r.rules)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name, err)
		}
		byColumn[c] = n
		if c == r.columns.CorruptColumn {
			r.corrupt = n
			return n, nil
		}
		n.parent = r.root
		r.root.children = append(r.root.children, n)
		r.places = append(r.places, c)
		return n, nil
	}
	if r.rescues {
		r.rescued = codec.NewRescued(r.req.Mem, r.file.Path)
	}
	for _, c := range r.wanted {
		n := byColumn[c]
		if n == nil && c != r.columns.RescuedAt() {
			var err error
			if n, err = grow(c); err != nil {
				return err
			}
		}
		r.out = append(r.out, n)
	}
	for c := range r.columns.Schema.NumFields() {
		if !r.checkAll || byColumn[c] != nil || c == r.columns.CorruptColumn || c == r.columns.RescuedAt() {
			continue
		}
		n, err := grow(c)
		if err != nil {
			return err
		}
		r.hidden = append(r.hidden, n)
	}
	if err := r.plantBare(byColumn); err != nil {
		return err
	}
	r.root.learn()
	if r.columns.Checked() || r.rescues {
		r.guardColumns()
	}
	return nil
}

// plantBare makes trees of the columns that nobody reads, for the keys within them.
func (r *reader) plantBare(read map[int]*node) error {
	if !r.columns.Checked() {
		return nil
	}
	for c, field := range r.columns.Schema.Fields() {
		if read[c] != nil || !codec.HasStruct(field.Type) {
			continue
		}
		n, err := newNode(r.req.Mem, field.Name, field.Type, nil)
		if err != nil {
			return fmt.Errorf("column %s: %w", field.Name, err)
		}
		n.parent = r.root
		r.root.children = append(r.root.children, n)
		r.places = append(r.places, c)
	}
	return nil
}

// guardColumns takes note of keys that are no columns of the source, and of keys within
// columns that are no fields of their structs.
func (r *reader) guardColumns() {
	for _, c := range r.root.children {
		r.guard(c)
	}
	for i, f := range r.columns.Schema.Fields() {
		if _, ok := r.root.index[f.Name]; !ok && i != r.columns.RescuedAt() {
			r.root.addKey(f.Name, nil)
		}
	}
	r.root.admit = func(key string) bool { return r.columns.IsElsewhere(key) || r.meet(key) }
	r.root.keepsAll = r.rescues
}

// guard takes note of keys within n.
func (r *reader) guard(n *node) {
	switch {
	case n.kind == object:
		n.admit = func(key string) bool { return r.meet(n.path() + "." + key) }
		n.keepsAll = r.rescues
	case n.kind == leaf && r.rescues:
		n.probe, _ = cells.NewColumn(r.req.Mem, n.dt, r.rules) // as its column was made
	}
	for _, c := range n.children {
		r.guard(c)
	}
}

// meet notes a key that is not known, by its path.
func (r *reader) meet(path string) bool {
	if !r.strange {
		r.strange, r.stranger = true, path
	}
	return false
}

func (r *reader) Schema() *arrow.Schema { return r.schema }

// Next fills a batch.
func (r *reader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	for !r.rec.done && !codec.BatchFull(r.rows, r.req.BatchRows, r.textBytes()) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.cut(min(chunkRows, r.req.BatchRows-r.rows)); err != nil {
			return nil, r.fail(r.explain(err))
		}
		if err := cmp.Or(r.fill(), r.later); err != nil {
			return nil, r.fail(err)
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

func (r *reader) textBytes() int {
	if r.rescued == nil {
		return r.root.textBytes()
	}
	return r.root.textBytes() + r.rescued.TextBytes()
}

func (r *reader) fail(err error) error {
	r.failed = err
	return err
}

// cut scans up to most records into the tree.
func (r *reader) cut(most int) error {
	r.start, r.end, r.problems, r.odd = r.start[:0], r.end[:0], r.problems[:0], r.odd[:0]
	for len(r.start) < most {
		p, isBad, err := r.rec.next(len(r.start) > 0)
		if err != nil || p < 0 {
			return err
		}
		end, ok, isObject := p, false, r.rec.buf[p] == '{'
		switch {
		case isBad:
		case isObject:
			r.strange = false
			end, ok = r.rec.object(r.root, p)
		default:
			end, ok = r.rec.skip(p)
			ok = ok && r.rec.mayFollow(end)
		}
		if !isBad && r.rec.unfinished(end) && !(ok && isObject) {
			r.root.truncate(len(r.start))
			if len(r.start) > 0 {
				return nil
			}
			if err := r.rec.more(p); err != nil {
				return err
			}
			continue
		}
		if ok {
			r.rec.took(end)
		} else {
			r.root.truncate(len(r.start))
			end = r.rec.broken(p)
		}
		switch {
		case ok && isObject && r.strange && !r.rescues:
			r.root.truncate(len(r.start))
			r.later = r.columns.Unknown(r.file.Path, r.line(p), r.stranger)
			return nil
		case ok && isObject:
			if r.strange {
				r.odd = append(r.odd, int32(len(r.start)))
			}
			r.start = append(r.start, p)
			r.end = append(r.end, end)
		default:
			fault := ""
			if isBad {
				fault = r.rec.fault
			}
			if r.later = r.malformed(p, end, fault); r.later != nil {
				return nil
			}
		}
	}
	return nil
}

// malformed does what the mode says about the record [start, end), which is no JSON
// object.
func (r *reader) malformed(start, end int, fault string) error {
	describe := func() connector.RecordError { return r.describeRecord(start, end, fault) }
	switch r.opts.Mode {
	case codec.Fail:
		e := describe()
		e.Line = r.line(start)
		return &e
	case codec.Drop:
		codec.CountMalformed(r.req.Stats, r.in, start, end, describe)
		return nil
	}
	r.problems = append(r.problems, problem{row: int32(len(r.start)), fault: fault})
	r.root.appendNothing(rowNull)
	r.start = append(r.start, start)
	r.end = append(r.end, end)
	return nil
}

// fill appends the records of the chunk to the batch.
func (r *reader) fill() error {
	kept := len(r.start)
	if kept == 0 {
		return nil
	}
	buf := r.rec.buf
	for i, c := range r.root.children {
		if c.bare {
			continue
		}
		c.mark()
		c.flush(buf, func(n *node, row int32) {
			n.wrong++
			r.report(n, row)
		})
		right, wrong := c.sinceMark()
		r.drift.See(r.places[i], right, wrong)
		if r.drift != nil {
			r.seeParts(c)
		}
	}
	if r.rescues {
		r.rescue()
	}
	if len(r.problems) > 0 {
		var err error
		if kept, err = r.handleProblems(); err != nil {
			return err
		}
	}
	r.fillCorrupt(buf, kept)
	r.root.clear()
	for _, n := range r.hidden {
		n.cut(0)
	}
	r.rows += kept
	return nil
}

// seeParts tells drift of what is below n.
func (r *reader) seeParts(n *node) {
	for _, c := range n.children {
		right, wrong := c.sinceMark()
		r.drift.SeePart(c.path(), c.dt, right, wrong)
		r.seeParts(c)
	}
}

// report notes a value that does not fit: it is rescued, or a problem. Text that is none
// is damaged, and always a problem.
func (r *reader) report(n *node, row int32) {
	if r.columns.Evolution == codec.EvolveRescue && n.dt.ID() != arrow.STRING {
		r.odd = append(r.odd, n.rootRow(row))
		return
	}
	r.problems = append(r.problems, problem{row: n.rootRow(row), node: n, at: row})
}

// handleProblems does what the mode says; it returns how many records remain.
func (r *reader) handleProblems() (kept int, err error) {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return cmp.Compare(a.row, b.row) })
	if r.opts.Mode == codec.Fail {
		p := r.problems[0]
		e := r.describe(p)
		e.Line = r.line(r.start[p.row])
		return 0, &e
	}
	last := int32(-1)
	for _, p := range r.problems {
		if p.row != last {
			codec.CountMalformed(r.req.Stats, r.in, r.start[p.row], r.end[p.row],
				func() connector.RecordError { return r.describe(p) })
			last = p.row
		}
	}
	if r.opts.Mode == codec.Drop {
		return r.drop(), nil
	}
	return len(r.start), nil
}

// drop fills the chunk again without the records that have a problem.
func (r *reader) drop() (kept int) {
	for _, c := range r.root.children {
		if slices.Contains(r.hidden, c) {
			c.cut(0)
		} else {
			c.cut(r.rows)
		}
	}
	bad := make([]bool, len(r.start))
	for _, p := range r.problems {
		bad[p.row] = true
	}
	r.root.clear()
	for i, p := range r.start {
		if !bad[i] {
			r.rec.depth = 0
			r.rec.object(r.root, p)
			kept++
		}
	}
	r.root.flushChildren(r.rec.buf, func(*node, int32) {})
	return kept
}

// fillCorrupt fills the corrupt column: with the text of the records that have a
// problem.
func (r *reader) fillCorrupt(buf []byte, kept int) {
	if r.corrupt == nil {
		return
	}
	slot := r.corrupt.cells[:0]
	for range kept {
		slot = append(slot, cells.Absent)
	}
	r.kept.Reset()
	if r.opts.Mode == codec.Permissive {
		for _, p := range r.problems {
			if slot[p.row] == cells.Absent { // the first problem of its record
				slot[p.row] = r.kept.Add(buf[r.start[p.row]:r.end[p.row]])
			}
		}
	}
	r.corrupt.column.Append(r.kept.Buf(), slot)
	r.corrupt.cells = slot[:0]
}

// describe says what is wrong with a record of the chunk, without the line.
func (r *reader) describe(p problem) connector.RecordError {
	if p.node == nil {
		return r.describeRecord(r.start[p.row], r.end[p.row], p.fault)
	}
	e := connector.RecordError{File: r.file.Path, Column: p.node.path()}
	switch {
	case p.node.kind == leaf:
		e.Reason = r.rules.Misfit(r.rec.buf, p.node.cells[p.at], p.node.dt)
	case p.node.rows[p.at] == rowTwice:
		e.Reason = "a key is there twice in a " + columnar.TypeName(p.node.dt)
	default:
		e.Reason = "the value is no " + columnar.TypeName(p.node.dt)
	}
	return e
}

// describeRecord says why a text is no record, in the words of fault or of the strict
// decoder, and without the line.
func (r *reader) describeRecord(start, end int, fault string) connector.RecordError {
	e := connector.RecordError{File: r.file.Path, Reason: "the record is not an object"}
	if fault != "" {
		e.Reason = fault
		return e
	}
	if e.Err = strict(r.rec.buf[start:end]); e.Err == nil {
		return e
	}
	var syntax *jsontext.SyntacticError
	switch e.Reason = "the record is not JSON"; {
	case !errors.As(e.Err, &syntax):
	case syntax.Err != io.ErrUnexpectedEOF:
		e.Reason += fmt.Sprintf(": %v", syntax.Err)
	case !r.rec.multiline:
		e.Reason += ": the line ends within it; objects over several lines need multiline = true"
	case end-start < maxBroken:
		e.Reason += ": the file ends within it"
	}
	return e
}

// strict is what the strict decoder thinks of a text.
func strict(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))
	for {
		if err := d.SkipValue(); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

func (r *reader) line(at int) int64 { return r.in.Line(r.in.Offset(at)) }

// explain names file and line of a record that is too large to be read.
func (r *reader) explain(err error) error {
	if errors.Is(err, codec.ErrRecordSize) {
		return &connector.RecordError{File: r.file.Path, Line: r.line(r.in.Lo()), Reason: err.Error(), Err: err}
	}
	return err
}

// batch hands the filled columns over.
func (r *reader) batch() arrow.RecordBatch {
	arrays := make([]arrow.Array, len(r.out))
	finished := map[*node]arrow.Array{}
	for i, n := range r.out {
		if n == nil && finished[nil] == nil {
			finished[nil] = r.rescued.Finish()
			arrays[i] = finished[nil]
			continue
		}
		if a := finished[n]; a != nil {
			a.Retain()
			arrays[i] = a
			continue
		}
		arrays[i] = n.finish()
		finished[n] = arrays[i]
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
	r.root.release()
	if r.corrupt != nil {
		r.corrupt.release()
	}
	if r.rescued != nil {
		r.rescued.Release()
	}
	if r.failed == nil {
		r.failed = io.EOF
	}
	return r.in.Close()
}
