package logical_test

import (
	"errors"
	"testing"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/expr"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	column := func(q, n string) *expr.Column {
		return &expr.Column{ID: expr.NewID(), Qualifier: q, Name: n, DataType: columnar.Int64}
	}
	s := logical.NewSchema(column("t", "id"), column("t", "ID"), column("t", "Name"), column("u", "name"), column("T", "price"))
	for _, test := range []struct {
		qualifier, name string
		position        int    // -1: an error
		problem         string // the error
	}{
		{"", "id", 0, ""},
		{"", "ID", 1, ""},
		{"t", "id", 0, ""},
		{"T", "ID", 1, ""},
		{"", "Name", 2, ""},
		{"", "name", 3, ""},
		{"", "PRICE", 4, ""},
		{"t", "Price", 4, ""},
		{"U", "NAME", 3, ""},
		{"", "Id", -1, "column Id is ambiguous; it could be t.id or t.ID"},
		{"", "NAME", -1, "column NAME is ambiguous; it could be t.Name or u.name"},
		{"", "pricee", -1, "there is no column pricee; did you mean price?"},
		{"u", "price", -1, "there is no column u.price; did you mean price?"},
		{"", "zzzzzz", -1, "there is no column zzzzzz; known are id, ID, Name, name, price"},
	} {
		c, err := s.Lookup(test.qualifier, test.name)
		if test.position >= 0 {
			if err != nil || c != s.Columns[test.position] {
				t.Errorf("%s.%s: %v, %v", test.qualifier, test.name, c, err)
			}
			continue
		}
		var unknown *logical.UnknownColumnError
		var ambiguous *logical.AmbiguousColumnError
		if err == nil || err.Error() != test.problem || !errors.As(err, &unknown) && !errors.As(err, &ambiguous) {
			t.Errorf("%s.%s: %v, %v; want the error %s", test.qualifier, test.name, c, err, test.problem)
		}
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	a := &expr.Column{ID: expr.NewID(), Qualifier: "t", Name: "a", DataType: columnar.Int64}
	b := &expr.Column{ID: expr.NewID(), Qualifier: "t", Name: "b c", DataType: columnar.String, Null: true}
	s := logical.NewSchema(a, b)
	if got := s.String(); got != `a BIGINT, "b c" VARCHAR` {
		t.Errorf("printed as %s", got)
	}
	if !s.Has() || !s.Has(a.ID, b.ID) || s.Has(a.ID, expr.NewID()) {
		t.Error("Has is wrong")
	}
	r := s.Requalified("x")
	if r.Columns[0].String() != "x.a" || r.Columns[0].ID != a.ID || a.Qualifier != "t" {
		t.Errorf("requalified: %v, the original %v", r.Columns[0], a)
	}
	if f := s.Arrow().Field(0); !f.Nullable || f.Name != "a" {
		t.Errorf("Arrow field %v", f)
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	c := logical.NewCatalog()
	if err := c.Add("Orders", logical.Entry{Opened: table{tableSchemas["t"]}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Add("ORDERS", logical.Entry{}); err == nil || err.Error() != "ORDERS already exists (as Orders)" {
		t.Errorf("added twice: %v", err)
	}
	if _, ok := c.Lookup("orders"); !ok {
		t.Error("names depend on case")
	}
	if got := c.Unknown("order").Error(); got != "there is no table, stream or view order; did you mean Orders?" {
		t.Error(got)
	}
	clone := c.Clone()
	if err := clone.Add("more", logical.Entry{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Lookup("more"); ok {
		t.Error("a clone changes its original")
	}
	if err := c.AddSink(&logical.SinkDecl{Name: "Out"}); err != nil {
		t.Fatal(err)
	}
	if err := c.AddSink(&logical.SinkDecl{Name: "out"}); err == nil {
		t.Error("a sink was added twice")
	}
	if d, ok := c.Sink("OUT"); !ok || d.Name != "Out" || c.Sinks()[0] != "Out" {
		t.Error("the sink is not found")
	}
	if got := (&logical.SourceDecl{Options: map[string]string{"connector": "Rate"}}).Connector(); got != "rate" {
		t.Errorf("connector %q", got)
	}
	if got := (&logical.SourceDecl{}).Connector(); got != "filesystem" {
		t.Errorf("connector %q", got)
	}
}
