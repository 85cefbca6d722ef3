package tidemill_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/json"
	"github.com/tidemill/tidemill/logical"
)

// landBatches makes a directory of JSON files, each read by a micro-batch of its own.
func landBatches(files ...string) (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "tidemill")
	if err != nil {
		panic(err)
	}
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", i)), []byte(text+"\n"), 0o644); err != nil {
			panic(err)
		}
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// printBatches runs a stream over what is there and prints what each micro-batch gives.
func printBatches(s *tidemill.Session, df *logical.DataFrame, mode tidemill.OutputMode) error {
	ctx := context.Background()
	q, err := s.WriteStream(df).Mode(mode).Trigger(tidemill.AvailableNow()).
		ForeachBatch(func(ctx context.Context, id int64, rows columnar.Reader) error {
			for b, err := range columnar.All(ctx, rows) {
				if err != nil {
					return err
				}
				for row := range int(b.NumRows()) {
					fmt.Print("batch ", id, ":")
					for _, c := range b.Columns() {
						fmt.Print(" ", columnar.Value(c, row))
					}
					fmt.Println()
				}
			}
			return nil
		}).Start(ctx)
	if err != nil {
		return err
	}
	return q.Wait(ctx)
}

// The rows of a stream, the state kept for each user, and what comes out.
type (
	order struct {
		User  string
		Price int64
	}
	spent struct {
		Orders, Total int64
	}
	rank struct {
		User  string
		Total int64
		Rank  string
	}
)

// ExampleMapGroupsWithState keeps a sum for every user.
func ExampleMapGroupsWithState() {
	dir, remove := landBatches(
		`{"user":"ann","price":30}{"user":"bob","price":5}{"user":"ann","price":20}`,
		`{"user":"bob","price":90}`)
	defer remove()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		panic(err)
	}
	orders := s.ReadStreamFrom("filesystem", map[string]string{"path": dir, "format": "json", "max_files_per_trigger": "1"}, nil)
	ranks := tidemill.MapGroupsWithState(orders.GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
		func(user string, rows []order, state *tidemill.GroupState[spent]) (rank, error) {
			s, _ := state.Get()
			for _, o := range rows {
				s.Orders++
				s.Total += o.Price
			}
			state.Update(s)
			if s.Total >= 50 {
				return rank{user, s.Total, "gold"}, nil
			}
			return rank{user, s.Total, "silver"}, nil
		})
	if err := printBatches(s, ranks, tidemill.Update); err != nil {
		fmt.Println(err)
	}
	// Output:
	// batch 0: ann 50 gold
	// batch 0: bob 5 silver
	// batch 1: bob 95 gold
}

// pageMemory remembers which pages a user has seen, for an hour each.
type pageMemory struct {
	seen  *tidemill.MapState[string, int64]
	total *tidemill.ValueState[int64]
}

type view struct {
	User, Page string
}

func (p *pageMemory) Init(h *tidemill.StateHandle) error {
	p.seen = tidemill.NewMapState[string, int64](h, "seen", tidemill.TTL(time.Hour))
	p.total = tidemill.NewValueState[int64](h, "total")
	return nil
}

func (p *pageMemory) HandleInputRows(user string, rows []view, _ *tidemill.Call, emit func(string)) error {
	total, _ := p.total.Get()
	p.total.Set(total + int64(len(rows)))
	for _, v := range rows {
		n, again := p.seen.Get(v.Page)
		p.seen.Put(v.Page, n+1)
		if !again {
			emit(fmt.Sprintf("%s found %s, after %d views", user, v.Page, total))
		}
	}
	return nil
}

// ExampleTransformWithState keeps a map and a number for every user.
func ExampleTransformWithState() {
	dir, remove := landBatches(
		`{"user":"ann","page":"home"}{"user":"ann","page":"shop"}{"user":"ann","page":"home"}`,
		`{"user":"ann","page":"shop"}{"user":"ann","page":"help"}{"user":"bob","page":"home"}`)
	defer remove()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		panic(err)
	}
	views := s.ReadStreamFrom("filesystem", map[string]string{"path": dir, "format": "json", "max_files_per_trigger": "1"}, nil)
	found := tidemill.TransformWithState(views.GroupBy(tidemill.Col("user")), tidemill.TransformOptions{},
		func() tidemill.StatefulProcessor[string, view, string] { return &pageMemory{} })
	if err := printBatches(s, found, tidemill.Append); err != nil {
		fmt.Println(err)
	}
	// Output:
	// batch 0: ann found home, after 0 views
	// batch 0: ann found shop, after 0 views
	// batch 1: ann found help, after 3 views
	// batch 1: bob found home, after 0 views
}

// ExampleFlatMapGroupsWithState_bounded runs a function over files that are there: once a
// key, without state of before.
func ExampleFlatMapGroupsWithState_bounded() {
	dir, remove := landBatches(`{"user":"bob","price":5}{"user":"ann","price":30}`, `{"user":"ann","price":20}`)
	defer remove()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		panic(err)
	}
	above := tidemill.FlatMapGroupsWithState(s.Read(dir, json.Options{}).GroupBy(tidemill.Col("user")), tidemill.GroupsOptions{},
		func(user string, rows []order, state *tidemill.GroupState[spent], emit func(order)) error {
			for _, o := range rows {
				if o.Price >= 20 {
					emit(o)
				}
			}
			return nil
		})
	rows, err := s.Collect(context.Background(), above)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rows.Release()
	fmt.Print(rows)
	// Output:
	// user:varchar  price:bigint
	// ann           30
	// ann           20
}

// ExampleUpdateStateByKey counts words, with every known word in every micro-batch.
func ExampleUpdateStateByKey() {
	dir, remove := landBatches(`{"word":"to"}{"word":"be"}{"word":"to"}`, `{"word":"be"}`)
	defer remove()
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		panic(err)
	}
	words := s.ReadStreamFrom("filesystem", map[string]string{"path": dir, "format": "json", "max_files_per_trigger": "1"}, nil)
	counts := tidemill.UpdateStateByKey(words.GroupBy(tidemill.Col("word")), func(_ string, rows []struct{}, state *tidemill.GroupState[int]) error {
		n, _ := state.Get()
		state.Update(n + len(rows))
		return nil
	})
	if err := printBatches(s, counts, tidemill.Update); err != nil {
		fmt.Println(err)
	}
	// Output:
	// batch 0: be 1
	// batch 0: to 2
	// batch 1: be 2
	// batch 1: to 2
}

// ExampleReduceByKeyAndWindow describes sums over the last minute, every ten seconds.
func ExampleReduceByKeyAndWindow() {
	s, err := tidemill.NewSession(tidemill.Options{})
	if err != nil {
		panic(err)
	}
	dir, remove := landBatches(`{"user":"ann","price":30}`)
	defer remove()
	orders := s.ReadStream(dir, json.Options{}, nil)
	window := tidemill.ArrivalWindow{Interval: 5 * time.Second, Length: time.Minute, Slide: 10 * time.Second}
	sums := tidemill.ReduceByKeyAndWindow[string](orders.GroupBy(tidemill.Col("user")), window, func(a, b int64) int64 { return a + b })
	fmt.Println(sums.Select(tidemill.Col("window_start"), tidemill.Col("window_end"), tidemill.Col("key"), tidemill.Col("value")).Schema())
	// To run it: s.WriteStream(sums).Trigger(tidemill.ProcessingTime(5 * time.Second)). …

	// Output:
	// window_start TIMESTAMP, window_end TIMESTAMP, key VARCHAR, value BIGINT
}
