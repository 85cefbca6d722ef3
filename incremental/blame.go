package incremental

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// blame remembers what failed of the rows a sink was given: a source, a function. A sink
// puts its name before every error, that one too.
type blame struct{ err error }

// watch is r, of which errors are remembered.
func (b *blame) watch(r columnar.Reader) columnar.Reader { return &blamedReader{r, b} }

// watchSides watches the rows beside the output.
func (b *blame) watchSides(side func() ([]connector.SideOutput, error)) func() ([]connector.SideOutput, error) {
	return func() ([]connector.SideOutput, error) {
		sides, err := side()
		b.note(err)
		for i := range sides {
			sides[i].Data = b.watch(sides[i].Data)
		}
		return sides, err
	}
}

func (b *blame) note(err error) {
	if b.err == nil && err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
}

// of is err of the sink, or what failed before it where that is the reason.
func (b *blame) of(err error) error {
	if b.err != nil && errors.Is(err, b.err) {
		return b.err
	}
	return err
}

type blamedReader struct {
	columnar.Reader
	b *blame
}

func (r *blamedReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	b, err := r.Reader.Next(ctx)
	r.b.note(err)
	return b, err
}
