package codec_test

import (
	"strings"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/formats/codec"
)

func TestFields(t *testing.T) {
	t.Parallel()
	columns := columnartest.Schema(t, "a:bigint  A:bigint  b:bigint")
	for _, c := range []struct {
		fields, column string
		want           int
		err            string
	}{
		{"a A b", "A", 1, ""},
		{"x B", "b", 1, ""},
		{"A b", "a", -1, ""}, // it is the other column's
		{"x", "a", -1, ""},
		{"b c b", "b", -1, "f: column b: the file has 2 fields of that name"},
		{"B b", "b", 1, ""},
		{"B Ⓑ B", "b", -1, "f: column b: the file has 2 fields of that name"},
	} {
		got, err := codec.NewFields(strings.Fields(c.fields)).Of("f", columns, c.column)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s in %q: %d, %v", c.column, c.fields, got, err)
		}
	}
}

func TestMerged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files     []string
		want, err string
	}{
		{files: []string{"a:bigint", "A:double  b:varchar"}, want: "a DOUBLE, b VARCHAR"},
		{files: []string{"a:bigint  A:varchar", "A:varchar"}, want: "a BIGINT, A VARCHAR"},
		{files: []string{"a:bigint", "a:bigint  A:varchar"}, want: "a BIGINT, A VARCHAR"},
		{files: []string{"a:bigint  b:bigint  a:bigint"}, err: "0: column a: the file has two columns of that name"},
		{files: []string{"a:bigint", "a:boolean"}, err: "1: column a: it is BOOLEAN here and BIGINT in earlier files"},
	} {
		var m codec.Merged
		var err error
		for i, f := range c.files {
			if err = m.Add(string(rune('0'+i)), columnartest.Schema(t, f)); err != nil {
				break
			}
		}
		if c.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.err) {
				t.Errorf("%v: %v", c.files, err)
			}
			continue
		}
		got, ok := m.Inferred()
		if s := columnar.SchemaString(got.Schema); err != nil || !ok || s != c.want {
			t.Errorf("%v: %s, %v", c.files, s, err)
		}
	}
}
