package parquet

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/bloom"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/expr"
)

// probe asks for one of some values in a column: without any of them in a row group, no
// row of it passes the filters.
type probe struct {
	leaf   int
	hashes []uint64
}

// withBloom leaves out the row groups whose bloom filters say that they have none of the
// values that the filters ask for. What is wrong with a bloom filter leaves nothing out.
func (m *fileMeta) withBloom(file codec.File, schema *arrow.Schema, req connector.ScanRequest, groups []int) []int {
	if len(req.Filters) == 0 || len(groups) == 0 {
		return groups
	}
	p := prober{schema: schema, find: m.finder(schema)}
	p.all(req.Filters)
	probes := p.list
	hasBloom := func(g int, p probe) bool { return m.footer.RowGroups[g].Columns[p.leaf].MetaData.BloomFilterOffset > 0 }
	if !slices.ContainsFunc(groups, func(g int) bool {
		return slices.ContainsFunc(probes, func(p probe) bool { return hasBloom(g, p) })
	}) {
		return groups
	}
	h, err := file.FS.Open(file.Path)
	if err != nil {
		return groups // reading it will say so
	}
	defer h.Close()
	return slices.DeleteFunc(groups, func(g int) bool {
		excluded := slices.ContainsFunc(probes, func(p probe) bool {
			return hasBloom(g, p) && lacksAll(h, m.footer.RowGroups[g].Columns[p.leaf].MetaData.BloomFilterOffset, p.hashes)
		})
		if excluded && req.Stats != nil {
			req.Stats.GroupsPruned.Add(1)
		}
		return excluded
	})
}

// bloomHeader is the most bytes that the header of a bloom filter has.
const bloomHeader = 64

// lacksAll says whether the bloom filter at an offset has none of the hashes.
func lacksAll(f io.ReaderAt, offset int64, hashes []uint64) bool {
	buf := make([]byte, bloomHeader)
	n, err := f.ReadAt(buf, offset)
	if err != nil && n == 0 {
		return false
	}
	length, err := checkThrift(buf[:n])
	if err != nil {
		return false
	}
	var header format.BloomFilterHeader
	var protocol thrift.CompactProtocol
	if err := thrift.NewDecoder(protocol.NewReaderFromBytes(buf[:length])).Decode(&header); err != nil {
		return false
	}
	_, splitBlock := header.Algorithm.Value.(*format.SplitBlockAlgorithm)
	_, xxHash := header.Hash.Value.(*format.XxHash)
	_, plain := header.Compression.Value.(*format.BloomFilterUncompressed)
	size := int64(header.NumBytes)
	if !splitBlock || !xxHash || !plain || size < bloom.BlockSize || size%bloom.BlockSize != 0 {
		return false
	}
	bits := io.NewSectionReader(f, offset+int64(length), size)
	for _, x := range hashes {
		if may, err := bloom.CheckSplitBlock(bits, size, x); may || err != nil {
			return false
		}
	}
	return true
}

// prober collects what filters ask for by equality.
type prober struct {
	schema *arrow.Schema
	find   func(column int) *node
	list   []probe
}

// all goes through filters. One that may be an error hides those behind it.
func (p *prober) all(filters []expr.Expr) {
	for _, f := range filters {
		if expr.IsFallible(f) {
			return
		}
		switch x := f.(type) {
		case *expr.Logic:
			if x.Op == expr.And {
				p.all(x.Args)
			}
		case *expr.In:
			p.isOneOf(x.Value, x.List)
		case *expr.Call:
			if x.Func.Name == "=" {
				p.isOneOf(x.Args[0], x.Args[1:])
				p.isOneOf(x.Args[1], x.Args[:1])
			}
		}
	}
}

// isOneOf notes that a column is one of some literals, if all of them can be looked for.
func (p *prober) isOneOf(column expr.Expr, values []expr.Expr) {
	r, ok := column.(*expr.Ref)
	if !ok || r.Index < 0 || r.Index >= p.schema.NumFields() {
		return
	}
	n := p.find(r.Index)
	if n == nil || n.kind != leafNode || n.err != nil || n.rep > 0 || !arrow.TypeEqual(n.typ, p.schema.Field(r.Index).Type) {
		return
	}
	found := probe{leaf: n.leaf}
	for _, v := range values {
		literal, ok := v.(*expr.Literal)
		if !ok || !arrow.TypeEqual(literal.Type(), n.typ) {
			return
		}
		if literal.IsNull() {
			continue // equal to nothing
		}
		stored, ok := storedBytes(n, literal.Value)
		if !ok {
			return
		}
		found.hashes = append(found.hashes, bloom.XXH64{}.Sum64(stored))
	}
	p.list = append(p.list, found)
}

// storedBytes is a value in the plain encoding, for the types whose values have one
// spelling: floats have several zeros and NaNs, and texts of fixed length are UUIDs.
func storedBytes(n *node, value arrow.Array) ([]byte, bool) {
	switch v := value.(type) {
	case *array.Int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Value(0))), n.physical == format.Int32
	case *array.Int64:
		if n.physical == format.Int64 {
			return binary.LittleEndian.AppendUint64(nil, uint64(v.Value(0))), true
		}
	case *array.String:
		return []byte(v.Value(0)), n.physical == format.ByteArray
	case *array.Binary:
		return v.Value(0), n.physical == format.ByteArray
	}
	return nil, false
}
