package tidemill_test

import (
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/logical"
)

// TestRandomCalls has each call that a program makes draw for itself, in every branch of a
// plan, and the same call, however often it is used, once a row.
func TestRandomCalls(t *testing.T) {
	t.Parallel()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(query string) *logical.DataFrame {
		df, err := s.SQL(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		return df
	}
	col, random := tidemill.Col, func() tidemill.Term { return tidemill.Func("random") }
	ten := s.Range(0, 10, 1)
	drawn := func() *logical.DataFrame { return ten.Select(col("id"), random().As("r")) }
	alike := func(l, r *logical.DataFrame) *logical.DataFrame {
		return l.As("l").Join(r.As("r"), logical.InnerJoin, col("l.id").Eq(col("r.id"))).Where(col("l.r").Eq(col("r.r")))
	}
	pair := func(df *logical.DataFrame) *logical.DataFrame { return df.Where(col("a").Eq(col("b"))) }
	over := func() tidemill.Term { return tidemill.Sum(random()).Over(tidemill.PartitionBy()) }
	once, branch := random(), drawn()
	written, again := text("SELECT id, random() AS r FROM range(10) AS t(id)"), text("SELECT id, random() AS r FROM range(10) AS t(id)")
	for name, c := range map[string]struct {
		df   *logical.DataFrame
		rows int64
	}{
		"two calls":           {ten.Where(random().Eq(random())), 0},
		"a call twice":        {ten.Where(once.Eq(once)), 10},
		"between":             {ten.Where(once.Between(once, once)), 10},
		"two branches":        {alike(drawn(), drawn()), 0},
		"a branch twice":      {alike(branch, branch), 10},
		"two texts":           {alike(written, again), 0},
		"a text and a call":   {alike(written, drawn()), 0},
		"two sums":            {pair(ten.Agg(tidemill.Sum(random()).As("a"), tidemill.Sum(random()).As("b"))), 0},
		"a sum twice":         {pair(ten.Agg(tidemill.Sum(once).As("a"), tidemill.Sum(once).As("b"))), 1},
		"two sums of a text":  {text("SELECT 1 FROM range(10) HAVING sum(random()) = sum(random())"), 0},
		"two windows":         {pair(ten.Select(over().As("a"), over().As("b"))), 0},
		"two windows, a text": {text("SELECT 1 FROM (SELECT sum(random()) OVER () AS a, sum(random()) OVER () AS b FROM range(10)) WHERE a = b"), 0},
	} {
		rows, err := s.Collect(t.Context(), c.df)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rows.NumRows() != c.rows {
			t.Errorf("%s: %d rows, want %d", name, rows.NumRows(), c.rows)
		}
		rows.Release()
	}
}
