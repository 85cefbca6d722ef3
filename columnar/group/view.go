package group

import (
	"slices"

	"github.com/tidemill/tidemill/columnar/keyenc"
)

// View is a twin of a built RowTable for one more goroutine to probe: it shares the
// keys and rows and has scratch memory of its own. It is to be released, before t is.
func (t *RowTable) View() *RowTable {
	v := *t
	v.table = viewOf(t.table)
	v.res = reservation{}
	return &v
}

// viewOf is a Table with the keys of t, for Find only.
func viewOf(t Table) Table {
	switch t := t.(type) {
	case *textKey:
		v := *t
		v.table = t.table.view()
		return &v
	case *packedKey:
		v := *t
		v.res = reservation{}
		v.words = make([]uint64, len(t.words))
		v.columns = slices.Clone(t.columns)
		for i := range v.columns {
			c := &v.columns[i]
			c.ids, c.keys, c.src = nil, keyenc.Keys{}, source{}
			if c.text != nil {
				c.text = c.text.view()
			}
			if c.codec != nil {
				c.codec = newCodec(c.codec)
			}
		}
		return &v
	case *encodedKey:
		v := *t
		v.codec, v.keys = newCodec(t.codec), keyenc.Keys{}
		v.table = t.table.view()
		return &v
	}
	panic("bug: view of an unknown table")
}

// newCodec is another codec for the same types: a codec holds scratch memory.
func newCodec(c *keyenc.Codec) *keyenc.Codec {
	n, err := keyenc.New(c.Types(), nil)
	if err != nil {
		panic("bug: " + err.Error()) // it was made for these types before
	}
	return n
}

func (t *textTable) view() *textTable {
	v := *t
	v.res = reservation{}
	v.dict = dictCache{}
	return &v
}
