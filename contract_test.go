package tidemill_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/formats/parquet"
)

// TestContract runs the Go program by which the API is promised, word for word.
func TestContract(t *testing.T) {
	dir, cleanup := landing()
	defer cleanup()
	t.Chdir(dir)
	ctx := context.Background()
	schema := columnar.NewSchema(
		columnar.Field("ts", columnar.Timestamp), columnar.Field("channel", columnar.String), columnar.Field("price", columnar.Int64),
	)
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	s, err := NewSession(Options{})
	try(err)
	bids := s.ReadStream("landing/bids", csv.Options{Header: csv.HeaderYes}, schema) // *logical.DataFrame
	perMinute := bids.
		WithWatermark("ts", 10*time.Second).
		Where(Col("price").Gt(Lit(1000))).
		GroupBy(Window(Col("ts"), time.Minute), Col("channel")).
		Agg(Count().As("bids"), Max(Col("price")).As("top"))
	q, err := s.WriteStream(perMinute).To("out/per_minute", parquet.Options{}).
		Mode(Append).Checkpoint("ckpt/per_minute").Trigger(AvailableNow()).Start(ctx)
	try(err)
	err = q.Wait(ctx)
	try(err)
	rows, err := s.Collect(ctx, s.Read("out/per_minute/*.parquet"))
	try(err)
	defer rows.Release()

	if rows.NumRows() != 3 {
		t.Errorf("three windows are closed, but there are\n%s", rows)
	}
	if _, err := os.Stat("ckpt/per_minute/metadata"); err != nil {
		t.Error(err)
	}
}
