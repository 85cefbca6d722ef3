package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// vector collects the values of a column. Its memory is used again for each batch.
type vector interface {
	read(c *cursor) // takes the next value
	null()
	// finish makes the column of what was taken, and begins anew.
	finish(mem memory.Allocator) (arrow.Array, error)
}

// marks say which values are null.
type marks struct {
	n, nulls int
	bits     []byte // of nulls > 0: set where a value is there
}

func (m *marks) set() {
	if m.nulls > 0 {
		m.grow()
		m.bits[m.n>>3] |= 1 << (m.n & 7)
	}
	m.n++
}

func (m *marks) grow() {
	if m.n>>3 == len(m.bits) {
		m.bits = append(m.bits, 0)
	}
}

func (m *marks) unset() {
	if m.nulls == 0 {
		m.bits = m.bits[:0]
		for range m.n / 8 {
			m.bits = append(m.bits, 0xFF)
		}
		if rest := m.n % 8; rest > 0 {
			m.bits = append(m.bits, 1<<rest-1)
		}
	}
	m.grow()
	m.nulls++
	m.n++
}

// finish is the validity of n values, nil if none is null.
func (m *marks) finish(mem memory.Allocator) (valid *memory.Buffer, n, nulls int) {
	n, nulls = m.n, m.nulls
	if nulls > 0 {
		valid = copied(mem, m.bits)
	}
	m.n, m.nulls = 0, 0
	return valid, n, nulls
}

func copied[T any](mem memory.Allocator, list []T) *memory.Buffer {
	buf, out := kernel.Make[T](mem, len(list))
	copy(out, list)
	return buf
}

// fixed are values of one width.
type fixed[T any] struct {
	marks
	dt     arrow.DataType
	next   func(c *cursor) T
	values []T
}

func (v *fixed[T]) read(c *cursor) {
	v.values = append(v.values, v.next(c))
	v.set()
}

func (v *fixed[T]) null() {
	var zero T
	v.values = append(v.values, zero)
	v.unset()
}

func (v *fixed[T]) finish(mem memory.Allocator) (arrow.Array, error) {
	valid, n, nulls := v.marks.finish(mem)
	buf := copied(mem, v.values)
	v.values = v.values[:0]
	return kernel.Wrap(v.dt, n, nulls, valid, buf), nil
}

// booleans are packed in the end.
type booleans struct{ fixed[bool] }

func (v *booleans) finish(mem memory.Allocator) (arrow.Array, error) {
	valid, n, nulls := v.marks.finish(mem)
	buf, out := kernel.Make[byte](mem, (n+7)/8)
	clear(out)
	for i, b := range v.values {
		if b {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	v.values = v.values[:0]
	return kernel.Wrap(v.dt, n, nulls, valid, buf), nil
}

// texts are texts or bytes.
type texts struct {
	marks
	dt   arrow.DataType
	next func(c *cursor, dst []byte) []byte // appends the next value
	data []byte
	ends []int32 // behind a first 0
}

func newTexts(dt arrow.DataType, next func(c *cursor, dst []byte) []byte) *texts {
	return &texts{dt: dt, next: next, ends: []int32{0}}
}

func (v *texts) read(c *cursor) {
	v.data = v.next(c, v.data)
	if len(v.data) > math.MaxInt32 {
		c.fail(errTooMuchText)
	}
	v.ends = append(v.ends, int32(len(v.data)))
	v.set()
}

func (v *texts) null() {
	v.ends = append(v.ends, int32(len(v.data)))
	v.unset()
}

func (v *texts) finish(mem memory.Allocator) (arrow.Array, error) {
	valid, n, nulls := v.marks.finish(mem)
	offsets, data := copied(mem, v.ends), copied(mem, v.data)
	v.ends, v.data = v.ends[:1], v.data[:0]
	return kernel.Wrap(v.dt, n, nulls, valid, offsets, data), nil
}

// nothings are values of the type null, which fit every type.
type nothings struct {
	dt arrow.DataType
	n  int
}

func (v *nothings) read(*cursor) { v.n++ }
func (v *nothings) null()        { v.n++ }

func (v *nothings) finish(mem memory.Allocator) (arrow.Array, error) {
	n := v.n
	v.n = 0
	return columnar.Nulls(mem, v.dt, n), nil
}

// widened are values of a type that another one holds.
type widened struct {
	vector
	to arrow.DataType
}

func (v *widened) finish(mem memory.Allocator) (arrow.Array, error) {
	a, err := v.vector.finish(mem)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	return kernel.Cast(mem, a, v.to, kernel.CastOptions{})
}

// narrow is an int that its schema says is smaller.
func narrow[T int8 | int16](c *cursor) T {
	v := c.int()
	if int32(T(v)) != v {
		c.fail(errNarrow)
	}
	return T(v)
}

var errNarrow = errors.New("a number in it is too large for the type that its schema says")

var errTooMuchText = errors.New("it has more than 2 GiB of text in one batch")

var errText = errors.New("a text of it is not UTF-8")

func nextBytes(c *cursor, dst []byte) []byte { return append(dst, c.bytes()...) }

func checked(next func(c *cursor, dst []byte) []byte) func(c *cursor, dst []byte) []byte {
	return func(c *cursor, dst []byte) []byte {
		from := len(dst)
		dst = next(c, dst)
		if !utf8.Valid(dst[from:]) {
			c.fail(errText)
		}
		return dst
	}
}

func nextFixed(size int) func(c *cursor, dst []byte) []byte {
	return func(c *cursor, dst []byte) []byte { return append(dst, c.next(size)...) }
}

func nextUUID(c *cursor, dst []byte) []byte {
	id, err := uuid.FromBytes(c.next(uuidSize))
	if err != nil {
		return dst // it is cut off, which the cursor knows
	}
	text, _ := id.MarshalText() // has no error
	return append(dst, text...)
}

func nextSymbol(symbols []string) func(c *cursor, dst []byte) []byte {
	return func(c *cursor, dst []byte) []byte {
		i := c.long()
		if i < 0 || i >= int64(len(symbols)) {
			c.fail(fmt.Errorf("it has symbol %d of %d", i, len(symbols)))
			return dst
		}
		c.symbols += len(symbols[i])
		return append(dst, symbols[i]...)
	}
}

// newDecimals reads two's complements, the first byte first, of at most so many digits.
func newDecimals(n *node) vector {
	t := n.typ.(*arrow.Decimal128Type)
	return &fixed[decimal128.Num]{dt: t, next: func(c *cursor) decimal128.Num {
		var p []byte
		if n.kind == kindFixed {
			p = c.next(n.size)
		} else {
			p = c.bytes()
		}
		v, ok := bigEndian(p)
		if !ok || !fits(v, t.Precision) {
			c.fail(fmt.Errorf("a value of it has more than %d digits", t.Precision))
		}
		return v
	}}
}

// fits says whether a number has at most so many digits. (FitsInPrecision takes the least
// number of 128 bits for one that has.)
func fits(v decimal128.Num, precision int32) bool {
	limit := decimal128.GetScaleMultiplier(int(precision))
	return v.Less(limit) && limit.Negate().Less(v)
}

// bigEndian is a number of any length; ok is false if it has more than 128 bits.
func bigEndian(p []byte) (v decimal128.Num, ok bool) {
	var raw [16]byte
	sign := byte(0)
	if len(p) > 0 && p[0] >= 0x80 {
		sign = 0xFF
	}
	for ; len(p) > len(raw); p = p[1:] {
		if p[0] != sign || p[1]&0x80 != sign&0x80 {
			return v, false
		}
	}
	for i := range raw {
		raw[i] = sign
	}
	copy(raw[len(raw)-len(p):], p)
	return decimal128.New(int64(binary.BigEndian.Uint64(raw[:8])), binary.BigEndian.Uint64(raw[8:])), true
}

// durations reads months, days and milliseconds, which have no sign.
func durations(c *cursor) (v arrow.MonthDayNanoInterval) {
	p := c.next(durationSize)
	if p == nil {
		return v
	}
	months, days := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[4:])
	if months > math.MaxInt32 || days > math.MaxInt32 {
		c.fail(errors.New("a duration of it is out of range of INTERVAL"))
	}
	v.Months, v.Days = int32(months), int32(days)
	v.Nanoseconds = int64(binary.LittleEndian.Uint32(p[8:])) * int64(time.Millisecond)
	return v
}

// timeOfDay checks that microseconds are a TIME.
func timeOfDay(c *cursor, us int64) int64 {
	if us < 0 || us >= columnar.MicrosPerDay {
		c.fail(fmt.Errorf("a time of day of it, %d µs, is out of range of TIME", us))
	}
	return us
}

// times reads a number of units as microseconds; local ones are wall clocks of zone.
func times(unit string, zone *time.Location) func(c *cursor) int64 {
	var next func(c *cursor) int64
	switch unit {
	case "millis":
		next = func(c *cursor) int64 {
			v := c.long()
			high, low := bits.Mul64(magnitude(v), 1000)
			if high > 0 || low > math.MaxInt64 {
				c.fail(fmt.Errorf("a time of it, %d ms, is out of range of TIMESTAMP", v))
			}
			return v * 1000
		}
	case "nanos":
		next = func(c *cursor) int64 { return columnar.FloorDiv(c.long(), 1000) }
	default:
		next = (*cursor).long
	}
	if columnar.IsUTC(zone) {
		return next
	}
	return func(c *cursor) int64 { return columnar.FromLocal(next(c), zone) }
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
