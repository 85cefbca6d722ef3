package tidemill_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/formats/csv"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
)

// noContext is what a caller passes who has none.
var noContext context.Context

// TestZeroValues calls everything that is exported with zero values: nothing panics, and
// what cannot be done is one clear mistake of usage, told at the latest where the thing is
// used.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	s := zeroSession(t)
	df := s.Range(0, 3, 1)
	w := s.WriteStream(zeroStream(s))
	for _, receiver := range []struct {
		name  string
		value any
		leave []string // what needs more than a zero value to be tried
	}{
		{"Session", s, nil},
		{"nil Session", (*tidemill.Session)(nil), nil},
		{"zero Session", &tidemill.Session{}, nil},
		{"nil StreamWriter", (*tidemill.StreamWriter)(nil), nil},
		{"writer of a nil Session", (*tidemill.Session)(nil).WriteStream(df).To("out", nil), nil},
		{"nil Query", (*tidemill.Query)(nil), nil},
		{"zero Query", &tidemill.Query{}, nil},
		{"nil Script", (*tidemill.Script)(nil), nil},
		{"zero Script", &tidemill.Script{}, nil},
		{"nil Running", (*tidemill.Running)(nil), nil},
		{"zero Running", &tidemill.Running{}, nil},
		{"nil Rows", (*tidemill.Rows)(nil), nil},
		{"nil Replayed", (*tidemill.Replayed)(nil), nil},
		{"nil Verification", (*tidemill.Verification)(nil), nil},
		{"StreamWriter", w, nil},
		{"zero StreamWriter", &tidemill.StreamWriter{}, nil},
		{"DataFrame", df, nil},
		{"nil DataFrame", (*logical.DataFrame)(nil), nil},
		{"zero DataFrame", &logical.DataFrame{}, nil},
		{"GroupedData", df.GroupBy(tidemill.Col("id")), nil},
		{"nil GroupedData", (*logical.GroupedData)(nil), nil},
		{"zero GroupedData", &logical.GroupedData{}, nil},
		{"Term", tidemill.Col("id"), nil},
		{"zero Term", tidemill.Term{}, nil},
		{"When", tidemill.When(tidemill.Lit(true), tidemill.Lit(1)), nil},
		{"RowWindow", tidemill.PartitionBy(), nil},
		{"zero RowWindow", tidemill.RowWindow{}, nil},
		{"Rows", tidemill.NewRows(nil, nil), nil},
		{"zero Rows", &tidemill.Rows{}, nil},
		{"Trigger", tidemill.Trigger{}, nil},
		{"Trigger of no kind", tidemill.Trigger{Kind: 99}, nil},
		{"OutputMode", tidemill.OutputMode(99), nil},
		{"TimeMode", tidemill.TimeMode(99), nil},
		{"JoinKind", logical.JoinKind(99), nil},
		{"PanicError", &tidemill.PanicError{}, nil},
		{"OptionError", &tidemill.OptionError{}, nil},
		{"RefusedError", &tidemill.RefusedError{}, nil},
		{"RecordError", &tidemill.RecordError{}, nil},
		{"SQLError", &tidemill.SQLError{}, nil},
	} {
		v := reflect.ValueOf(receiver.value)
		for i := range v.NumMethod() {
			name, m := v.Type().Method(i).Name, v.Method(i)
			for _, args := range zeroArgs(m.Type()) {
				call := fmt.Sprintf("%s.%s(%d zero values)", receiver.name, name, len(args))
				zeroCall(t, s, df, call, func() []reflect.Value { return m.Call(args) })
			}
		}
	}
}

// TestZeroFunctions is TestZeroValues for functions.
func TestZeroFunctions(t *testing.T) {
	t.Parallel()
	s := zeroSession(t)
	df := s.Range(0, 3, 1)
	g := df.GroupBy(tidemill.Col("id"))
	type row struct{ ID int64 }
	type count struct{ N int64 }
	window := tidemill.ArrivalWindow{Length: time.Minute, Interval: time.Second}
	for name, f := range map[string]any{
		"AvailableNow": tidemill.AvailableNow, "Once": tidemill.Once, "ProcessingTime": tidemill.ProcessingTime,
		"Avg": tidemill.Avg, "Col": tidemill.Col, "Count": tidemill.Count, "First": tidemill.First, "Func": tidemill.Func, "Last": tidemill.Last,
		"Lit": tidemill.Lit, "Max": tidemill.Max, "Min": tidemill.Min, "Sum": tidemill.Sum, "When": tidemill.When,
		"Window": tidemill.Window, "SessionWindow": tidemill.SessionWindow, "PartitionBy": tidemill.PartitionBy,
		"CurrentRow": tidemill.CurrentRow, "Preceding": tidemill.Preceding, "Following": tidemill.Following,
		"UnboundedPreceding": tidemill.UnboundedPreceding, "UnboundedFollowing": tidemill.UnboundedFollowing,
		"KindOf": tidemill.KindOf, "NewRows": tidemill.NewRows, "ScalarFunc": tidemill.ScalarFunc, "TTL": tidemill.TTL,
		"FailedDataFrame": logical.FailedDataFrame, "NewDataFrame": logical.NewDataFrame,
		"CountByWindow":               tidemill.CountByWindow,
		"ReduceByWindow":              tidemill.ReduceByWindow[row],
		"ReduceByKeyAndWindow":        tidemill.ReduceByKeyAndWindow[row, row],
		"ReduceByKeyAndWindowInverse": tidemill.ReduceByKeyAndWindowInverse[row, row],
		"MapGroupsWithState":          tidemill.MapGroupsWithState[row, row, count, row],
		"FlatMapGroupsWithState":      tidemill.FlatMapGroupsWithState[row, row, count, row],
		"MapWithState":                tidemill.MapWithState[row, row, count, row],
		"UpdateStateByKey":            tidemill.UpdateStateByKey[row, row, count],
		"TransformWithState":          tidemill.TransformWithState[row, row, row],
		"TransformWithInitialState":   tidemill.TransformWithInitialState[row, row, row, row],
		"NewValueState":               tidemill.NewValueState[int64],
		"NewListState":                tidemill.NewListState[int64],
		"NewMapState":                 tidemill.NewMapState[string, int64],
		// With what is right before what is zero.
		"CountByWindow of a window": func() *logical.DataFrame { return tidemill.CountByWindow(nil, window) },
		"ReduceByWindow of rows":    func() *logical.DataFrame { return tidemill.ReduceByWindow[row](df, window, nil) },
		"ReduceByKeyAndWindow of groups": func() *logical.DataFrame {
			return tidemill.ReduceByKeyAndWindow[row, row](g, window, nil)
		},
		"MapGroupsWithState of groups": func() *logical.DataFrame {
			return tidemill.MapGroupsWithState[row, row, count, row](g, tidemill.GroupsOptions{}, nil)
		},
		"MapGroupsWithState of no groups": func() *logical.DataFrame {
			return tidemill.MapGroupsWithState(nil, tidemill.GroupsOptions{}, func(row, []row, *tidemill.GroupState[count]) (row, error) { return row{}, nil })
		},
		"FlatMapGroupsWithState in a mode that is none": func() *logical.DataFrame {
			return tidemill.FlatMapGroupsWithState(g, tidemill.GroupsOptions{Mode: 99}, func(row, []row, *tidemill.GroupState[count], func(row)) error { return nil })
		},
		"FlatMapGroupsWithState by a clock that is none": func() *logical.DataFrame {
			return tidemill.FlatMapGroupsWithState(g, tidemill.GroupsOptions{Timeout: 99}, func(row, []row, *tidemill.GroupState[count], func(row)) error { return nil })
		},
		"MapWithState of a negative time-out": func() *logical.DataFrame {
			return tidemill.MapWithState(g, tidemill.MapWithStateOptions{Timeout: -1}, func(row, *row, *tidemill.GroupState[count]) (row, bool, error) { return row{}, false, nil })
		},
		"TransformWithState of nil processors": func() *logical.DataFrame {
			return tidemill.TransformWithState(g, tidemill.TransformOptions{}, func() tidemill.StatefulProcessor[row, row, row] { return nil })
		},
	} {
		v := reflect.ValueOf(f)
		for _, args := range zeroArgs(v.Type()) {
			zeroCall(t, s, df, fmt.Sprintf("%s(%d zero values)", name, len(args)), func() []reflect.Value { return v.Call(args) })
		}
	}
}

// zeroArgs are lists of zero values for a function: without and with a value more.
func zeroArgs(f reflect.Type) [][]reflect.Value {
	var args []reflect.Value
	for i := range f.NumIn() {
		if f.IsVariadic() && i == f.NumIn()-1 {
			return [][]reflect.Value{args, append(args[:len(args):len(args)], reflect.Zero(f.In(i).Elem()))}
		}
		args = append(args, reflect.Zero(f.In(i)))
	}
	return [][]reflect.Value{args}
}

// zeroCall calls, and uses what comes back as its kind is used.
func zeroCall(t *testing.T, s *tidemill.Session, df *logical.DataFrame, call string, f func() []reflect.Value) {
	t.Helper()
	err := columnar.Guard(call, func() error {
		for _, out := range f() {
			if err := zeroUse(s, df, out.Interface()); err != nil {
				zeroError(t, call, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v\n%s", err, err.(*tidemill.PanicError).Stack)
	}
}

func zeroUse(s *tidemill.Session, df *logical.DataFrame, x any) error {
	ctx := context.Background()
	switch x := x.(type) {
	case error:
		return x
	case *logical.DataFrame:
		_, err := x.Plan()
		if err == nil {
			var rows *tidemill.Rows
			if rows, err = s.Collect(ctx, x); err == nil {
				rows.Release()
			}
		}
		return err
	case *logical.GroupedData:
		_, err := x.Count().Plan()
		return err
	case tidemill.Term:
		for _, used := range []*logical.DataFrame{
			df.Select(x), df.Where(x), df.GroupBy(x).Count(), df.OrderBy(x), df.Agg(x), df.WithColumn("x", x), df.Explode(x), df.WithWindow(x),
		} {
			if _, err := used.Plan(); err != nil {
				return err
			}
		}
	case tidemill.RowWindow:
		_, err := df.Select(tidemill.Func("rank").Over(x)).Plan()
		return err
	case tidemill.FrameEnd:
		_, err := df.Select(tidemill.Sum(tidemill.Col("id")).Over(tidemill.PartitionBy().Rows(x, x))).Plan()
		return err
	case *tidemill.StreamWriter:
		q, err := x.Trigger(tidemill.Once()).Start(ctx)
		if err == nil {
			err = q.Wait(ctx)
		}
		return err
	case *function.Scalar:
		return s.RegisterFunction(x)
	case tidemill.Trigger:
		return x.Check()
	}
	return nil
}

// zeroError checks that an error is one line of usage that says something.
func zeroError(t *testing.T, call string, err error) {
	t.Helper()
	text := err.Error()
	if tidemill.KindOf(err) != tidemill.UsageError {
		t.Errorf("%s: kind %d: %v", call, tidemill.KindOf(err), err)
	}
	for _, bad := range []string{"panic", "bug:", "nil pointer", "%!", "goroutine ", "<nil>"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s: %s", call, text)
		}
	}
}

func zeroSession(t *testing.T) *tidemill.Session {
	s, err := tidemill.NewSession(tidemill.Options{}.WithFS(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func zeroStream(s *tidemill.Session) *logical.DataFrame {
	schema := columnar.NewSchema(columnar.Field("n", columnar.Int64))
	return s.ReadStream("in", csv.Options{}, schema)
}

// TestIncomplete is what a caller forgot, or got wrong, beside zero values.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	s := zeroSession(t)
	df := s.Range(0, 3, 1)
	stream := zeroStream(s)
	always, anything := function.Always(columnar.Int64), function.AnyType()
	bind := func([]arrow.DataType, []arrow.Array) (function.Kernel, error) { return nil, nil }
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no overloads", s.RegisterFunction(&function.Scalar{Name: "f"}), "register function: function f has no overloads"},
		{"no Result", s.RegisterFunction(&function.Scalar{Name: "f", Overloads: []function.Overload{{Bind: bind}}}), "register function: function f: overload 0 has no Result"},
		{"no Bind", s.RegisterFunction(&function.Scalar{Name: "f", Overloads: []function.Overload{{Result: always}}}), "register function: function f: overload 0 has nothing to call; give it a Bind, or ScalarFunc a function"},
		{"a nil argument", s.RegisterFunction(&function.Scalar{Name: "f", Overloads: []function.Overload{{Args: []function.Matcher{nil}, Result: always, Bind: bind}}}), "register function: function f: argument 1 of overload 0 is nil; use Exactly or AnyType"},
		{"variadic without arguments", s.RegisterFunction(&function.Scalar{Name: "f", Overloads: []function.Overload{{Variadic: true, Result: always, Bind: bind}}}), "register function: function f: overload 0 is variadic and has no argument to repeat"},
		{"a name with a blank", s.RegisterFunction(tidemill.ScalarFunc("a b", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), `register function: "a b" cannot be the name of a function; use letters, digits and underscores`},
		{"a name of an operator", s.RegisterFunction(tidemill.ScalarFunc("<=>", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), `register function: "<=>" cannot be the name of a function; use letters, digits and underscores`},
		{"an alias that is empty", s.RegisterFunction(&function.Scalar{Name: "f", Aliases: []string{""}, Overloads: []function.Overload{{Result: always, Bind: bind}}}), `register function: "" cannot be the name of a function; use letters, digits and underscores`},
		{"a word of the language", s.RegisterFunction(tidemill.ScalarFunc("Select", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), "register function: Select is a word of the language; give the function another name"},
		{"a form of the language", s.RegisterFunction(tidemill.ScalarFunc("cast", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), "register function: cast is a word of the language; give the function another name"},
		{"a window function", s.RegisterFunction(tidemill.ScalarFunc("rank", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), "register function: rank is a word of the language; give the function another name"},
		{"a name that is taken", s.RegisterFunction(tidemill.ScalarFunc("UPPER", nil, columnar.Int64, func([]any) (any, error) { return nil, nil })), "register function: function UPPER is already registered"},
		{"no New", s.RegisterAggregate(&function.Aggregate{Name: "g", Overloads: []function.AggregateOverload{{Args: []function.Matcher{anything}, Result: always}}}), "register aggregate: aggregate g: overload 0 has no New"},
		{"an aggregate by a name that is taken", s.RegisterAggregate(&function.Aggregate{Name: "sum", Overloads: []function.AggregateOverload{{Result: always, New: product().Overloads[0].New}}}), "register aggregate: function sum is already registered"},
		{"a connector without anything", s.RegisterConnector(connector.Connector{Name: "c"}), "register connector: c has neither Table nor Source nor Sink"},
		{"a table without a name", s.RegisterTable("", nil), "register table: it has no name"},
		{"a table that is nil", s.RegisterTable("t", nil), "register table: t is nil"},
		{"a view without a name", s.CreateView("", df), "create view: it has no name"},
		{"a view of nothing", s.CreateView("v", nil), "the DataFrame is nil; make one with Read, ReadStream, SQL or Table of a Session"},
		{"no session", started(new(tidemill.StreamWriter)), "the StreamWriter has no session; make it with Session.WriteStream"},
		{"no DataFrame", started(s.WriteStream(nil).To("out", nil)), "the DataFrame is nil; make one with Read, ReadStream, SQL or Table of a Session"},
		{"no destination", started(s.WriteStream(stream)), "the query has no destination; call To, ToConnector, ToSink or ForeachBatch"},
		{"no function", started(s.WriteStream(stream).ForeachBatch(nil)), "foreachBatch: the function is nil"},
		{"no sink", started(s.WriteStream(stream).ToSink("ledger", nil)), "toSink: the function that opens ledger is nil"},
		{"a path that is empty", started(s.WriteStream(stream).To("", nil)), `option path: it is missing: name the output directory`},
		{"options of no format", started(s.WriteStream(stream).To("out", 5)), "to: int is not the Options of a format; use csv.Options, json.Options, parquet.Options, text.Options, ipc.Options or avro.Options"},
		{"no context", startedIn(noContext, s.WriteStream(stream).To("out", nil)), "the context is nil; use context.Background()"},
		{"a negative interval", started(s.WriteStream(stream).To("out", nil).Trigger(tidemill.ProcessingTime(-time.Second))), "the trigger's interval -1s is negative"},
		{"a trigger of no kind", started(s.WriteStream(stream).To("out", nil).Trigger(tidemill.Trigger{Kind: 9})), "TriggerKind(9) is no kind of trigger"},
		{"a mode that is none", started(s.WriteStream(stream).To("out", nil).Mode(7)), "OutputMode(7) is no output mode; use Append, Update or Complete"},
		{"a partition column that is none", started(s.WriteStream(stream).To("out", nil).PartitionBy("m")), `option partition_by = "m": there is no column m; known are n`},
		{"a kind of join that is none", planned(df.Join(df, 9, tidemill.Lit(true))), "join: JoinKind(9) is no kind of join; use InnerJoin, LeftJoin, RightJoin, FullJoin, SemiJoin, AntiJoin or CrossJoin"},
		{"a cast to no type", planned(df.Select(tidemill.Col("id").Cast(nil))), "select: the type to cast to is nil; use one of package columnar, such as columnar.Int64"},
		{"a cast to a foreign type", planned(df.Select(tidemill.Col("id").Cast(arrow.FixedWidthTypes.Time32s))), "select: the engine does not compute with time32[s]; use a type of package columnar, such as columnar.Timestamp"},
		{"rows without a schema", planned(s.Values(nil, []any{1})), "values: the schema is nil; make one with columnar.NewSchema"},
		{"a value that is none of its column", planned(s.Values(columnar.NewSchema(columnar.Field("a", columnar.Int64), columnar.Field("b", columnar.Date)), []any{1, "2024-01-01"}, []any{2, "yesterday"})),
			"values: row 1, column b: cannot cast \"yesterday\" to DATE"},
		{"a value that does not fit", planned(s.Values(columnar.NewSchema(columnar.Field("a", columnar.Int8)), []any{300})), "values: row 0, column a: cannot cast 300 to TINYINT"},
		{"a value of no type", planned(s.Values(columnar.NewSchema(columnar.Field("a", columnar.Int8)), []any{struct{}{}})), "values: row 0, column a: a struct {} cannot be a constant; use a bool, number, string, []byte, time.Time or time.Duration"},
		{"a range without a step", planned(s.Range(0, 3, 0)), "range: the step is 0"},
	} {
		if c.err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		zeroError(t, c.name, c.err)
	}
}

func started(w *tidemill.StreamWriter) error { return startedIn(context.Background(), w) }

func startedIn(ctx context.Context, w *tidemill.StreamWriter) error {
	q, err := w.Start(ctx)
	if err == nil {
		q.Kill()
	}
	return err
}

func planned(df *logical.DataFrame) error {
	_, err := df.Plan()
	return err
}
