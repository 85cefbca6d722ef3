package physical

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// Input is a plan without children whose Readers come from a function: rows that are
// made elsewhere.
type Input struct {
	Name   string
	schema *arrow.Schema
	open   func(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error)
}

// NewInput makes a plan of open, which keeps the promises of Plan.Open.
func NewInput(name string, schema *arrow.Schema, open func(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error)) *Input {
	return &Input{name, schema, open}
}

func (p *Input) Schema() *arrow.Schema { return p.schema }

// Children is nothing.
func (p *Input) Children() []Plan { return nil }

// WithChildren returns p.
func (p *Input) WithChildren([]Plan) Plan { return p }

func (p *Input) String() string { return args("Input", "name", p.Name) }

// Open calls the function.
func (p *Input) Open(ctx context.Context, ec *ExecContext, n int) ([]columnar.Reader, error) {
	return p.open(ctx, ec, n)
}
