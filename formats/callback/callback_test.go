package callback

import (
	"context"
	"errors"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

func TestSink(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, func(*testing.T) connectortest.SinkCase {
		return connectortest.SinkCase{Forgets: true, Open: func(*testing.T, int64) connector.Sink {
			return New(func(ctx context.Context, _ int64, rows columnar.Reader) error {
				for _, err := range columnar.All(ctx, rows) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		}}
	})
}

// A function that reads nothing, or swallows an error, changes nothing for the query.
func TestLazyFunc(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	b := columnartest.Batch(t, mem, "v:bigint\n1\n2\n")
	calls := 0
	s := New(func(_ context.Context, id int64, rows columnar.Reader) error {
		calls++
		return rows.Close()
	})
	st, err := s.Stage(t.Context(), connector.SinkBatch{ID: 3, Data: columnar.FromBatches(b.Schema(), b)})
	if err != nil || st.Rows() != 2 || calls != 1 {
		t.Errorf("%v, %d calls", err, calls)
	}
	errInput := errors.New("the input fails")
	s = New(func(ctx context.Context, _ int64, rows columnar.Reader) error {
		for range columnar.All(ctx, rows) {
		}
		return nil
	})
	_, err = s.Stage(t.Context(), connector.SinkBatch{Data: columnartest.FailAt(columnar.FromBatches(b.Schema(), b), 1, errInput)})
	if !errors.Is(err, errInput) {
		t.Errorf("got %v", err)
	}
	s = New(func(context.Context, int64, columnar.Reader) error { return errInput })
	r := columnar.FromBatches(b.Schema(), b)
	defer r.Close()
	if _, err = s.Stage(t.Context(), connector.SinkBatch{Data: r}); !errors.Is(err, errInput) {
		t.Errorf("got %v", err)
	}
}
