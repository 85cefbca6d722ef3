package memory_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

func TestTable(t *testing.T) {
	t.Parallel()
	connectortest.TestTable(t, func(t *testing.T) connector.Table {
		mem := columnartest.Mem(t)
		a := columnartest.Batch(t, mem, "a:bigint  b:varchar\n1  x\n2  NULL\n")
		b := columnartest.Batch(t, mem, "a:bigint  b:varchar\n3  z\n")
		table, err := memory.NewTable(a.Schema(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(table.Release)
		return table
	})
}

func TestTableColumns(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	a := columnartest.Batch(t, mem, "a:bigint\n1\n")
	b := columnartest.Batch(t, mem, "a:varchar\n1\n")
	if _, err := memory.NewTable(a.Schema(), a, b); err == nil {
		t.Error("a batch with other types was accepted")
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	connectortest.TestSource(t, func(t *testing.T) connectortest.SourceCase {
		mem := columnartest.Mem(t)
		s := memory.NewStream(columnartest.Batch(t, mem, "a:bigint\n").Schema())
		t.Cleanup(s.Release)
		n := int64(0)
		return connectortest.SourceCase{
			Add: func(t *testing.T) {
				n++
				if _, err := s.Add(columnartest.Batch(t, mem, "a:bigint\n"+string(rune('0'+n))+"\n")); err != nil {
					t.Fatal(err)
				}
			},
			Open: func(*testing.T, connector.BatchLog) connector.Source { return s },
		}
	})
}

func TestSink(t *testing.T) {
	t.Parallel()
	for _, mode := range []connector.OutputMode{connector.Append, connector.Update, connector.Complete} {
		t.Run(mode.String(), func(t *testing.T) {
			connectortest.TestSink(t, func(t *testing.T) connectortest.SinkCase {
				mem := columnartest.Mem(t)
				result := memory.NewResult()
				return connectortest.SinkCase{
					Mode:  mode,
					Clear: result.Clear,
					Open:  func(*testing.T, int64) connector.Sink { return memory.NewSink(result, "q") },
					Read: func(t *testing.T) []string {
						table, ok := result.Table()
						if !ok {
							return []string{}
						}
						defer table.Release()
						us, err := table.Units(t.Context(), connector.ScanRequest{Mem: mem})
						if err != nil {
							t.Fatal(err)
						}
						return connectortest.Rows(t, mem, us)
					},
				}
			})
		})
	}
}

// Another query begins with nothing.
func TestResultOfAnotherQuery(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	store := memory.NewStore()
	t.Cleanup(func() { store.Result("top").Clear() })
	c := memory.Connector(store)
	open := func(id string) connector.Sink {
		s, err := c.Sink(t.Context(), connector.Env{QueryName: "Top", QueryID: id})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b := columnartest.Batch(t, mem, "a:bigint\n1\n")
	st, err := open("q1").Stage(t.Context(), connector.SinkBatch{ID: 4, Data: reader(b)})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := c.Table(t.Context(), connector.Env{Name: "top"})
	if err != nil {
		t.Fatal(err)
	}
	table.(*memory.Table).Release()
	if last, ok, _ := open("q1").LastBatch(t.Context()); last != 4 || !ok {
		t.Errorf("the same query finds batch %d, %v", last, ok)
	}
	if last, ok, _ := open("q2").LastBatch(t.Context()); last != -1 || ok {
		t.Errorf("another query finds batch %d, %v", last, ok)
	}
	if _, err := c.Table(t.Context(), connector.Env{Name: "top"}); err == nil {
		t.Error("the rows of the old query are there")
	}
}

func reader(b arrow.RecordBatch) *one { return &one{b: b} }
