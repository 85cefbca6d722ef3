package function

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// InProportion is how many bytes a call may make beside what it is given before they are
// counted.
const InProportion = 1 << 20

// room reserves what a call has made, n bytes so far, or is about to have made, as far as it
// is out of proportion to its arguments. A refusal is the call's error.
func (c *call) room(n int64) error {
	more := n - InProportion - c.charged
	if c.env.Charge == nil || more <= 0 {
		return nil
	}
	if err := c.env.Charge(more); err != nil {
		return err
	}
	c.charged += more
	return nil
}

// ResultRoom is how many bytes the values of groups have that are in no proportion to what the
// accumulator holds.
func ResultRoom(a Accumulator, groups []uint32) int64 {
	if r, ok := a.(interface{ resultRoom(groups []uint32) int64 }); ok {
		return max(r.resultRoom(groups)-InProportion, 0)
	}
	return 0
}

// add appends a piece of a value that may become far longer than its pieces: room for it is
// reserved before its memory is taken. It is for the functions given to text.
func (c *call) add(dst, piece []byte) ([]byte, error) {
	if n := len(dst) + len(piece); n > cap(dst) && n > c.given {
		if err := c.room(int64(n - c.given)); err != nil {
			return dst, err
		}
	}
	return append(dst, piece...), nil
}

// argumentBytes is about how much memory the arguments take.
func (c *call) argumentBytes() int64 {
	n := int64(0)
	for _, a := range c.args {
		n += columnar.DataBytes(a.Array().Data())
	}
	return n
}

// Broadcast is d as a column of rows values, if there is room for a constant that often. The
// caller releases it.
func (e *Env) Broadcast(d columnar.Datum, rows int) (arrow.Array, error) {
	if d.IsConstant() && e.Charge != nil {
		if n := columnar.DataBytes(d.Array().Data())*int64(rows) - InProportion; n > 0 {
			if err := e.Charge(n); err != nil {
				return nil, err
			}
		}
	}
	return columnar.Broadcast(e.Mem, d, rows), nil
}

// stopped is the error of a query that is over; nil while it goes on.
func (c *call) stopped() error {
	if c.env.Stop == nil {
		return nil
	}
	return c.env.Stop()
}

// take is kernel.Take of as much as there is room for.
func (c *call) take(a arrow.Array, rows []int32) (arrow.Array, error) {
	if err := c.roomToTake(len(rows), func() int64 { return columnar.TakenBytes(a, rows) }, a); err != nil {
		return nil, err
	}
	return kernel.Take(c.env.Mem, a, rows)
}

// gather is kernel.Gather of as much as there is room for.
func (c *call) gather(sources []arrow.Array, refs []kernel.Ref) (arrow.Array, error) {
	if err := c.roomToTake(len(refs), func() int64 { return kernel.GatheredBytes(sources, refs) }, sources...); err != nil {
		return nil, err
	}
	return kernel.Gather(c.env.Mem, sources, refs)
}

// roomToTake reserves what taken says, as far as it is more than twice the values that it is
// taken from.
func (c *call) roomToTake(rows int, taken func() int64, from ...arrow.Array) error {
	own := int64(0)
	for _, a := range from {
		own += columnar.DataBytes(a.Data())
	}
	if own*int64(rows) <= InProportion {
		return nil
	}
	return c.room(taken() - 2*own)
}
