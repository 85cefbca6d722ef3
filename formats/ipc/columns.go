package ipc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// errCutOff says that a part of a batch is too short for its rows.
var errCutOff = errors.New("a part of it is too short for its rows")

// errOffsets says that offsets fall, or point outside of what they are offsets into.
var errOffsets = errors.New("offsets in it point nowhere")

// maxBytes is how many bytes, or elements, one column of a batch may hold.
const maxBytes = math.MaxInt32

func errTooLarge(n int64) error {
	return &misfitError{fmt.Sprintf("it holds %d bytes or elements in one batch, at most %d can be read; write it in smaller batches", n, maxBytes)}
}

// misfitError is about values that are whole, but none the engine can hold.
type misfitError struct{ text string }

func (e *misfitError) Error() string { return e.text }

// column is the engine's column of a top-level field at the cursor.
func (l *loader) column(f *field) (arrow.Array, error) {
	if err := l.fetch(f); err != nil {
		return nil, err
	}
	defer l.dropPiece()
	a, err := l.load(f)
	if err != nil {
		return nil, err
	}
	if n := a.Len(); n != l.b.rows {
		a.Release()
		return nil, fmt.Errorf("it has %d rows where its batch has %d", n, l.b.rows)
	}
	return a, nil
}

// load makes the engine's column of the field at the cursor, and moves that behind it.
func (l *loader) load(f *field) (arrow.Array, error) {
	if f.dict != nil {
		return l.decoded(f)
	}
	rows, nulls, err := l.b.node(l.c.node)
	l.c.node++
	if err != nil {
		return nil, err
	}
	switch f.layout {
	case layoutNull:
		return array.NewNull(rows), nil
	case layoutRunEnds:
		return l.runs(f, rows)
	}
	var valid *memory.Buffer
	if f.layout != layoutUnion {
		if valid, nulls, err = l.validity(rows, nulls); err != nil {
			return nil, err
		}
	}
	a, err := l.values(f, rows, int(nulls), valid)
	if err != nil && valid != nil {
		valid.Release()
	}
	return a, err
}

// validity is the next buffer as the validity of rows, nil if none is null.
func (l *loader) validity(rows int, nulls int64) (*memory.Buffer, int64, error) {
	if nulls == 0 {
		l.c.buffer++
		return nil, 0, nil
	}
	buf, err := l.buffer()
	if err != nil {
		return nil, 0, err
	}
	if buf == nil && rows == 0 {
		return nil, 0, nil
	}
	if buf == nil || int64(buf.Len())*8 < int64(rows) {
		if buf != nil {
			buf.Release()
		}
		return nil, 0, errCutOff
	}
	set := 0
	raw := buf.Bytes()
	for i := range rows / 8 {
		set += bits.OnesCount8(raw[i])
	}
	if rest := rows % 8; rest > 0 {
		set += bits.OnesCount8(raw[rows/8] & (1<<rest - 1))
	}
	if set == rows {
		buf.Release()
		return nil, 0, nil
	}
	return buf, int64(rows - set), nil
}

// values makes a column of a layout that has validity, which it takes over if it gives
// no error.
func (l *loader) values(f *field, rows, nulls int, valid *memory.Buffer) (arrow.Array, error) {
	switch f.layout {
	case layoutBool:
		buf, err := l.sized((int64(rows) + 7) / 8)
		if err != nil {
			return nil, err
		}
		return kernel.Wrap(f.typ, rows, nulls, valid, buf), nil
	case layoutFixed:
		return l.fixed(f, rows, nulls, valid)
	case layoutBinary, layoutLargeBinary, layoutView, layoutBytes:
		return l.bytes(f, rows, nulls, valid)
	case layoutStruct:
		return l.structs(f, rows, nulls, valid)
	case layoutUnion:
		return nil, fmt.Errorf("%s", f.why)
	}
	return l.lists(f, rows, nulls, valid)
}

// sized is the next buffer, which must have n bytes.
func (l *loader) sized(n int64) (*memory.Buffer, error) {
	buf, err := l.buffer()
	if err != nil {
		return nil, err
	}
	if buf == nil {
		buf, _ = kernel.Make[byte](l.mem, 0)
	}
	if int64(buf.Len()) < n {
		buf.Release()
		return nil, errCutOff
	}
	return buf, nil
}

// fixed makes a column of values of one width.
func (l *loader) fixed(f *field, rows, nulls int, valid *memory.Buffer) (arrow.Array, error) {
	buf, err := l.sized(int64(rows) * int64(f.width))
	if err != nil {
		return nil, err
	}
	c := f.convert
	if c.run == nil {
		return kernel.Wrap(f.typ, rows, nulls, valid, buf), nil
	}
	defer buf.Release()
	src := buf.Bytes()
	if c.fits != nil {
		for i := range rows {
			if !c.fits(src, i) && isValid(valid, i) {
				return nil, &misfitError{fmt.Sprintf("the value of row %d of a batch is out of range of %s", i+1, columnar.TypeName(f.typ))}
			}
		}
	}
	out := memory.NewResizableBuffer(l.mem)
	out.Resize(rows * c.width)
	if rows > 0 {
		c.run(out.Bytes(), src, rows, l.zone)
	}
	return kernel.Wrap(f.typ, rows, nulls, valid, out), nil
}

func isValid(valid *memory.Buffer, i int) bool {
	return valid == nil || valid.Bytes()[i>>3]>>(i&7)&1 != 0
}

// bytes makes a column of texts or bytes.
func (l *loader) bytes(f *field, rows, nulls int, valid *memory.Buffer) (arrow.Array, error) {
	var offsets, data *memory.Buffer
	var err error
	switch f.layout {
	case layoutBinary:
		offsets, data, err = l.smallTexts(rows)
	case layoutLargeBinary:
		offsets, data, err = l.largeTexts(rows)
	case layoutView:
		offsets, data, err = l.views(rows, valid)
	default:
		offsets, data, err = l.fixedTexts(rows, f.width)
	}
	if err == nil && f.typ.ID() == arrow.STRING {
		err = checkText(arrow.Int32Traits.CastFromBytes(offsets.Bytes())[:rows+1], data.Bytes(), valid)
	}
	if err != nil {
		releaseBuffers(offsets, data)
		return nil, err
	}
	return kernel.Wrap(f.typ, rows, nulls, valid, offsets, data), nil
}

func releaseBuffers(list ...*memory.Buffer) {
	for _, b := range list {
		if b != nil {
			b.Release()
		}
	}
}

// offsets32 is the next buffer as offsets of rows into something of a size.
func (l *loader) offsets32(rows int) (*memory.Buffer, []int32, error) {
	buf, err := l.buffer()
	if err != nil {
		return nil, nil, err
	}
	if buf == nil && rows == 0 {
		buf, offsets := kernel.Make[int32](l.mem, 1)
		offsets[0] = 0
		return buf, offsets, nil
	}
	if buf == nil || int64(buf.Len()) < 4*(int64(rows)+1) {
		releaseBuffers(buf)
		return nil, nil, errCutOff
	}
	return buf, arrow.Int32Traits.CastFromBytes(buf.Bytes())[:rows+1], nil
}

// rise says whether offsets rise from no less than 0 to no more than size.
func rise[T int32 | int64](offsets []T, size int64) bool {
	last := T(0)
	for _, o := range offsets {
		if o < last {
			return false
		}
		last = o
	}
	return int64(last) <= size
}

func (l *loader) smallTexts(rows int) (offsets, data *memory.Buffer, err error) {
	offsets, list, err := l.offsets32(rows)
	if err != nil {
		return nil, nil, err
	}
	if data, err = l.sized(int64(list[rows])); err != nil {
		return offsets, nil, err
	}
	if !rise(list, int64(data.Len())) {
		return offsets, data, errOffsets
	}
	return offsets, data, nil
}

// rebased makes offsets of 64 bits ones of 32 that begin at 0.
func (l *loader) rebased(rows int) (offsets *memory.Buffer, from, size int64, err error) {
	buf, err := l.buffer()
	if err != nil {
		return nil, 0, 0, err
	}
	if buf == nil && rows == 0 {
		offsets, list := kernel.Make[int32](l.mem, 1)
		list[0] = 0
		return offsets, 0, 0, nil
	}
	defer releaseBuffers(buf)
	if buf == nil || int64(buf.Len()) < 8*(int64(rows)+1) {
		return nil, 0, 0, errCutOff
	}
	list := arrow.Int64Traits.CastFromBytes(buf.Bytes())[:rows+1]
	from = list[0]
	if !rise(list, math.MaxInt64) {
		return nil, 0, 0, errOffsets
	}
	if size = list[rows] - from; size > maxBytes {
		return nil, 0, 0, errTooLarge(size)
	}
	offsets, out := kernel.Make[int32](l.mem, rows+1)
	for i, o := range list {
		out[i] = int32(o - from)
	}
	return offsets, from, size, nil
}

func (l *loader) largeTexts(rows int) (offsets, data *memory.Buffer, err error) {
	offsets, from, size, err := l.rebased(rows)
	if err != nil {
		return nil, nil, err
	}
	all, err := l.sized(from + size)
	if err != nil {
		return offsets, nil, err
	}
	defer all.Release()
	return offsets, memory.SliceBuffer(all, int(from), int(size)), nil
}

func (l *loader) fixedTexts(rows, width int) (offsets, data *memory.Buffer, err error) {
	if int64(rows)*int64(width) > maxBytes {
		return nil, nil, errTooLarge(int64(rows) * int64(width))
	}
	if data, err = l.sized(int64(rows) * int64(width)); err != nil {
		return nil, nil, err
	}
	offsets, list := kernel.Make[int32](l.mem, rows+1)
	for i := range list {
		list[i] = int32(i * width)
	}
	return offsets, data, nil
}

// viewSize is the bytes of a view: the length, then up to 12 bytes of text, or 4 bytes of
// it, the number of a buffer and the place in that.
const viewSize = 16

// views copies the texts that views point to.
func (l *loader) views(rows int, valid *memory.Buffer) (offsets, data *memory.Buffer, err error) {
	n, err := l.c.views(l.b)
	if err != nil {
		return nil, nil, err
	}
	buf, err := l.sized(viewSize * int64(rows))
	if err != nil {
		return nil, nil, err
	}
	defer buf.Release()
	texts := make([][]byte, n)
	for i := range texts {
		b, err := l.buffer()
		if err != nil {
			return nil, nil, err
		}
		if b != nil {
			defer b.Release()
			texts[i] = b.Bytes()
		}
	}
	views := buf.Bytes()
	offsets, ends := kernel.Make[int32](l.mem, rows+1)
	total := int64(0)
	ends[0] = 0
	for i := range rows {
		if isValid(valid, i) {
			text, ok := viewed(views[viewSize*i:], texts)
			if !ok {
				return offsets, nil, errOffsets
			}
			total += int64(len(text))
		}
		if total > maxBytes {
			return offsets, nil, errTooLarge(total)
		}
		ends[i+1] = int32(total)
	}
	data, out := kernel.Make[byte](l.mem, int(total))
	for i := range rows {
		if ends[i] < ends[i+1] {
			text, _ := viewed(views[viewSize*i:], texts)
			copy(out[ends[i]:], text)
		}
	}
	return offsets, data, nil
}

// viewed is the text of a view; ok is false if it points nowhere.
func viewed(view []byte, texts [][]byte) (text []byte, ok bool) {
	n := int(binary.LittleEndian.Uint32(view))
	if n <= 12 {
		return view[4 : 4+n], true
	}
	buffer, at := binary.LittleEndian.Uint32(view[8:]), binary.LittleEndian.Uint32(view[12:])
	if int64(buffer) >= int64(len(texts)) || int64(at)+int64(n) > int64(len(texts[buffer])) {
		return nil, false
	}
	return texts[buffer][at : int(at)+n], true
}

// checkText makes sure that texts are UTF-8. All at once, they are if the whole is and
// each begins with the first byte of a character; else one by one, for what is null does
// not count.
func checkText(offsets []int32, data []byte, valid *memory.Buffer) error {
	rows := len(offsets) - 1
	all := data[offsets[0]:offsets[rows]]
	if utf8.Valid(all) {
		whole := true
		for _, o := range offsets[:rows] {
			if int(o) < len(data) && o < offsets[rows] && !utf8.RuneStart(data[o]) {
				whole = false
				break
			}
		}
		if whole {
			return nil
		}
	}
	for i := range rows {
		if isValid(valid, i) && !utf8.Valid(data[offsets[i]:offsets[i+1]]) {
			return fmt.Errorf("the text of row %d of a batch is not UTF-8", i+1)
		}
	}
	return nil
}

// structs makes a STRUCT of its fields.
func (l *loader) structs(f *field, rows, nulls int, valid *memory.Buffer) (arrow.Array, error) {
	fields, err := l.children(f)
	if err != nil {
		return nil, err
	}
	for i, c := range fields {
		if c.Len() < rows {
			releaseArrays(fields)
			return nil, errCutOff
		}
		if c.Len() > rows {
			fields[i] = array.NewSlice(c, 0, int64(rows))
			c.Release()
		}
	}
	return kernel.WrapStruct(f.typ, rows, nulls, valid, fields), nil
}

// children loads the children of a field.
func (l *loader) children(f *field) ([]arrow.Array, error) {
	list := make([]arrow.Array, 0, len(f.children))
	for _, c := range f.children {
		a, err := l.load(c)
		if err != nil {
			releaseArrays(list)
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func releaseArrays(list []arrow.Array) {
	for _, a := range list {
		a.Release()
	}
}

// lists makes an ARRAY or a MAP of its offsets and elements.
func (l *loader) lists(f *field, rows, nulls int, valid *memory.Buffer) (arrow.Array, error) {
	var offsets *memory.Buffer
	var from, size int64
	var sizes []int64 // of views, with starts
	var starts []int64
	var err error
	switch f.layout {
	case layoutList, layoutMap:
		var list []int32
		if offsets, list, err = l.offsets32(rows); err == nil {
			size = int64(list[rows])
			if !rise(list, size) {
				err = errOffsets
			}
		}
	case layoutLargeList:
		offsets, from, size, err = l.rebased(rows)
	case layoutListView:
		starts, sizes, err = l.ranges(rows, 4)
	case layoutLargeListView:
		starts, sizes, err = l.ranges(rows, 8)
	case layoutFixedList:
		if size = int64(rows) * int64(f.width); size > maxBytes {
			err = errTooLarge(size)
			break
		}
		var list []int32
		offsets, list = kernel.Make[int32](l.mem, rows+1)
		for i := range list {
			list[i] = int32(i * f.width)
		}
	}
	if err != nil {
		releaseBuffers(offsets)
		return nil, err
	}
	child, err := l.load(f.children[0])
	if err != nil {
		releaseBuffers(offsets)
		return nil, err
	}
	if starts != nil {
		return l.listViews(f, rows, nulls, valid, starts, sizes, child)
	}
	if from+size > int64(child.Len()) {
		releaseBuffers(offsets)
		child.Release()
		return nil, errOffsets
	}
	if from > 0 {
		all := child
		child = array.NewSlice(all, from, from+size)
		all.Release()
	}
	if f.layout == layoutMap {
		return mapOf(f, rows, nulls, valid, offsets, child)
	}
	return kernel.WrapList(f.typ, rows, nulls, valid, offsets, child), nil
}

// mapOf makes a MAP of entries, which it takes over.
func mapOf(f *field, rows, nulls int, valid, offsets *memory.Buffer, entries arrow.Array) (arrow.Array, error) {
	s := entries.(*array.Struct)
	defer s.Release()
	if s.NullN() > 0 || s.Field(0).NullN() > 0 {
		offsets.Release()
		return nil, errors.New("a key of a map is null")
	}
	parts := []arrow.Array{s.Field(0), s.Field(1)}
	for _, p := range parts {
		p.Retain()
	}
	t := f.typ.(*arrow.MapType)
	return kernel.WrapList(t, rows, nulls, valid, offsets, kernel.WrapStruct(t.Elem(), s.Len(), 0, nil, parts)), nil
}

// ranges are the next two buffers: where the elements of each row begin, and how many
// there are.
func (l *loader) ranges(rows, width int) (starts, sizes []int64, err error) {
	read := func() ([]int64, error) {
		buf, err := l.sized(int64(rows) * int64(width))
		if err != nil {
			return nil, err
		}
		defer buf.Release()
		out := make([]int64, rows)
		if width == 8 {
			copy(out, arrow.Int64Traits.CastFromBytes(buf.Bytes()))
			return out, nil
		}
		for i, v := range arrow.Int32Traits.CastFromBytes(buf.Bytes())[:rows] {
			out[i] = int64(v)
		}
		return out, nil
	}
	if starts, err = read(); err != nil {
		return nil, nil, err
	}
	sizes, err = read()
	return starts, sizes, err
}

// listViews takes the elements of each row together. It takes over child.
func (l *loader) listViews(f *field, rows, nulls int, valid *memory.Buffer, starts, sizes []int64, child arrow.Array) (arrow.Array, error) {
	defer child.Release()
	n := int64(child.Len())
	offsets, list := kernel.Make[int32](l.mem, rows+1)
	var taken []int32
	list[0] = 0
	for i := range rows {
		if isValid(valid, i) {
			from, size := starts[i], sizes[i]
			if from < 0 || size < 0 || from > n || size > n-from {
				offsets.Release()
				return nil, errOffsets
			}
			if int64(len(taken))+size > maxBytes {
				offsets.Release()
				return nil, errTooLarge(int64(len(taken)) + size)
			}
			for k := from; k < from+size; k++ {
				taken = append(taken, int32(k))
			}
		}
		list[i+1] = int32(len(taken))
	}
	elements, err := kernel.Take(l.mem, child, taken)
	if err != nil {
		offsets.Release()
		return nil, err
	}
	return kernel.WrapList(f.typ, rows, nulls, valid, offsets, elements), nil
}

// runs spreads values that stand for runs of rows.
func (l *loader) runs(f *field, rows int) (arrow.Array, error) {
	parts, err := l.children(f)
	if err != nil {
		return nil, err
	}
	defer releaseArrays(parts)
	ends, values := parts[0], parts[1]
	if ends.NullN() > 0 || values.Len() < ends.Len() {
		return nil, errOffsets
	}
	taken := make([]int32, 0, rows)
	for i := range ends.Len() {
		end := int64(0)
		switch e := ends.(type) {
		case *array.Int16:
			end = int64(e.Value(i))
		case *array.Int32:
			end = int64(e.Value(i))
		case *array.Int64:
			end = e.Value(i)
		}
		if end <= int64(len(taken)) {
			if len(taken) == rows {
				break
			}
			return nil, errOffsets
		}
		for len(taken) < rows && int64(len(taken)) < end {
			taken = append(taken, int32(i))
		}
	}
	if len(taken) < rows {
		return nil, errCutOff
	}
	return kernel.Take(l.mem, values, taken)
}
