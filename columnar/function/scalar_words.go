package function

import (
	"bytes"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// wordScalars are further functions on VARCHAR.
func wordScalars() []*Scalar {
	return []*Scalar{
		define("find_in_set", "The place, from 1, of a text in a list of texts with commas between them; 0 if it is not there or has a comma.", "find_in_set('b', 'a,b,c') = 2", []Matcher{varchar, varchar}, columnar.Int32, func(c *call) (arrow.Array, error) {
			word, list := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
			return fixedRows(c, func(i int) int32 { return findInSet(word.At(i), list.At(i)) })
		}),
		formatNumberScalar(),
		define("format_bytes", "A number of bytes in units of 1024.", "format_bytes(1536) = 1.5 KiB", []Matcher{bigint}, columnar.String, func(c *call) (arrow.Array, error) {
			in := numbersOf[int64](c.args[0])
			return c.text(c.rows*10, func(dst []byte, i int) ([]byte, error) { return appendByteSize(dst, in.at(i)), nil })
		}, "formatreadablesize"),
		define("bit_length", "Number of bits of a text or BINARY.", "bit_length('abc') = 24", []Matcher{textType}, columnar.Int32, func(c *call) (arrow.Array, error) {
			in := kernel.TextsOf(c.args[0])
			return fixedRows(c, func(i int) int32 { return int32(len(in.At(i)) * 8) })
		}),
		define("string_split", "The parts of a text between occurrences of a separator, as an array; with an empty separator its characters.", "string_split('a|b', '|') = [\"a\",\"b\"]", []Matcher{varchar, varchar}, columnar.ListOf(columnar.String), func(c *call) (arrow.Array, error) {
			in, separator := kernel.TextsOf(c.args[0]), kernel.TextsOf(c.args[1])
			return c.textLists(func(i int) [][]byte { return bytes.Split(in.At(i), separator.At(i)) })
		}, "str_split", "string_to_array"),
		regexpAllScalar(), regexpInstrScalar(),
		bytesOfText("regexp_escape", "The text as a regular expression that matches it alone.", "regexp_escape('a.b') = a\\.b", func(dst, s []byte) []byte {
			for _, b := range s {
				word := b >= 0x80 || b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
				if !word {
					dst = append(dst, '\\')
				}
				dst = append(dst, b)
			}
			return dst
		}),
		eltScalar(), printfScalar(), uuidScalar(),
	}
}

func findInSet(word, list []byte) int32 {
	if bytes.IndexByte(word, ',') >= 0 {
		return 0
	}
	for n := int32(1); ; n++ {
		first, rest, more := bytes.Cut(list, []byte{','})
		if bytes.Equal(first, word) {
			return n
		}
		if !more {
			return 0
		}
		list = rest
	}
}

func appendByteSize(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
	}
	v := magnitude(n)
	switch v {
	case 1:
		return append(dst, "1 byte"...)
	}
	if v < 1024 {
		return append(strconv.AppendUint(dst, v, 10), " bytes"...)
	}
	unit := 0
	for v>>(10*(unit+1)) >= 1024 {
		unit++
	}
	tenths := (v >> (10 * unit)) * 10 / 1024 // cut, as others do
	dst = strconv.AppendUint(dst, tenths/10, 10)
	dst = append(dst, '.', byte('0'+tenths%10), ' ', "KMGTPE"[unit])
	return append(dst, "iB"...)
}

// textLists makes an ARRAY<VARCHAR> column: f gives the texts of a row whose arguments
// are not null.
func (c *call) textLists(f func(i int) [][]byte) (arrow.Array, error) {
	valid, nulls := c.validity()
	buf, ends := kernel.Make[int32](c.env.Mem, c.rows+1)
	var texts [][]byte
	given := 2 * c.argumentBytes()
	size := 0
	ends[0] = 0
	for i := range c.rows {
		if isSet(valid, i) {
			texts = append(texts, f(i)...)
		}
		if err := c.room(bytesOfElement*int64(len(texts)) - given); err != nil {
			releaseBuffer(valid)
			buf.Release()
			return nil, err
		}
		ends[i+1] = int32(len(texts))
	}
	for _, s := range texts {
		size += len(s)
	}
	w := kernel.NewTextWriter(c.env.Mem, len(texts), size)
	for _, s := range texts {
		w.Data = append(w.Data, s...)
		w.End()
	}
	child, err := w.Finish(columnar.String, nil, 0)
	if err != nil {
		releaseBuffer(valid)
		buf.Release()
		return nil, err
	}
	return kernel.WrapList(c.out, c.rows, nulls, valid, buf, child), nil
}

// regexpAllScalar is regexp_extract_all(text, pattern [, group]).
func regexpAllScalar() *Scalar {
	run := func(c *call) (arrow.Array, error) {
		t, n := c.textsAndInts()
		cache := newCompiled(compileRegexp)
		var failed error
		a, err := c.textLists(func(i int) [][]byte {
			re, err := cache.get(t[1].At(i), "")
			group := int64(0)
			if err == nil {
				group = int64(min(1, re.NumSubexp()))
				if len(n) > 0 {
					group = n[0].at(i)
				}
				err = checkGroup(group, re.NumSubexp())
			}
			if err != nil {
				if failed == nil && c.active.Get(i) {
					failed = err
				}
				return nil
			}
			var found [][]byte
			for _, m := range re.FindAllSubmatch(t[0].At(i), -1) {
				found = append(found, m[group])
			}
			return found
		})
		if failed != nil && err == nil {
			a.Release()
			return nil, failed
		}
		return a, err
	}
	s := defineFallible("regexp_extract_all", "What a group of a regular expression matched, everywhere in a text, as an array: the first group if none is named, all if there are no groups.", "regexp_extract_all('a1b22', '[0-9]+') = [\"1\",\"22\"]", []Matcher{varchar, varchar}, columnar.ListOf(columnar.String), run)
	return groupChecked(s.alsoFor([]Matcher{varchar, varchar, bigint}, columnar.ListOf(columnar.String), run))
}

func regexpInstrScalar() *Scalar {
	return groupChecked(defineFallible("regexp_instr", "The place, in characters from 1, where a regular expression first matches in a text; 0 if it does not.", "regexp_instr('ab12', '[0-9]') = 3", []Matcher{varchar, varchar}, columnar.Int32, func(c *call) (arrow.Array, error) {
		t, _ := c.textsAndInts()
		cache := newCompiled(compileRegexp)
		return fallibleRows(c, func(i int) (int32, error) {
			re, err := cache.get(t[1].At(i), "")
			if err != nil {
				return 0, err
			}
			at := re.FindIndex(t[0].At(i))
			if at == nil {
				return 0, nil
			}
			return int32(len([]rune(string(t[0].At(i)[:at[0]])))) + 1, nil
		})
	}))
}

// eltScalar is the n-th of its other arguments.
func eltScalar() *Scalar {
	return &Scalar{Name: "elt", Doc: "The argument whose number, from 1, is the first argument; null if there is none.", Example: "elt(2, 'a', 'b') = b", Overloads: []Overload{{
		Args: []Matcher{bigint, varchar}, Variadic: true, Result: always(columnar.String), NullSafe: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onAllRows(columnar.String, func(c *call) (arrow.Array, error) {
				n := numbersOf[int64](c.args[0])
				return c.choose(c.args[1:], func(i int) int {
					k := n.at(i)
					if c.isNull(0, i) || k < 1 || k >= int64(len(c.args)) {
						return -1
					}
					return int(k - 1)
				})
			}), nil
		},
	}}}
}

// uuidScalar draws from the batch's seed: running a batch again gives the same.
func uuidScalar() *Scalar {
	return &Scalar{Name: "uuid", Aliases: []string{"gen_random_uuid", "uuidv4"}, Doc: "A random UUID (version 4) as text; other for each row, the same when a batch is run again.", Example: "length(uuid()) = 36", Overloads: []Overload{{
		Result: always(columnar.String), Volatility: Volatile, Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return func(env *Env, _ []columnar.Datum, rows int, _ *columnar.Bitmap) (columnar.Datum, error) {
				drawn := env.draws(env.Salt)
				w := kernel.NewTextWriter(env.Mem, rows, rows*36)
				for i := range rows {
					id := uuid.UUID(drawn.bytes16(i))
					id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
					w.Data = append(w.Data, id.String()...)
					w.End()
				}
				a, err := w.Finish(columnar.String, nil, 0)
				if err != nil {
					return columnar.Datum{}, err
				}
				return columnar.ColumnDatum(a), nil
			}, nil
		},
	}}}
}
