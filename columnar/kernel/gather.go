package kernel

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
)

// A Ref names a row of a list of batches: the batch's place in the list and the row
// in it. Refs in ascending order are rows in list order.
type Ref uint64

// NoRow is the Ref of no row; Gather gives a null for it.
const NoRow = ^Ref(0)

// MakeRef names a row of a batch.
func MakeRef(batch, row int) Ref { return Ref(batch)<<32 | Ref(uint32(row)) }

// Batch and Row are the parts of a Ref.
func (r Ref) Batch() int { return int(r >> 32) }

// Row is the row within the batch.
func (r Ref) Row() int { return int(uint32(r)) }

// AllRefs names every row of columns of the given lengths, in order.
func AllRefs(lengths ...int) []Ref {
	total := 0
	for _, n := range lengths {
		total += n
	}
	refs := make([]Ref, 0, total)
	for b, n := range lengths {
		for i := range n {
			refs = append(refs, MakeRef(b, i))
		}
	}
	return refs
}

// Gather is the rows that refs name among sources, in that order; NoRow gives a
// null. All sources have one type, though some may be dictionary-encoded: the result
// is then plain unless there is one source. The only error is text of more than
// 2 GiB. The caller releases the result.
func Gather(mem memory.Allocator, sources []arrow.Array, refs []Ref) (arrow.Array, error) {
	if len(sources) == 0 {
		panic("bug: gather from nothing")
	}
	if len(sources) == 1 {
		rows := make([]int32, len(refs))
		for i, r := range refs {
			rows[i] = int32(uint32(r)) // -1 for NoRow
		}
		return Take(mem, sources[0], rows)
	}
	plain := make([]arrow.Array, len(sources))
	for i, s := range sources {
		plain[i] = columnar.PlainColumn(mem, s)
		defer plain[i].Release()
	}
	return gather(mem, plain, refs)
}

// GatherBatch is Gather for every column of batches, which have schema's types.
func GatherBatch(mem memory.Allocator, schema *arrow.Schema, batches []arrow.RecordBatch, refs []Ref) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, schema.NumFields())
	fields := make([]arrow.Field, schema.NumFields())
	for c := range columns {
		sources := make([]arrow.Array, len(batches))
		for i, b := range batches {
			sources[i] = b.Column(c)
		}
		fields[c] = schema.Field(c)
		a, err := Gather(mem, sources, refs)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", fields[c].Name, err)
		}
		defer a.Release()
		columns[c] = a
		fields[c].Type = a.DataType()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(refs))), nil
}

// gather works on plain sources.
func gather(mem memory.Allocator, sources []arrow.Array, refs []Ref) (arrow.Array, error) {
	dt := sources[0].DataType()
	n := len(refs)
	switch t := dt.(type) {
	case *arrow.NullType:
		return array.NewNull(n), nil
	case *arrow.BooleanType:
		valid, nulls := gatherValidity(mem, sources, refs)
		return Wrap(dt, n, nulls, valid, gatherBits(mem, sources, refs, valid)), nil
	case *arrow.StringType, *arrow.BinaryType:
		return gatherBytes(mem, sources, refs)
	case *arrow.StructType:
		return gatherStructs(mem, sources, refs, t)
	case *arrow.ListType, *arrow.MapType:
		return gatherConcatenated(mem, sources, refs)
	}
	valid, nulls := gatherValidity(mem, sources, refs)
	var out *memory.Buffer
	switch byteWidth(dt) {
	case 1:
		out = gatherFixed[uint8](mem, sources, refs)
	case 2:
		out = gatherFixed[uint16](mem, sources, refs)
	case 4:
		out = gatherFixed[uint32](mem, sources, refs)
	case 8:
		out = gatherFixed[uint64](mem, sources, refs)
	case 16:
		out = gatherFixed[wide](mem, sources, refs)
	default:
		panic("bug: gather of " + dt.String())
	}
	return Wrap(dt, n, nulls, valid, out), nil
}

func gatherFixed[T any](mem memory.Allocator, sources []arrow.Array, refs []Ref) *memory.Buffer {
	views := make([][]T, len(sources))
	for i, s := range sources {
		views[i] = Values[T](s)
	}
	buf, out := Make[T](mem, len(refs))
	var zero T
	for i, r := range refs {
		if r == NoRow {
			out[i] = zero
			continue
		}
		out[i] = views[r>>32][uint32(r)]
	}
	return buf
}

func gatherBits(mem memory.Allocator, sources []arrow.Array, refs []Ref, valid *memory.Buffer) *memory.Buffer {
	buf := newBitmap(mem, len(refs))
	out := buf.Bytes()
	clear(out)
	for i, r := range refs {
		if valid != nil && !bitAt(valid.Bytes(), i) {
			continue
		}
		d := sources[r>>32].Data()
		at := d.Offset() + r.Row()
		out[i>>3] |= d.Buffers()[1].Bytes()[at>>3] >> (at & 7) & 1 << (i & 7)
	}
	return buf
}

func gatherValidity(mem memory.Allocator, sources []arrow.Array, refs []Ref) (*memory.Buffer, int) {
	type bitmap struct {
		raw    []byte
		offset int
	}
	bitmaps := make([]bitmap, len(sources))
	mayBeNull := false
	for i, s := range sources {
		bitmaps[i].raw, bitmaps[i].offset = validity(s)
		mayBeNull = mayBeNull || bitmaps[i].raw != nil
	}
	for i := 0; i < len(refs) && !mayBeNull; i++ {
		mayBeNull = refs[i] == NoRow
	}
	if !mayBeNull {
		return nil, 0
	}
	buf := newBitmap(mem, len(refs))
	out := buf.Bytes()
	clear(out)
	nulls := 0
	for i, r := range refs {
		if r != NoRow {
			if b := bitmaps[r>>32]; b.raw == nil || bitAt(b.raw, b.offset+r.Row()) {
				out[i>>3] |= 1 << (i & 7)
				continue
			}
		}
		nulls++
	}
	if nulls == 0 {
		buf.Release()
		return nil, 0
	}
	return buf, nulls
}

func gatherBytes(mem memory.Allocator, sources []arrow.Array, refs []Ref) (arrow.Array, error) {
	valid, nulls := gatherValidity(mem, sources, refs)
	views := make([]bytesView, len(sources))
	for i, s := range sources {
		views[i] = bytesOf(s)
	}
	offsets, ends := Make[int32](mem, len(refs)+1)
	ends[0] = 0
	total := int64(0)
	for i, r := range refs {
		if valid == nil || bitAt(valid.Bytes(), i) {
			v := &views[r>>32]
			total += int64(v.offsets[r.Row()+1] - v.offsets[r.Row()])
		}
		ends[i+1] = int32(total)
	}
	if total > math.MaxInt32 {
		release(valid)
		offsets.Release()
		return nil, errTooMuchText(total)
	}
	data, out := Make[byte](mem, int(total))
	for i, r := range refs {
		if n := ends[i+1] - ends[i]; n > 0 {
			v := &views[r>>32]
			from := v.offsets[r.Row()]
			copy(out[ends[i]:ends[i+1]], v.data[from:from+n])
		}
	}
	return Wrap(sources[0].DataType(), len(refs), nulls, valid, offsets, data), nil
}

func gatherStructs(mem memory.Allocator, sources []arrow.Array, refs []Ref, t *arrow.StructType) (arrow.Array, error) {
	var built columnar.Releases
	defer built.Release()
	children := make([]arrow.Array, t.NumFields())
	for k := range children {
		parts := make([]arrow.Array, len(sources))
		for i, s := range sources {
			parts[i] = s.(*array.Struct).Field(k)
		}
		c, err := gather(mem, parts, refs)
		if err != nil {
			return nil, err
		}
		built.Add(c)
		children[k] = c
	}
	built.Keep()
	valid, nulls := gatherValidity(mem, sources, refs)
	return wrapNested(t, len(refs), nulls, []*memory.Buffer{valid}, children), nil
}

// gatherConcatenated puts the sources together and takes from the whole.
func gatherConcatenated(mem memory.Allocator, sources []arrow.Array, refs []Ref) (arrow.Array, error) {
	starts := make([]int64, len(sources))
	total := int64(0)
	for i, s := range sources {
		starts[i] = total
		total += int64(s.Len())
	}
	if total > math.MaxInt32 {
		return nil, fmt.Errorf("%d rows with arrays are too many to be put in order at once", total)
	}
	whole, err := Concat(mem, sources)
	if err != nil {
		return nil, err
	}
	defer whole.Release()
	rows := make([]int32, len(refs))
	for i, r := range refs {
		if r == NoRow {
			rows[i] = -1
			continue
		}
		rows[i] = int32(starts[r>>32]) + int32(uint32(r))
	}
	return Take(mem, whole, rows)
}

// GatheredBytes is about how much memory the result of Gather takes.
func GatheredBytes(sources []arrow.Array, refs []Ref) int64 {
	if len(sources) == 1 {
		rows := make([]int32, len(refs))
		for i, r := range refs {
			rows[i] = int32(uint32(r))
		}
		return columnar.TakenBytes(sources[0], rows)
	}
	n := int64(0)
	widths := make([]func(row int) int64, len(sources))
	for i, s := range sources {
		of, each := RowBytes(s)
		if of == nil {
			of = func(int) int64 { return each }
		}
		widths[i] = of
	}
	for _, r := range refs {
		if r != NoRow {
			n += widths[r>>32](r.Row())
		}
	}
	return n
}
