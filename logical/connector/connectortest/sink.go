package connectortest

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
)

// SinkCase is a sink under test, for rows of SinkSchema.
type SinkCase struct {
	// Open opens the sink, as a new process does, for the query whose checkpoint
	// says that so many batches are committed.
	Open func(t *testing.T, committed int64) connector.Sink
	// Read gives the rows that a reader of the output sees now, as text in any order;
	// nil if the output cannot be read.
	Read func(t *testing.T) []string
	Mode connector.OutputMode
	// Forgets is set for sinks that cannot know their last batch.
	Forgets bool
	// Clear gives back rows that the output holds in memory; may be nil.
	Clear func()
}

// SinkSchema is the columns of the rows the suite writes.
var SinkSchema = columnar.NewSchema(columnar.Field("id", columnar.Int64), columnar.Field("s", columnar.String))

// TestSink is the conformance suite of connector.Sink. make is called once a case and
// returns a sink that holds nothing.
func TestSink(t *testing.T, make func(t *testing.T) SinkCase) {
	t.Run("Publish", func(t *testing.T) { testPublish(t, make(t)) })
	t.Run("Empty", func(t *testing.T) {
		c := newSinkTest(t, make(t))
		c.put(0)
		c.put(1, 7)
		c.put(2)
		c.expectLast(2)
		if c.Mode == connector.Complete {
			c.expect()
		} else {
			c.expect(7)
		}
	})
	t.Run("Twice", func(t *testing.T) { testTwice(t, make(t)) })
	t.Run("Discard", func(t *testing.T) { testDiscard(t, make(t)) })
	t.Run("Error", func(t *testing.T) { testError(t, make(t)) })
	t.Run("NewProcess", func(t *testing.T) { testSinkNewProcess(t, make(t)) })
}

// sinkTest runs a SinkCase.
type sinkTest struct {
	SinkCase
	t    *testing.T
	mem  memory.Allocator
	sink connector.Sink
}

func newSinkTest(t *testing.T, c SinkCase) *sinkTest {
	s := &sinkTest{SinkCase: c, t: t, mem: columnartest.Mem(t), sink: c.Open(t, 0)}
	t.Cleanup(func() {
		if err := s.sink.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if c.Clear != nil {
			c.Clear()
		}
	})
	return s
}

// batch is rows with the given ids, in batches of two.
func (s *sinkTest) batch(id int64, ids []int64) (connector.SinkBatch, func()) {
	var batches []arrow.RecordBatch
	for chunk := range slices.Chunk(ids, 2) {
		batches = append(batches, idBatch(s.t, s.mem, chunk))
	}
	r := columnar.FromBatches(SinkSchema, batches...)
	return connector.SinkBatch{ID: id, Mode: s.Mode, Data: r}, func() { _ = r.Close() }
}

func (s *sinkTest) stage(id int64, ids ...int64) connector.Staged {
	s.t.Helper()
	b, closeBatch := s.batch(id, ids)
	defer closeBatch()
	st, err := s.sink.Stage(s.t.Context(), b)
	if err != nil {
		s.t.Fatalf("Stage(%d): %v", id, err)
	}
	if st.Rows() != int64(len(ids)) {
		s.t.Errorf("Stage(%d): %d rows, not %d", id, st.Rows(), len(ids))
	}
	return st
}

func (s *sinkTest) put(id int64, ids ...int64) {
	s.t.Helper()
	st := s.stage(id, ids...)
	for range 2 { // it may be repeated
		if err := st.Publish(s.t.Context()); err != nil {
			s.t.Fatalf("Publish(%d): %v", id, err)
		}
	}
	if err := st.Discard(); err != nil {
		s.t.Errorf("Discard after Publish: %v", err)
	}
}

// reopen opens the sink as the next process does, and rolls forward.
func (s *sinkTest) reopen(committed int64) {
	s.t.Helper()
	if err := s.sink.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.sink = s.Open(s.t, committed)
	st, err := s.sink.Recover(s.t.Context())
	if err != nil {
		s.t.Fatalf("Recover: %v", err)
	}
	if st != nil {
		if err := st.Publish(s.t.Context()); err != nil {
			s.t.Fatalf("Publish of what was recovered: %v", err)
		}
	}
}

func (s *sinkTest) expect(ids ...int64) {
	s.t.Helper()
	if s.Read == nil {
		return
	}
	got := s.Read(s.t)
	want := []string{}
	if len(ids) > 0 {
		want = batchRows(s.mem, idBatch(s.t, s.mem, ids))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("the output holds %q, not %q", got, want)
	}
}

func (s *sinkTest) expectLast(want int64) {
	s.t.Helper()
	got, ok, err := s.sink.LastBatch(s.t.Context())
	if err != nil {
		s.t.Fatalf("LastBatch: %v", err)
	}
	if s.Forgets {
		if ok {
			s.t.Error("LastBatch claims to know")
		}
		return
	}
	if got != want || !ok && want >= 0 {
		s.t.Errorf("LastBatch is %d, %v, not %d", got, ok, want)
	}
}

func testPublish(t *testing.T, c SinkCase) {
	s := newSinkTest(t, c)
	s.expectLast(-1)
	st := s.stage(0, 1, 2, 3)
	s.expect() // staged is not visible
	s.expectLast(-1)
	if err := st.Publish(t.Context()); err != nil {
		t.Fatalf("Publish: %v", err)
	}
	s.expect(1, 2, 3)
	s.expectLast(0)
	s.put(1, 4)
	s.expectLast(1)
	if c.Mode == connector.Complete {
		s.expect(4)
	} else {
		s.expect(1, 2, 3, 4)
	}
}

func testTwice(t *testing.T, c SinkCase) {
	s := newSinkTest(t, c)
	s.put(0, 1, 2)
	if c.Forgets {
		return
	}
	s.put(0, 1, 2) // the same batch again: in this process
	s.expect(1, 2)
	s.reopen(0)
	s.put(0, 1, 2) // and in the next one
	s.expect(1, 2)
	s.expectLast(0)
}

func testDiscard(t *testing.T, c SinkCase) {
	s := newSinkTest(t, c)
	st := s.stage(0, 1, 2)
	if err := st.Discard(); err != nil {
		t.Fatalf("Discard: %v", err)
	}
	if err := st.Discard(); err != nil {
		t.Errorf("second Discard: %v", err)
	}
	s.expect()
	s.expectLast(-1)
	s.put(0, 3)
	s.expect(3)
}

func testError(t *testing.T, c SinkCase) {
	s := newSinkTest(t, c)
	s.put(0, 1)
	errInput := errors.New("the input fails")
	b, closeBatch := s.batch(1, []int64{2, 3, 4})
	b.Data = columnartest.FailAt(b.Data, 2, errInput)
	_, err := s.sink.Stage(t.Context(), b)
	closeBatch()
	if !errors.Is(err, errInput) {
		t.Fatalf("Stage returned %v, not the error of its input", err)
	}
	s.expect(1)
	s.put(1, 5)
	if c.Mode == connector.Complete {
		s.expect(5)
	} else {
		s.expect(1, 5)
	}
}

func testSinkNewProcess(t *testing.T, c SinkCase) {
	s := newSinkTest(t, c)
	s.put(0, 1)
	s.reopen(1)
	s.expectLast(0)
	// A staged batch whose process ends before Publish never was.
	st := s.stage(1, 8, 9)
	s.reopen(1)
	s.expect(1)
	s.expectLast(0)
	if c.Forgets {
		_ = st.Discard()
	}
	s.put(1, 2)
	s.reopen(2)
	s.expectLast(1)
	if c.Mode == connector.Complete {
		s.expect(2)
	} else {
		s.expect(1, 2)
	}
	if !c.Forgets {
		_ = st.Discard() // an old process's Staged may not hurt
	}
	s.expectLast(1)
}

// idBatch is rows with the given ids and a text each, null for the third.
func idBatch(t testing.TB, mem memory.Allocator, ids []int64) arrow.RecordBatch {
	t.Helper()
	var values, texts []any
	for _, id := range ids {
		values = append(values, id)
		if id%3 == 0 {
			texts = append(texts, nil)
		} else {
			texts = append(texts, "row "+string(rune('a'+id%26)))
		}
	}
	a, err := columnar.Column(mem, columnar.Int64, values...)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	b, err := columnar.Column(mem, columnar.String, texts...)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	return newBatch(t, a, b, int64(len(ids)))
}
