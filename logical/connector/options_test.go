package connector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	var o struct {
		text  string
		yes   bool
		n     int64
		size  int64
		d     time.Duration
		color uint8
		list  []string
	}
	keys := []Key{
		TextKey("text", &o.text), BoolKey("yes", &o.yes), IntKey("n", &o.n, 1), BytesKey("size", &o.size),
		DurationKey("wait", &o.d), EnumKey("color", &o.color, "red", "green", "blue"), ListKey("list", &o.list),
	}
	err := Decode(map[string]string{
		"TEXT": " a ", "yes": "True", "n": "7", "size": "1.5 KB", "wait": "1 minute 30 seconds", "color": "Blue", "list": "a, b,c",
	}, keys...)
	if err != nil {
		t.Fatal(err)
	}
	if o.text != " a " || !o.yes || o.n != 7 || o.size != 1536 || o.d != 90*time.Second || o.color != 2 || strings.Join(o.list, "|") != "a|b|c" {
		t.Errorf("decoded %+v", o)
	}
	for _, c := range []struct{ key, value, says string }{
		{"tex", "x", "did you mean text?"},
		{"unknown_thing", "x", "known are text, yes, n, size, wait, color, list"},
		{"yes", "maybe", "true or false"},
		{"n", "0", "at least 1"}, {"n", "1.5", "integer"}, {"n", "", "integer"},
		{"size", "0", "positive"}, {"size", "5 parsecs", "64MB"}, {"size", "-1", "64MB"}, {"size", "99999999999 TB", "64MB"},
		{"wait", "10", "no unit"}, {"wait", "-1 second", "duration"}, {"wait", "soon", ""},
		{"color", "mauve", "red, green or blue"}, {"list", "a,,b", "names separated"},
	} {
		err := Decode(map[string]string{c.key: c.value}, keys...)
		var option *OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s = %q: %v", c.key, c.value, err)
		}
	}
}

func TestParseBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "1k": 1024, "64MB": 64 << 20, "64 mib": 64 << 20, "0.5g": 1 << 29, "9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10 seconds": 10 * time.Second, "0": 0, "0 seconds": 0, "5m": 5 * time.Minute, "1 day 2 hours": 26 * time.Hour,
		"1 month": 31 * 24 * time.Hour, "1 year": 12 * 31 * 24 * time.Hour, "1.5 s": 1500 * time.Millisecond, "100ms": 100 * time.Millisecond,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	if _, err := ParseDuration("1000000 years"); err == nil {
		t.Error("a million years were accepted")
	}
}

func FuzzOptions(f *testing.F) {
	for _, s := range []string{"10 seconds", "64MB", "true", "1 day -2 hours", "0", "1e9 years", ".5k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var n int64
		var d time.Duration
		if err := Decode(map[string]string{"size": s}, BytesKey("size", &n)); err == nil && n <= 0 {
			t.Errorf("%q is %d bytes", s, n)
		}
		if err := Decode(map[string]string{"wait": s}, DurationKey("wait", &d)); err == nil && d < 0 {
			t.Errorf("%q is %s", s, d)
		}
	})
}

func TestSchemaText(t *testing.T) {
	t.Parallel()
	fields := []arrow.Field{
		columnar.Field("a b", columnar.Int64), columnar.Field("ü", columnar.Decimal(20, 3)), columnar.Field("l", columnar.ListOf(columnar.ListOf(columnar.Date))),
		columnar.Field("m", arrow.MapOf(columnar.String, columnar.Float32)),
		columnar.Field("s", arrow.StructOf(columnar.Field("x", columnar.Timestamp), columnar.Field("y", columnar.ListOf(columnar.Interval)))),
	}
	for _, dt := range []arrow.DataType{columnar.Null, columnar.Boolean, columnar.Int8, columnar.Int16, columnar.Int32, columnar.Float64, columnar.String, columnar.Binary, columnar.Time} {
		fields = append(fields, columnar.Field(columnar.TypeName(dt), dt))
	}
	want := columnar.NewSchema(fields...)
	got, err := DecodeSchema(EncodeSchema(want))
	if err != nil || columnar.SchemaString(got) != columnar.SchemaString(want) || !columnar.EqualTypes(got, want) {
		t.Errorf("%s, %v", EncodeSchema(want), err)
	}
	for _, bad := range []string{"", "{}", `[{"name":"a","type":"BLOB"}]`, `[{"name":"a","type":"ARRAY"}]`, `[{"name":"a","type":"DECIMAL","precision":99}]`} {
		if s, err := DecodeSchema(bad); err == nil {
			t.Errorf("%q is %s", bad, columnar.SchemaString(s))
		}
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	r := &Registry{}
	if err := r.Add(Connector{Name: "filesystem"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(Connector{Name: "FileSystem"}); err == nil {
		t.Error("a name was registered twice")
	}
	if c, err := r.Lookup(""); err != nil || c.Name != "filesystem" {
		t.Errorf("the default is %v, %v", c.Name, err)
	}
	var option *OptionError
	if _, err := r.Table(t.Context(), "filesystm", Env{}); !errors.As(err, &option) || !strings.Contains(err.Error(), "did you mean filesystem?") {
		t.Errorf("unknown connector: %v", err)
	}
	if _, err := r.Sink(t.Context(), "filesystem", Env{}); !errors.As(err, &option) || !strings.Contains(err.Error(), "cannot be written to") {
		t.Errorf("no sink: %v", err)
	}
}
