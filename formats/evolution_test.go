package formats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
	"github.com/tidemill/tidemill/formats/file"
	"github.com/tidemill/tidemill/logical/connector"
)

// drifts are files whose columns are not those of the source, a BIGINT and s STRUCT (x
// BIGINT), and what each policy makes of them: rows, or a part of the error. A row that
// ends in ! is malformed.
var drifts = []struct {
	name, source, file               string
	fail, ignore, rescue, declared   string
	failText, ignoreText, rescueText string // of CSV and JSON, where each value is judged by itself
	declaredText                     string
	noCSV                            bool
}{
	{
		name: "another column", source: "a:bigint", file: "a:bigint  b:varchar\n1  x\n2  NULL",
		fail: "column b", ignore: "1;2", declared: "1;2", rescue: `1|{"b":"x"};2|∅`,
	},
	{
		name: "another type", source: "a:bigint", file: "a:varchar\nx\nNULL",
		fail: "column a: ", ignore: "∅!;∅", declared: "column a: it is VARCHAR in the file", rescue: `∅|{"a":"x"};∅|∅`,
		declaredText: "∅!;∅",
	},
	{
		name: "a wider type", source: "a:bigint", file: "a:double\n1.5\n2",
		fail: "column a: ", ignore: "∅!;∅!", declared: "column a: it is DOUBLE in the file", rescue: `∅|{"a":1.5};∅|{"a":2}`,
		failText: "∅!;2", ignoreText: "∅!;2", rescueText: `∅|{"a":1.5};2|∅`, declaredText: "∅!;2",
	},
	{
		name: "a narrower type", source: "a:bigint", file: "a:integer\n1\nNULL",
		fail: "1;∅", ignore: "1;∅", declared: "1;∅", rescue: "1|∅;∅|∅",
	},
	{ // In a DOUBLE every number is the nearest one, whatever wrote it.
		name: "whole numbers in a DOUBLE", source: "a:double", file: "a:bigint\n7\n9007199254740993\n-9223372036854775807",
		fail: "7;9007199254740992;-9223372036854776000", ignore: "7;9007199254740992;-9223372036854776000", declared: "7;9007199254740992;-9223372036854776000",
		rescue: "7|∅;9007199254740992|∅;-9223372036854776000|∅",
	},
	{
		name: "no such column", source: "a:bigint", file: "b:bigint\n7",
		fail: "column ", ignore: "∅", declared: "∅", rescue: `∅|{"b":7}`,
	},
	{
		name: "another field", source: "s:struct<x bigint>", file: "s:struct<x bigint, y bigint>\n{\"x\":1,\"y\":2}\n{\"x\":3,\"y\":null}\nNULL", noCSV: true,
		fail: "column s.y", ignore: `{"x":1};{"x":3};∅`, declared: `{"x":1};{"x":3};∅`, rescue: `{"x":1}|{"s":{"y":2}};{"x":3}|∅;∅|∅`,
	},
	{
		name: "another type of a field", source: "s:struct<x bigint, y bigint>", file: "s:struct<x varchar, y bigint>\n{\"x\":\"p\",\"y\":2}\n{\"x\":null,\"y\":null}", noCSV: true,
		fail: "column s", ignore: `{"x":null,"y":2}!;{"x":null,"y":null}`, declared: "column s",
		rescue:   `{"x":null,"y":2}|{"s":{"x":"p"}};{"x":null,"y":null}|∅`,
		failText: "column s.x: ", declaredText: `{"x":null,"y":2}!;{"x":null,"y":null}`,
	},
	{
		name: "another kind", source: "s:struct<x bigint>", file: "s:array<bigint>\n[1,2]\nNULL", noCSV: true,
		fail: "column s: ", ignore: "∅!;∅", declared: "column s: ", rescue: `∅|{"s":[1,2]};∅|∅`,
		declaredText: "∅!;∅",
	},
	{
		name: "another field of an element", source: "l:array<struct<x bigint>>", file: "l:array<struct<x bigint, y bigint>>\n[{\"x\":2,\"y\":3}]\n[]", noCSV: true,
		fail: "column l.element.y", ignore: `[{"x":2}];[]`, declared: `[{"x":2}];[]`, rescue: `[{"x":2}]|{"l":[{"x":2,"y":3}]};[]|∅`,
	},
	{
		name: "another type of an element", source: "l:array<bigint>", file: "l:array<varchar>\n[\"x\"]\n[]", noCSV: true,
		fail: "column l: ", ignore: `[null]!;[]`, declared: "column l: ", rescue: `[null]|{"l":["x"]};[]|∅`,
		failText: "column l.element: ", declaredText: `[null]!;[]`,
	},
	{
		name: "another field of a value", source: "m:map<varchar, struct<x bigint>>", file: "m:map<varchar, struct<x bigint, y bigint>>\n{\"k\":{\"x\":1,\"y\":2}}", noCSV: true,
		fail: "column m.value.y", ignore: `{"k":{"x":1}}`, declared: `{"k":{"x":1}}`, rescue: `{"k":{"x":1}}|{"m":{"k":{"x":1,"y":2}}}`,
	},
}

// TestEvolution reads files that drifted under every policy in every format.
func TestEvolution(t *testing.T) {
	t.Parallel()
	for _, d := range drifts {
		for _, f := range Files() {
			if f.Name == "text" || f.Name == "csv" && d.noCSV {
				continue
			}
			t.Run(d.name+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				want := map[string]string{"fail": d.fail, "ignore": d.ignore, "rescue": d.rescue, "declared": d.declared}
				if f.RowCount == nil {
					for policy, text := range map[string]string{"fail": d.failText, "ignore": d.ignoreText, "rescue": d.rescueText, "declared": d.declaredText} {
						want[policy] = cmp.Or(text, want[policy])
					}
				}
				if f.Name == "csv" {
					want["rescue"] = strings.NewReplacer(`:1.5}`, `:"1.5"}`, `:7}`, `:"7"}`).Replace(want["rescue"])
				}
				want["add"] = want["fail"] // new columns are found before a file is read
				for policy, want := range want {
					format, data := driftedFile(t, f, d.file, policy == "declared")
					checkDrift(t, format, data, columnartest.Schema(t, d.source), policy, want)
				}
			})
		}
	}
}

// TestBytesThatAreNoText reads BINARY values as a VARCHAR column: those that are text are, and
// the others are null or rescued where the columns were inferred, and an error elsewhere.
func TestBytesThatAreNoText(t *testing.T) {
	t.Parallel()
	for _, d := range []struct{ source, file, ignore, rescue string }{
		{"a:varchar", "a:binary\ntext\n?\nNULL", "text;∅!;∅", `text|∅;∅|{"a":"/w=="};∅|∅`},
		{"s:struct<x varchar, y bigint>", "s:struct<x binary, y bigint>\n{\"x\":\"?\",\"y\":1}\n{\"x\":\"text\",\"y\":2}",
			`{"x":null,"y":1}!;{"x":"text","y":2}`, `{"x":null,"y":1}|{"s":{"x":"/w=="}};{"x":"text","y":2}|∅`},
		{"l:array<varchar>", "l:array<binary>\n[\"?\",\"text\"]\n[\"text\"]", `[null,"text"]!;["text"]`, `[null,"text"]|{"l":["/w==","dGV4dA=="]};["text"]|∅`},
	} {
		for _, f := range Files() {
			if f.RowCount == nil {
				continue
			}
			t.Run(d.source+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				for policy, want := range map[string]string{"ignore": d.ignore, "rescue": d.rescue, "fail": "column ", "declared": "column "} {
					batch := columnartest.Batch(t, columnartest.Mem(t), d.file)
					for _, c := range batch.Columns() {
						spoil(c.Data())
					}
					format, data := driftedBatch(t, f, batch, policy == "declared")
					checkDrift(t, format, data, columnartest.Schema(t, d.source), policy, want)
				}
			})
		}
	}
}

// spoil makes 0xFF of each ? in BINARY values.
func spoil(d arrow.ArrayData) {
	if d.DataType().ID() == arrow.BINARY {
		bytes := d.Buffers()[2].Bytes()
		for i, c := range bytes {
			if c == '?' {
				bytes[i] = 0xFF
			}
		}
	}
	for _, c := range d.Children() {
		spoil(c)
	}
}

func driftedFile(t *testing.T, f file.Format, rows string, declared bool) (codec.Format, codec.File) {
	t.Helper()
	return driftedBatch(t, f, columnartest.Batch(t, columnartest.Mem(t), rows), declared)
}

func driftedBatch(t *testing.T, f file.Format, batch arrow.RecordBatch, declared bool) (codec.Format, codec.File) {
	t.Helper()
	options := map[string]string{}
	if f.Name == "csv" {
		options["null_value"] = "NULL"
	}
	writer, err := f.New(file.FormatEnv{Options: options, Writing: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := codectest.Write(t, writer, batch.Schema(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name == "csv" {
		options["header"], options["union_by_name"] = "true", fmt.Sprint(declared)
	}
	reader, err := f.New(file.FormatEnv{Options: options})
	if err != nil {
		t.Fatal(err)
	}
	return reader, codectest.File(t, "x"+f.Extensions[0], []byte(text))
}

func checkDrift(t *testing.T, format codec.Format, data codec.File, source *arrow.Schema, policy, want string) {
	t.Helper()
	stats := &connector.ScanStats{}
	scan := codectest.Scan{Stats: stats, Declared: policy == "declared"}
	switch policy {
	case "ignore":
		scan.Evolution = codec.EvolveIgnore
	case "add":
		scan.Evolution = codec.EvolveAdd
	case "rescue":
		scan.Evolution, scan.Rescued = codec.EvolveRescue, codec.DefaultRescued
		source = arrow.NewSchema(append(slices.Clone(source.Fields()), columnartest.Schema(t, codec.DefaultRescued+":varchar").Field(0)), nil)
	}
	rows, err := codectest.Read(t, format, data, source, scan)
	got := strings.ReplaceAll(strings.Join(rows, ";"), `,"_file_path":"`+data.Path+`"}`, "}")
	malformed := int64(strings.Count(want, "!"))
	switch {
	case strings.HasPrefix(want, "column "):
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), data.Path) {
			t.Errorf("%s: %q, error %v\nwant %s", policy, got, err, want)
		}
	case err != nil || got != strings.ReplaceAll(want, "!", ""):
		t.Errorf("%s: %v\n got %s\nwant %s", policy, err, got, want)
	case stats.MalformedRows.Load() != malformed:
		t.Errorf("%s: %d records are malformed, want %d", policy, stats.MalformedRows.Load(), malformed)
	}
}
