package function

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// call is one evaluation of a function over rows. Kernels built with onRows see
// columns and constants, but never constants alone.
type call struct {
	env    *Env
	args   []columnar.Datum
	rows   int
	active *columnar.Bitmap
	out    arrow.DataType

	charged int64 // bytes, see room
	given   int   // bytes of a text that are in proportion to the arguments, while text makes it
}

// onRows makes a Kernel of a function that returns a column of rows values, of type
// out: if all arguments are constants it is run for one row, and the result is a
// constant. A null constant among the arguments makes the result null without a call.
func onRows(out arrow.DataType, f func(c *call) (arrow.Array, error)) Kernel {
	return kernelOf(out, false, f)
}

// onAllRows is onRows for functions that see nulls themselves.
func onAllRows(out arrow.DataType, f func(c *call) (arrow.Array, error)) Kernel {
	return kernelOf(out, true, f)
}

func kernelOf(out arrow.DataType, nullSafe bool, f func(c *call) (arrow.Array, error)) Kernel {
	return func(env *Env, args []columnar.Datum, rows int, active *columnar.Bitmap) (columnar.Datum, error) {
		constant := len(args) > 0
		for _, a := range args {
			constant = constant && a.IsConstant()
			if a.IsNullConstant() && !nullSafe {
				return columnar.NullConstant(env.Mem, out), nil
			}
		}
		if !constant {
			a, err := f(&call{env: env, args: args, rows: rows, active: active, out: out})
			return columnar.ColumnDatum(a), err
		}
		if noneActive(rows, active) {
			return columnar.NullConstant(env.Mem, out), nil
		}
		single := make([]columnar.Datum, len(args))
		for i, a := range args {
			single[i] = columnar.ColumnDatum(a.Array())
		}
		a, err := f(&call{env: env, args: single, rows: 1, out: out})
		if err != nil {
			return columnar.Datum{}, err
		}
		return columnar.ConstantDatum(a), nil
	}
}

// validity is the rows where no argument is null; nil if there are all.
func (c *call) validity() (*memory.Buffer, int) {
	return kernel.AndValidity(c.env.Mem, c.rows, c.args...)
}

// mode is how kernels treat failures of this call.
func (c *call) mode(try bool) kernel.Mode { return kernel.Mode{Active: c.active, Try: try} }

func isSet(bits *memory.Buffer, i int) bool {
	return bits == nil || bits.Bytes()[i>>3]>>(i&7)&1 != 0
}

// text makes a VARCHAR or BINARY column: f appends the value of a row whose arguments
// are not null, or returns an error, which counts if the row does. size is about the
// number of bytes of all. The call of f costs little beside the work on bytes.
func (c *call) text(size int, f func(dst []byte, i int) ([]byte, error)) (arrow.Array, error) {
	c.given = int(2 * c.argumentBytes())
	if err := c.room(int64(size - c.given)); err != nil {
		return nil, err
	}
	valid, nulls := c.validity()
	w := kernel.NewTextWriter(c.env.Mem, c.rows, size)
	for i := range c.rows {
		if isSet(valid, i) {
			from := len(w.Data)
			d, err := f(w.Data, i)
			switch {
			case err == nil:
				w.Data = d
				if c.given < len(w.Data) {
					err = c.room(int64(len(w.Data) - c.given))
				}
				if err == nil && i%256 == 255 {
					err = c.stopped()
				}
				if err != nil {
					w.Release()
					releaseBuffer(valid)
					return nil, err
				}
			case c.active.Get(i):
				w.Release()
				releaseBuffer(valid)
				return nil, err
			default:
				w.Data = w.Data[:from]
			}
		}
		w.End()
	}
	return w.Finish(c.out, valid, nulls)
}

// nullableText is text for functions that give null for some rows: f says so.
func (c *call) nullableText(size int, f func(dst []byte, i int) ([]byte, bool)) (arrow.Array, error) {
	given := int(2 * c.argumentBytes())
	if err := c.room(int64(size - given)); err != nil {
		return nil, err
	}
	valid, _ := c.validity()
	w := kernel.NewTextWriter(c.env.Mem, c.rows, size)
	var known columnar.Bitmap
	known.Reset(c.rows)
	for i := range c.rows {
		if isSet(valid, i) {
			from := len(w.Data)
			d, ok := f(w.Data, i)
			if ok {
				w.Data = d
				known.Set(i)
			} else {
				w.Data = w.Data[:from]
			}
			if given < len(w.Data) {
				if err := c.room(int64(len(w.Data) - given)); err != nil {
					w.Release()
					releaseBuffer(valid)
					return nil, err
				}
			}
		}
		w.End()
	}
	releaseBuffer(valid)
	valid, nulls := validityOfBitmap(c.env.Mem, &known)
	return w.Finish(c.out, valid, nulls)
}

// validityOfBitmap is a bitmap as the validity of a column.
func validityOfBitmap(mem memory.Allocator, b *columnar.Bitmap) (*memory.Buffer, int) {
	nulls := b.Len() - b.Count()
	if nulls == 0 {
		return nil, 0
	}
	marks := kernel.Booleans(mem, b, b.Len())
	defer marks.Release()
	buf := marks.Data().Buffers()[1]
	buf.Retain()
	return buf, nulls
}

func releaseBuffer(b *memory.Buffer) {
	if b != nil {
		b.Release()
	}
}

// fixedRows makes a column of fixed width: f gives the value of a row whose arguments
// are not null.
func fixedRows[T any](c *call, f func(i int) T) (arrow.Array, error) {
	valid, nulls := c.validity()
	buf, out := kernel.Make[T](c.env.Mem, c.rows)
	var zero T
	for i := range out {
		out[i] = zero
		if isSet(valid, i) {
			out[i] = f(i)
		}
	}
	return kernel.Wrap(c.out, c.rows, nulls, valid, buf), nil
}

// fallibleRows is fixedRows for functions that may fail for some rows.
func fallibleRows[T any](c *call, f func(i int) (T, error)) (arrow.Array, error) {
	var failed error
	a, _ := fixedRows(c, func(i int) T {
		v, err := f(i)
		if err != nil && failed == nil && c.active.Get(i) {
			failed = err
		}
		return v
	})
	if failed != nil {
		a.Release()
		return nil, failed
	}
	return a, nil
}

// rowsOrNull is fallibleRows, or with try null for rows of which f is an error.
func rowsOrNull[T any](c *call, try bool, f func(i int) (T, error)) (arrow.Array, error) {
	if !try {
		return fallibleRows(c, f)
	}
	return nullableRows(c, func(i int) (T, bool) {
		v, err := f(i)
		return v, err == nil
	})
}

// nullableRows is fixedRows for functions that give null for some rows: f says so.
func nullableRows[T any](c *call, f func(i int) (T, bool)) (arrow.Array, error) {
	valid, _ := c.validity()
	buf, out := kernel.Make[T](c.env.Mem, c.rows)
	var known columnar.Bitmap
	known.Reset(c.rows)
	var zero T
	for i := range out {
		out[i] = zero
		if isSet(valid, i) {
			if v, ok := f(i); ok {
				out[i] = v
				known.Set(i)
			}
		}
	}
	releaseBuffer(valid)
	valid, nulls := validityOfBitmap(c.env.Mem, &known)
	return kernel.Wrap(c.out, c.rows, nulls, valid, buf), nil
}

// someRows is nullableRows for functions that may fail for some rows too.
func someRows[T any](c *call, f func(i int) (T, bool, error)) (arrow.Array, error) {
	var failed error
	a, _ := nullableRows(c, func(i int) (T, bool) {
		v, ok, err := f(i)
		if err != nil && failed == nil && c.active.Get(i) {
			failed = err
		}
		return v, ok
	})
	if failed != nil {
		a.Release()
		return nil, failed
	}
	return a, nil
}

// boolRows makes a BOOLEAN column: f gives the value of a row whose arguments are not
// null.
func (c *call) boolRows(f func(i int) bool) (arrow.Array, error) {
	valid, nulls := c.validity()
	var b columnar.Bitmap
	b.Reset(c.rows)
	for i := range c.rows {
		if isSet(valid, i) && f(i) {
			b.Set(i)
		}
	}
	marks := kernel.Booleans(c.env.Mem, &b, c.rows)
	defer marks.Release()
	buf := marks.Data().Buffers()[1]
	buf.Retain()
	return kernel.Wrap(columnar.Boolean, c.rows, nulls, valid, buf), nil
}

// numbers reads a numeric argument row by row.
type numbers[T any] struct {
	values []T
	mask   int
}

func numbersOf[T any](d columnar.Datum) numbers[T] {
	return numbers[T]{kernel.Values[T](d.Array()), kernel.RowMask(d)}
}

func (n numbers[T]) at(i int) T { return n.values[i&n.mask] }

// constantText is the text of a literal argument, if it is one and not null.
func constantText(constants []arrow.Array, i int) (string, bool) {
	return constantValue[string](constants, i)
}
