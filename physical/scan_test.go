package physical_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/physical"
)

// badUnit fails with its name; the first time it is read, only once wait is closed.
type badUnit struct {
	name string
	wait <-chan struct{}
	open func()
	once sync.Once
}

func (u *badUnit) Name() string { return u.name }
func (u *badUnit) Bytes() int64 { return 1 }

func (u *badUnit) Open(context.Context) (columnar.Reader, error) {
	u.open()
	return &badReader{u}, nil
}

type badReader struct{ u *badUnit }

func (r *badReader) Schema() *arrow.Schema { return oneColumn }
func (r *badReader) Close() error          { return nil }

func (r *badReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	r.u.once.Do(func() {
		select {
		case <-r.u.wait:
		case <-ctx.Done():
		}
	})
	return nil, &connector.RecordError{File: r.u.name, Reason: "bad"}
}

var oneColumn = columnar.NewSchema(columnar.Field("a", columnar.Int64))

// Of several bad files the query names the first, though another is found out before.
func TestScanNamesTheFirstBadFile(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	var reach sync.Once
	closed := make(chan struct{})
	close(closed)
	units := []connector.Unit{
		&badUnit{name: "first", wait: reached, open: func() {}},
		&badUnit{name: "second", wait: closed, open: func() {}},
	}
	// The first is read on only when the other reader has come back to it.
	opened := 0
	var mu sync.Mutex
	units[0].(*badUnit).open = func() {
		mu.Lock()
		defer mu.Unlock()
		if opened++; opened == 2 {
			reach.Do(func() { close(reached) })
		}
	}
	scan, err := physical.NewScan(physical.ScanSpec{Name: "t", Schema: oneColumn, Columns: []int{0},
		Units: func(context.Context, connector.ScanRequest) ([]connector.Unit, error) { return units, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ec := &physical.ExecContext{Mem: memory.DefaultAllocator}
	readers, err := scan.Open(t.Context(), ec, 2)
	if err != nil || len(readers) != 2 {
		t.Fatal(len(readers), err)
	}
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() {
			_, err := r.Next(t.Context())
			var bad *connector.RecordError
			if !errors.As(err, &bad) || bad.File != "first" {
				t.Errorf("got %v", err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
