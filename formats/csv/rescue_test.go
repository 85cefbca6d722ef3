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
		{name: "no header, more fields", text: "1,x,9,\n2,y\n3,z,,\"q\"\"\n,w\"\n", opts: Options{Header: HeaderNo}, want: "1|x|{\"_c2\":\"9\"};2|y|∅;3|z|{\"_c3\":\"q\\\"\\n,w\"}"},
		{name: "no header, more fields, declared", text: "1,x,9\n2\n", opts: Options{Header: HeaderNo}, scan: codectest.Scan{Declared: true}, want: `1|x|{"_c2":"9"};2|∅|∅`, bad: 1},
		{name: "no header, fewer fields", text: "1\n\"2\"\n3,x\n", opts: Options{Header: HeaderNo}, want: `1|∅|∅;2|∅|∅;3|x|∅`},
		{name: "no header, without the column", text: "1,x,9\n2,y\n", opts: Options{Header: HeaderNo, Mode: codec.Fail}, scan: codectest.Scan{Columns: []int{0}}, want: `1;2`},
		{name: "within nested values", schema: "s:struct<x bigint, l array<struct<y varchar>>>  m:map<varchar, bigint>  r:varchar",
			text: "s,m\n\"{\"\"x\"\":1,\"\"z\"\":[true]}\",\"{\"\"k\"\":\"\"q\"\"}\"\n\"{\"\"x\"\":\"\"w\"\",\"\"l\"\":[{\"\"y\"\":\"\"a\"\"},{\"\"u\"\":1}]}\",{}\n{x,[1]\n\"{\"\"x\"\":2}\",\n",
			want: `{"x":1,"l":null}|{"k":null}|{"s":{"z":[true]},"m":{"k":"q"}};{"x":null,"l":[{"y":"a"},{"y":null}]}|{}|{"s":{"x":"w","l":[{"y":"a"},{"u":1}]}};∅|∅|{"s":"{x","m":[1]};{"x":2,"l":null}|∅|∅`},
		{name: "null_value", text: "a,z\n1,NA\nNA,\n", opts: Options{NullValue: "NA"}, want: `1|∅|∅;∅|∅|{"z":""}`},
		{name: "ragged records are malformed", text: "a,b,z\n1\n2,x,y,w\n", want: `1|∅|∅;2|x|{"z":"y"}`, bad: 2},
		{name: "and are dropped", text: "a,b,z\n1\nq,x,y\n2,x,y,w\n", opts: Options{Mode: codec.Drop}, want: `∅|x|{"a":"q","z":"y"}`, bad: 2},
		{name: "what is no text is malformed", text: "a,b,z\n1,\xff,\xfe\n", want: "1|∅|{\"b\":\"\uFFFD\",\"z\":\"\uFFFD\"}", bad: 1},
		{name: "declared", text: "z,a\n5,x\n", opts: Options{Header: HeaderYes}, scan: codectest.Scan{Declared: true}, want: `∅|∅|{"a":"x","z":"5"}`},
		{name: "without the column", text: "z,a\n5,x\n", scan: codectest.Scan{Columns: []int{0}}, want: `∅`},
	} {
		if c.schema == "" {
			c.schema = "a:bigint  b:varchar  r:varchar"
		}
		schema := columnartest.Schema(t, c.schema)
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
