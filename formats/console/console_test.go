package console

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

func TestSink(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, func(*testing.T) connectortest.SinkCase {
		var out bytes.Buffer
		return connectortest.SinkCase{Forgets: true, Open: func(*testing.T, int64) connector.Sink { return New(&out, Options{}) }}
	})
}

func TestFormats(t *testing.T) {
	t.Parallel()
	const rows = `
id:bigint  s:varchar        ts:timestamp          x:double
1          "a, \"b\""       2024-01-01T00:00:00Z  1.5
2          ""               NULL                  NULL
`
	for format, want := range map[string]string{
		"jsonl": `{"id":1,"s":"a, \"b\"","ts":"2024-01-01T00:00:00Z","x":1.5}
{"id":2,"s":"","ts":null,"x":null}
{"id":1,"s":"a, \"b\"","ts":"2024-01-01T00:00:00Z","x":1.5}
{"id":2,"s":"","ts":null,"x":null}
`,
		"csv": `id,s,ts,x
1,"a, ""b""",2024-01-01 00:00:00,1.5
2,"",,
1,"a, ""b""",2024-01-01 00:00:00,1.5
2,"",,
`,
	} {
		mem := columnartest.Mem(t)
		var out bytes.Buffer
		s, err := Connector().Sink(t.Context(), connector.Env{Options: map[string]string{"format": format}, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		for id := range int64(2) {
			b := columnartest.Batch(t, mem, rows)
			st, err := s.Stage(t.Context(), connector.SinkBatch{ID: id, Data: columnar.FromBatches(b.Schema(), b)})
			if err != nil {
				t.Fatal(err)
			}
			before := out.Len()
			if err := st.Publish(t.Context()); err != nil || out.Len() == before {
				t.Fatalf("Publish: %v", err)
			}
		}
		if out.String() != want {
			t.Errorf("%s:\n%s", format, out.String())
		}
	}
}

func TestTableIsCut(t *testing.T) {
	t.Parallel()
	mem := columnartest.Mem(t)
	var out bytes.Buffer
	s := New(&out, Options{Rows: 2})
	b := columnartest.Batch(t, mem, "v:bigint\n1\n2\n3\n")
	st, err := s.Stage(t.Context(), connector.SinkBatch{ID: 7, Data: columnar.FromBatches(b.Schema(), b)})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, part := range []string{"batch 7: 3 rows", "1 more"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	if strings.Contains(text, "3\n…") {
		t.Errorf("row 3 is printed: %q", text)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	_, err := Connector().Sink(t.Context(), connector.Env{Options: map[string]string{"format": "xml"}, Stdout: &bytes.Buffer{}})
	if err == nil || !strings.Contains(err.Error(), "table, jsonl or csv") {
		t.Errorf("got %v", err)
	}
}
