package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/columnar"
)

// leafWriter collects the pages of one column chunk.
type leafWriter struct {
	path     []string
	typ      arrow.DataType
	physical format.Type
	length   int // of FIXED_LEN_BYTE_ARRAY
	def, rep int
	kind     statKind

	wanted      Compression // what the file asks for
	level       int         // of it
	compression Compression // of this chunk
	decided     bool        // compression is final for this chunk

	*leafMemory

	// The page being filled.
	rows       int
	nulls      int
	count      int // of values
	stats      extremes
	dict       *dictionaryWriter // nil: values are plain
	kept       *dictionaryWriter // given up, but earlier pages of the chunk use it
	numbersOff bool              // given up for this chunk
	noDict     bool

	// The chunk being filled.
	index       []pageRecord
	plainSize   int64
	chunkRows   int64
	chunkValues int64
	chunkNulls  int64
	chunkStats  extremes
	plainPages  int32
	codePages   int32
}

// leafMemory is the memory of a leafWriter that outlives it: a stream writes a file of a
// few thousand rows for each of many batches.
type leafMemory struct {
	defs, reps []byte // levels of the page being filled
	values     []byte // of that page, those that are not null, in PLAIN encoding; booleans a byte each
	pages      blocks // of the chunk being filled
	numbers    valueDictionary
	texts      dictionaryWriter
	sel        []int32 // indices of values that are not null
}

// pageMemory is what ending a page takes. It is not a leafWriter's: of many open files few
// end a page at a time.
type pageMemory struct {
	body   []byte // encoded
	packed []byte // compressed
}

var pageMemories = sync.Pool{New: func() any { return new(pageMemory) }}

// giveBack hands the memory on, unless it is that of unusually long texts.
func (m *pageMemory) giveBack() {
	if cap(m.body)+cap(m.packed) <= maxKeptPage {
		pageMemories.Put(m)
	}
}

var leafMemories = sync.Pool{New: func() any { return new(leafMemory) }}

// maxKeptPage is the memory that pages and dictionaries may take to be kept: those of
// unusually long texts are not.
const maxKeptPage = 4 << 20

// end ends the chunk, which was written: the memory goes to whoever needs some next, which
// may be another of many open files.
func (w *leafWriter) end() {
	m := w.leafMemory
	w.leafMemory, w.dict, w.kept = nil, nil, nil
	m.pages.reset()
	if cap(m.values) > maxKeptPage {
		return
	}
	if m.texts.source = nil; m.texts.bytes() > maxKeptPage {
		m.texts = dictionaryWriter{}
	}
	m.defs, m.reps, m.values = m.defs[:0], m.reps[:0], m.values[:0]
	m.numbers.reset()
	leafMemories.Put(m)
}

// pageRecord is what the indexes say of a page.
type pageRecord struct {
	offset, firstRow int64 // offset in pages
	size             int32 // with its header
	nulls            int64
	allNull          bool
	low, high        []byte
}

func newLeafWriter(path []string, dt arrow.DataType, e *format.SchemaElement, def, rep int) *leafWriter {
	return &leafWriter{
		path: path, typ: dt, physical: e.Type.V, length: int(e.TypeLength.V), def: def, rep: rep,
		kind: statKindOf(dt, e.Type.V),
	}
}

func statKindOf(dt arrow.DataType, p format.Type) statKind {
	switch dt.ID() {
	case arrow.BOOL:
		return statBool
	case arrow.FLOAT32:
		return statFloat
	case arrow.FLOAT64:
		return statDouble
	case arrow.STRING:
		return statText
	case arrow.BINARY:
		return statBytes
	case arrow.NULL, arrow.INTERVAL_MONTH_DAY_NANO:
		return statNone
	}
	switch p {
	case format.Int32:
		return statInt32
	case format.Int64:
		return statInt64
	}
	return statDecimal
}

// begin starts a chunk.
func (w *leafWriter) begin() {
	w.leafMemory = leafMemories.Get().(*leafMemory)
	w.rows, w.nulls, w.count = 0, 0, 0
	w.stats.reset()
	w.index = w.index[:0]
	w.plainSize, w.chunkRows, w.chunkValues, w.chunkNulls = 0, 0, 0, 0
	w.plainPages, w.codePages = 0, 0
	w.chunkStats.reset()
	w.dict, w.kept = nil, nil
	w.compression, w.decided = w.wanted, false
	w.numbersOff = w.noDict || w.numberSize() == 0
	w.numbers.reset()
	if !w.noDict && (w.typ.ID() == arrow.STRING || w.typ.ID() == arrow.BINARY) {
		w.texts.reset()
		w.dict = &w.texts
	}
}

// numberSize is the size of a number that may be coded, 0 if it may not.
func (w *leafWriter) numberSize() int {
	switch w.physical {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	}
	return 0
}

// appendFlat appends the rows of a column that is not nested.
func (w *leafWriter) appendFlat(a arrow.Array) error {
	n := a.Len()
	w.rows += n
	w.sel = w.sel[:0]
	if isAllValid(a) {
		w.defs = appendRepeated(w.defs, byte(w.def), n)
		return w.appendValues(a, nil)
	}
	for i := range n {
		if isNull(a, i) {
			w.defs = append(w.defs, byte(w.def-1))
		} else {
			w.defs = append(w.defs, byte(w.def))
			w.sel = append(w.sel, int32(i))
		}
	}
	w.nulls += n - len(w.sel)
	return w.appendSelected(a)
}

// isNull looks through dictionary codes at the value they stand for.
func isNull(a arrow.Array, i int) bool {
	if a.IsNull(i) {
		return true
	}
	d, ok := a.(*array.Dictionary)
	return ok && d.Dictionary().IsNull(d.GetValueIndex(i))
}

func isAllValid(a arrow.Array) bool {
	if a.DataType().ID() == arrow.NULL {
		return a.Len() == 0
	}
	d, ok := a.(*array.Dictionary)
	return a.NullN() == 0 && (!ok || d.Dictionary().NullN() == 0)
}

func appendRepeated(b []byte, v byte, n int) []byte {
	at := len(b)
	b = append(b, make([]byte, n)...)
	fill := b[at:]
	for i := range fill {
		fill[i] = v
	}
	return b
}

// appendEntries appends a nested column's entries.
func (w *leafWriter) appendEntries(a arrow.Array, e *entries) error {
	w.sel = w.sel[:0]
	optional := byte(w.def) // the level of a value that is there
	for i, at := range e.index {
		def := e.def[i]
		if at >= 0 && !isNull(a, int(at)) {
			def = optional
			w.sel = append(w.sel, at)
		}
		w.defs = append(w.defs, def)
		if e.rep[i] == 0 {
			w.rows++
		}
	}
	if w.rep > 0 {
		w.reps = append(w.reps, e.rep...)
	}
	w.nulls += len(e.index) - len(w.sel)
	return w.appendSelected(a)
}

// appendSelected appends the values of a at sel.
func (w *leafWriter) appendSelected(a arrow.Array) error {
	if len(w.sel) == 0 {
		return nil // a nil sel would mean all
	}
	return w.appendValues(a, w.sel)
}

// appendValues appends the values of a at the indices sel, all if sel is nil. None
// of them is null.
func (w *leafWriter) appendValues(a arrow.Array, sel []int32) error {
	n := len(sel)
	if sel == nil {
		n = a.Len()
	}
	if n == 0 {
		return nil
	}
	w.count += n
	if d, ok := a.(*array.Dictionary); ok {
		return w.appendDictionary(d, sel)
	}
	switch a := a.(type) {
	case *array.Boolean:
		w.appendBools(a, sel)
	case *array.Int8:
		appendNarrow(w, a.Int8Values(), sel)
	case *array.Int16:
		appendNarrow(w, a.Int16Values(), sel)
	case *array.Int32:
		w.appendInt32(a.Int32Values(), sel)
	case *array.Date32:
		w.appendInt32(arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(a.Date32Values())), sel)
	case *array.Int64:
		w.appendInt64(a.Int64Values(), sel)
	case *array.Time64:
		w.appendInt64(arrow.Int64Traits.CastFromBytes(arrow.Time64Traits.CastToBytes(a.Time64Values())), sel)
	case *array.Timestamp:
		w.appendInt64(arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(a.TimestampValues())), sel)
	case *array.Float32:
		w.appendFloat32(a.Float32Values(), sel)
	case *array.Float64:
		w.appendFloat64(a.Float64Values(), sel)
	case *array.Decimal128:
		return w.appendDecimals(a, sel)
	case *array.MonthDayNanoInterval:
		return w.appendIntervals(a, sel)
	case *array.String:
		w.appendTexts(textBytes(a.Data()), a.ValueOffsets(), sel)
	case *array.Binary:
		w.appendTexts(textBytes(a.Data()), a.ValueOffsets(), sel)
	default:
		return fmt.Errorf("bug: a column of type %s where %s was expected", a.DataType(), columnar.TypeName(w.typ))
	}
	return nil
}

// textBytes is the bytes the offsets of a text array refer to.
func textBytes(d arrow.ArrayData) []byte {
	if b := d.Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

func (w *leafWriter) appendBools(a *array.Boolean, sel []int32) {
	low, high := int64(1), int64(0)
	add := func(i int) {
		v := byte(0)
		if a.Value(i) {
			v = 1
		}
		low, high = min(low, int64(v)), max(high, int64(v))
		w.values = append(w.values, v)
	}
	if sel == nil {
		for i := range a.Len() {
			add(i)
		}
	}
	for _, i := range sel {
		add(int(i))
	}
	w.stats.addInt(low, high)
}

func appendNarrow[T int8 | int16](w *leafWriter, v []T, sel []int32) {
	wide := make([]int32, len(v))
	for i, x := range v {
		wide[i] = int32(x)
	}
	w.appendInt32(wide, sel)
}

func (w *leafWriter) appendInt32(v []int32, sel []int32) {
	at := len(w.values)
	if sel == nil {
		w.values = append(w.values, arrow.Int32Traits.CastToBytes(v)...)
	} else {
		w.values = gatherInto(w.values, v, sel, arrow.Int32Traits.CastFromBytes, 4)
	}
	if w.kind != statNone {
		low, high := minMax(arrow.Int32Traits.CastFromBytes(w.values[at:]))
		w.stats.addInt(int64(low), int64(high))
	}
}

func (w *leafWriter) appendInt64(v []int64, sel []int32) {
	at := len(w.values)
	if sel == nil {
		w.values = append(w.values, arrow.Int64Traits.CastToBytes(v)...)
	} else {
		w.values = gatherInto(w.values, v, sel, arrow.Int64Traits.CastFromBytes, 8)
	}
	if w.kind != statNone {
		w.stats.addInt(minMax(arrow.Int64Traits.CastFromBytes(w.values[at:])))
	}
}

func (w *leafWriter) appendFloat32(v []float32, sel []int32) {
	at := len(w.values)
	if sel == nil {
		w.values = append(w.values, arrow.Float32Traits.CastToBytes(v)...)
	} else {
		w.values = gatherInto(w.values, v, sel, arrow.Float32Traits.CastFromBytes, 4)
	}
	if w.kind != statNone {
		floatStats(&w.stats, arrow.Float32Traits.CastFromBytes(w.values[at:]))
	}
}

func (w *leafWriter) appendFloat64(v []float64, sel []int32) {
	at := len(w.values)
	if sel == nil {
		w.values = append(w.values, arrow.Float64Traits.CastToBytes(v)...)
	} else {
		w.values = gatherInto(w.values, v, sel, arrow.Float64Traits.CastFromBytes, 8)
	}
	if w.kind != statNone {
		floatStats(&w.stats, arrow.Float64Traits.CastFromBytes(w.values[at:]))
	}
}

// gatherInto appends the selected values, size bytes each.
func gatherInto[T any](dst []byte, v []T, sel []int32, cast func([]byte) []T, size int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, len(sel)*size)...)
	out := cast(dst[at:])[:len(sel)]
	for i, s := range sel {
		out[i] = v[s]
	}
	return dst
}

func minMax[T int32 | int64](v []T) (low, high T) {
	low, high = v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

// floatStats leaves NaN out, as the format asks.
func floatStats[T float32 | float64](x *extremes, v []T) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, f := range v {
		if f == f {
			low, high = min(low, float64(f)), max(high, float64(f))
		}
	}
	if low <= high {
		x.addFloat(low, high)
	}
}

func (w *leafWriter) appendDecimals(a *array.Decimal128, sel []int32) error {
	all := a.Values()
	n := len(sel)
	if sel == nil {
		n = len(all)
	}
	for j := range n {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		v := all[i]
		if w.physical == format.FixedLenByteArray {
			w.values = appendDecimal(w.values, v, w.length)
			w.stats.addDecimal(v)
			continue
		}
		low := int64(v.LowBits())
		if low>>63 != v.HighBits() {
			return fmt.Errorf("a value has more digits than %s", columnar.TypeName(w.typ))
		}
		w.values = binary.LittleEndian.AppendUint64(w.values, uint64(low))
		w.stats.addInt(low, low)
	}
	return nil
}

// appendTexts appends texts, as codes while a dictionary pays.
func (w *leafWriter) appendTexts(data []byte, offsets []int32, sel []int32) {
	n := len(sel)
	if sel == nil {
		n = len(offsets) - 1
	}
	for j := range n {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		w.appendText(data[offsets[i]:offsets[i+1]])
	}
}

func (w *leafWriter) appendText(v []byte) {
	if w.dict != nil {
		w.dict.codes = append(w.dict.codes, w.dict.code(v))
		return
	}
	w.values = binary.LittleEndian.AppendUint32(w.values, uint32(len(v)))
	w.values = append(w.values, v...)
	w.stats.addBytes(v)
}

// appendDictionary appends encoded texts: codes are translated, each text is looked
// up once per dictionary.
func (w *leafWriter) appendDictionary(d *array.Dictionary, sel []int32) error {
	values := d.Dictionary()
	var data []byte
	var offsets []int32
	switch v := values.(type) {
	case *array.String:
		data, offsets = textBytes(v.Data()), v.ValueOffsets()
	case *array.Binary:
		data, offsets = textBytes(v.Data()), v.ValueOffsets()
	default:
		return fmt.Errorf("bug: a dictionary of %s where %s was expected", values.DataType(), columnar.TypeName(w.typ))
	}
	codes := columnar.DictionaryCodes(d)
	n := len(sel)
	if sel == nil {
		n = d.Len()
	}
	var known []int32
	if w.dict != nil {
		known = w.dict.translation(values)
	}
	for j := range n {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		c := codes[i]
		v := data[offsets[c]:offsets[c+1]]
		if known == nil {
			w.appendText(v)
			continue
		}
		if known[c] < 0 {
			known[c] = w.dict.code(v)
		}
		w.dict.codes = append(w.dict.codes, known[c])
	}
	return nil
}

// A page is full at this many bytes of values or rows.
const (
	pageBytes = 512 << 10
	pageRows  = 128 << 10
)

// bytes is the memory of the chunk.
func (w *leafWriter) bytes() int64 {
	if w.leafMemory == nil {
		return 0
	}
	n := cap(w.defs) + cap(w.reps) + cap(w.values) + 4*cap(w.sel) + w.numbers.bytes() + w.texts.bytes()
	return int64(n) + w.pages.room()
}

// size is the bytes of the chunk so far.
func (w *leafWriter) size() int64 {
	if w.leafMemory == nil {
		return 0
	}
	n := w.pages.size + int64(len(w.values))
	if w.dict != nil {
		n += int64(len(w.dict.codes))*4 + int64(len(w.dict.plain))
	}
	return n
}
