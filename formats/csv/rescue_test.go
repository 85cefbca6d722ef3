package csv

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/logical/connector"
)

func TestRescue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, text, want string
		opts                     Options
		scan                     codectest.Scan
		bad                      int64
	}{
		{name: "unknown fields", text: "z,b,a\n1,y,2\n,,\n\"\",\"q\"\"z\",3\n", want: `2|y|{"z":"1"};∅|∅|∅;3|q"z|{"z":""}`},
		{name: "another type", text: "a,b\nx,y\n2,z\n", want: `∅|y|{"a":"x"};2|z|∅`},
		{name: "a header with a name twice", text: "a,z,z\n1,2,3\n", opts: Options{Header: HeaderYes}, want: `1|∅|{"z1":"2","z2":"3"}`},
		{name: "a field of the name of the rescued column", text: "a,r\n1,2\n", want: `1|∅|{"r":"2"}`},
		{name: "no header", text: "1,x\ny,z\n", opts: Options{Header: HeaderNo}, want: `1|x|∅;∅|z|{"a":"y"}`},
		{name: "null_value", text: "a,z\n1,NA\nNA,\n", opts: Options{NullValue: "NA"}, want: `1|∅|∅;∅|∅|{"z":""}`},
		{name: "ragged records are malformed", text: "a,b,z\n1\n2,x,y,w\n", want: `1|∅|∅;2|x|{"z":"y"}`, bad: 2},
		{name: "and are dropped", text: "a,b,z\n1\nq,x,y\n2,x,y,w\n", opts: Options{Mode: codec.Drop}, want: `∅|x|{"a":"q","z":"y"}`, bad: 2},
		{name: "what is no text is malformed", text: "a,b,z\n1,\xff,\xfe\n", want: "1|∅|{\"b\":\"\uFFFD\",\"z\":\"\uFFFD\"}", bad: 1},
		{name: "declared", text: "z,a\n5,x\n", opts: Options{Header: HeaderYes}, scan: codectest.Scan{Declared: true}, want: `∅|∅|{"a":"x","z":"5"}`},
		{name: "without the column", text: "z,a\n5,x\n", scan: codectest.Scan{Columns: []int{0}}, want: `∅`},
	} {
		schema := columnartest.Schema(t, "a:bigint  b:varchar  r:varchar")
		for i, way := range waysToRead(len(c.text)) {
			stats := &connector.ScanStats{}
			way.Declared, way.Columns, way.Evolution, way.Rescued, way.Stats = c.scan.Declared, c.scan.Columns, codec.EvolveRescue, "r", stats
			rows, err := codectest.Read(t, newFormat(t, c.opts), codectest.File(t, "x.csv", []byte(c.text)), schema, way)
			got := strings.ReplaceAll(strings.Join(rows, ";"), `,"_file_path":"x.csv"}`, "}")
			if err != nil || got != c.want || stats.MalformedRows.Load() != c.bad {
				t.Errorf("%s, %d: %v, %d malformed\n got %s\nwant %s, %d", c.name, i, err, stats.MalformedRows.Load(), got, c.want, c.bad)
				break
			}
		}
	}
}
