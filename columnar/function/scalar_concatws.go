package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// concatWSScalar joins with a separator and passes nulls over, also those in arrays.
func concatWSScalar() *Scalar {
	texts := matcher{"any", func(a arrow.DataType) (arrow.DataType, int, bool) {
		if l, ok := a.(*arrow.ListType); ok {
			return columnar.ListOf(columnar.String), 0, !columnar.IsNested(l.Elem())
		}
		return columnar.String, 0, !columnar.IsNested(a)
	}}
	form := func(args []Matcher, variadic bool) Overload {
		return Overload{
			Args: args, Variadic: variadic, Result: always(columnar.String), NullSafe: true,
			Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
				return onAllRows(columnar.String, (*call).joined), nil
			},
		}
	}
	return &Scalar{Name: "concat_ws", Doc: "The values as text with the first argument between them, of arrays their elements; nulls are passed over.", Example: "concat_ws('-', 'a', NULL, 'b') = a-b", Overloads: []Overload{
		form([]Matcher{varchar, texts}, true), form([]Matcher{varchar}, false),
	}}
}

// joined is the arguments behind the first, with that between them.
func (c *call) joined() (arrow.Array, error) {
	separator, given := kernel.TextsOf(c.args[0]), 2*c.argumentBytes()
	w := kernel.NewTextWriter(c.env.Mem, c.rows, c.rows*16)
	var known columnar.Bitmap
	kernel.MarkValid(&known, c.args[0], c.rows)
	parts := make([]func(i int, add func(text []byte)), len(c.args)-1)
	for k := range parts {
		parts[k] = c.textsOf(k + 1)
	}
	for i := range c.rows {
		first := true
		add := func(text []byte) {
			if !first {
				w.Data = append(w.Data, separator.At(i)...)
			}
			w.Data = append(w.Data, text...)
			first = false
		}
		for _, each := range parts {
			if known.Get(i) {
				each(i, add)
			}
		}
		w.End()
		if err := c.room(int64(len(w.Data)) - given); err != nil {
			w.Release()
			return nil, err
		}
	}
	valid, nulls := validityOfBitmap(c.env.Mem, &known)
	return w.Finish(columnar.String, valid, nulls)
}

// textsOf gives the texts of argument k in row i that are not null: one, or those of an array.
func (c *call) textsOf(k int) func(i int, add func(text []byte)) {
	if c.args[k].Type().ID() != arrow.LIST {
		texts := kernel.TextsOf(c.args[k])
		return func(i int, add func(text []byte)) {
			if !c.isNull(k, i) {
				add(texts.At(i))
			}
		}
	}
	l := kernel.ListsOf(c.args[k])
	texts := kernel.TextsOf(columnar.ColumnDatum(l.Child))
	return func(i int, add func(text []byte)) {
		if c.isNull(k, i) {
			return
		}
		for j, to := l.At(i); j < to; j++ {
			if !columnar.IsNull(l.Child, j) {
				add(texts.At(j))
			}
		}
	}
}
