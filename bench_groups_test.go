package tidemill_test

import (
	"fmt"
	"testing"

	"github.com/tidemill/tidemill"
)

// BenchmarkMapGroups calls a function for the groups of a million rows, without and with
// state of before; rows/s counts rows.
func BenchmarkMapGroups(b *testing.B) {
	type row struct{ User, N int64 }
	for _, groups := range []int{100, 100_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			s, err := tidemill.NewSession(tidemill.Options{})
			if err != nil {
				b.Fatal(err)
			}
			const n = 1_000_000
			rows, err := s.SQL(b.Context(), fmt.Sprintf("SELECT id %% %d AS user, id AS n FROM range(%d)", groups, n))
			if err != nil {
				b.Fatal(err)
			}
			sums := tidemill.MapGroupsWithState(rows.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
				func(user int64, rows []row, state *tidemill.GroupState[row]) (row, error) {
					s, _ := state.Get()
					for _, r := range rows {
						s.N += r.N
					}
					state.Update(s)
					return row{user, s.N}, nil
				})
			for b.Loop() {
				out, err := s.Collect(b.Context(), sums)
				if err != nil {
					b.Fatal(err)
				}
				if out.NumRows() != int64(groups) {
					b.Fatal(out.NumRows())
				}
				out.Release()
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
