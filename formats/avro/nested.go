package avro

import (
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

var errBranch = errors.New("it has a branch that its union has not")

// optional are values of a union that is one type or null.
type optional struct {
	vector
	value, none int64 // none is -1 if none is null
}

func (v *optional) read(c *cursor) {
	switch i := c.long(); {
	case i == v.value:
		v.vector.read(c)
	case i == v.none && i >= 0:
		v.null()
	default:
		c.fail(errBranch)
	}
}

// lists are arrays.
type lists struct {
	marks
	dt    arrow.DataType
	item  vector
	least int // the fewest bytes of an item
	n     int // items
	ends  []int32
}

func (v *lists) read(c *cursor) {
	for c.err == nil {
		n, _ := c.elements(v.least)
		if n == 0 {
			break
		}
		v.n += n
		for range n {
			if v.item.read(c); c.err != nil {
				return
			}
		}
	}
	v.ends = append(v.ends, int32(v.n))
	v.set()
}

func (v *lists) null() {
	v.ends = append(v.ends, int32(v.n))
	v.unset()
}

func (v *lists) finish(mem memory.Allocator) (arrow.Array, error) {
	item, err := v.item.finish(mem)
	if err != nil {
		return nil, err
	}
	valid, n, nulls := v.marks.finish(mem)
	offsets := copied(mem, v.ends)
	v.ends, v.n = v.ends[:1], 0
	return kernel.WrapList(v.dt, n, nulls, valid, offsets, item), nil
}

// pairs are the entries of maps, as the items of a list.
type pairs struct {
	dt         arrow.DataType
	key, value vector
	n          int
}

func (v *pairs) read(c *cursor) {
	v.key.read(c)
	v.value.read(c)
	v.n++
}

// null is not called: no entry is.
func (v *pairs) null() {}

func (v *pairs) finish(mem memory.Allocator) (arrow.Array, error) {
	key, err := v.key.finish(mem)
	if err != nil {
		return nil, err
	}
	value, err := v.value.finish(mem)
	if err != nil {
		key.Release()
		return nil, err
	}
	n := v.n
	v.n = 0
	return kernel.WrapStruct(v.dt, n, 0, nil, []arrow.Array{key, value}), nil
}

// step is what becomes of a field of a record.
type step struct {
	name string
	node *node
	into []vector // where its value goes; none: nowhere
}

// run decodes the fields of a record.
func run(steps []step, c *cursor) {
	for i := range steps {
		s := &steps[i]
		if len(s.into) == 0 {
			s.node.skip(c)
		} else {
			from := c.pos
			for _, v := range s.into {
				c.pos = from
				if v.read(c); c.err != nil {
					break
				}
			}
		}
		if c.err != nil {
			c.where(s.name)
			return
		}
	}
}

// records are records as values.
type records struct {
	marks
	dt     *arrow.StructType
	steps  []step
	fields []vector // of dt; nil: the file has none of the name
}

func (v *records) read(c *cursor) {
	if run(v.steps, c); c.err == nil {
		v.set()
	}
}

func (v *records) null() {
	for _, f := range v.fields {
		if f != nil {
			f.null()
		}
	}
	v.unset()
}

func (v *records) finish(mem memory.Allocator) (arrow.Array, error) {
	fields, err := finishAll(mem, v.dt.Fields(), v.fields, v.n)
	if err != nil {
		return nil, err
	}
	valid, n, nulls := v.marks.finish(mem)
	return kernel.WrapStruct(v.dt, n, nulls, valid, fields), nil
}

// finishAll makes columns of n rows; where there is no vector all are null.
func finishAll(mem memory.Allocator, fields []arrow.Field, vectors []vector, n int) ([]arrow.Array, error) {
	list := make([]arrow.Array, 0, len(vectors))
	var problem error
	for i, v := range vectors {
		if v == nil {
			list = append(list, columnar.Nulls(mem, fields[i].Type, n))
			continue
		}
		a, err := v.finish(mem)
		if err != nil {
			problem = &fieldError{fields[i].Name, err}
			break
		}
		list = append(list, a)
	}
	if problem != nil {
		releaseArrays(list)
		return nil, problem
	}
	return list, nil
}

func releaseArrays(list []arrow.Array) {
	for _, a := range list {
		a.Release()
	}
}

// fieldError is an error of the value of a field.
type fieldError struct {
	field string
	err   error
}

func (e *fieldError) Error() string { return e.field + ": " + e.err.Error() }
func (e *fieldError) Unwrap() error { return e.err }

// located is the field an error is in, with those on the way to it, and what is wrong there.
func located(err error) (field string, cause error) {
	var path []string
	for {
		f, ok := err.(*fieldError)
		if !ok {
			return strings.Join(path, "."), err
		}
		path, err = append(path, f.field), f.err
	}
}
