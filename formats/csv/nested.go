package csv

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/cells"
	"github.com/tidemill/tidemill/formats/json"
)

// readable says whether a field can be read as a value of dt: a plain value, or a
// nested one written as JSON.
func readable(dt arrow.DataType) bool {
	return cells.Readable(dt) || columnar.IsNested(dt) && json.Readable(dt)
}

func (sc *scan) newColumn(dt arrow.DataType) (column, error) {
	if !columnar.IsNested(dt) {
		return cells.NewColumn(sc.req.Mem, dt, sc.rules)
	}
	values, err := json.NewValues(sc.req.Mem, dt, sc.opts.Location)
	if err != nil {
		return nil, err
	}
	if sc.rescues {
		values.Rescue()
	}
	return &nested{values: values, rules: sc.rules}, nil
}

// nested is a column of ARRAY, STRUCT or MAP values, which CSV holds as JSON text.
type nested struct {
	values *json.Values
	rules  *cells.Rules
	text   []byte
	bad    []int32
}

func (c *nested) Append(buf []byte, list []cells.Cell) (bad []int32) {
	c.bad = c.bad[:0]
	for i, cell := range list {
		c.text, _ = c.rules.AppendText(c.text[:0], buf, cell)
		if len(columnar.TrimBlanks(c.text)) == 0 {
			c.values.AppendNull()
		} else if !c.values.Append(c.text) {
			c.bad = append(c.bad, int32(i))
		}
	}
	return c.bad
}

// rescue adds to x what the column did not take of a cell.
func (c *nested) rescue(x *codec.Rescued, name string, buf []byte, cell cells.Cell) {
	c.text, _ = c.rules.AppendText(c.text[:0], buf, cell)
	switch rest, isJSON := c.values.Rest(c.text); {
	case !isJSON:
		x.AddText(name, c.text)
	case rest != nil:
		x.Add(name, func(dst []byte) []byte { return append(dst, rest...) })
	}
}

func (c *nested) Truncate(n int)       { c.values.Truncate(n) }
func (c *nested) Len() int             { return c.values.Len() }
func (c *nested) Nulls() int           { return c.values.Nulls() }
func (c *nested) TextBytes() int       { return c.values.TextBytes() }
func (c *nested) Type() arrow.DataType { return c.values.Type() }
func (c *nested) Finish() arrow.Array  { return c.values.Finish() }
func (c *nested) Release()             { c.values.Release() }
