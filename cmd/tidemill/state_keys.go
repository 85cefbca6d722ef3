package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
	"github.com/tidemill/tidemill/columnar/keyenc"
	"github.com/tidemill/tidemill/logical/sql/ast"
)

// keyValue is one part of a key asked for.
type keyValue struct{ column, value string }

func parseKeys(args []string) ([]keyValue, error) {
	var out []keyValue
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok {
			return nil, usagef("%q is not KEY=VALUE", a)
		}
		out = append(out, keyValue{k, v})
	}
	return out, nil
}

// keyColumn is a column and the value that rows are to have there.
type keyColumn struct {
	at    int
	text  string // as CSV writes it; "" is null as well
	codec *keyenc.Codec
	value []byte // encoded by codec; nil: text is none of the column's type, or the type does not hold it
	why   error  // it is none
}

// columnOf finds the column of a key, and reads the value.
func columnOf(ctx context.Context, s *arrow.Schema, w keyValue) (keyColumn, error) {
	at, n := columnar.Lookup(s, w.column)
	if n != 1 {
		return keyColumn{}, usagef("the state has no column %q%s", w.column, columnar.DidYouMean(w.column, fieldNames(s)))
	}
	k := keyColumn{at: at, text: w.value}
	dt := s.Field(at).Type
	if w.value == "" || dt.ID() == arrow.STRING {
		return k, nil
	}
	var err error
	if k.codec, err = keyenc.New([]arrow.DataType{dt}, nil); err != nil {
		return k, err
	}
	forms := []func(context.Context, arrow.DataType, string) error{k.readText, k.readExpression}
	if dt.ID() == arrow.BINARY { // of which every text is one
		slices.Reverse(forms)
	}
	for _, read := range forms {
		if read(ctx, dt, w.value) == nil {
			return k, nil
		}
	}
	k.why = usagef("%s=%s: it is no %s, neither as text nor as an expression of SQL", w.column, w.value, columnar.TypeName(dt))
	return k, nil
}

// readText reads a text that a CAST takes. What the CAST would round is no key: but for a
// float, of which a text means the nearest, where that is neither zero nor infinite.
func (k *keyColumn) readText(ctx context.Context, dt arrow.DataType, text string) error {
	x := ast.QuoteString(text)
	v := "CAST(" + x + " AS " + columnar.TypeName(dt) + ")"
	switch dt.ID() {
	case arrow.FLOAT32, arrow.FLOAT64:
		return k.evaluate(ctx, v, "CASE WHEN "+v+" = 0 THEN NOT regexp_matches("+x+", '^[^eE]*[1-9]') ELSE isfinite("+v+") OR NOT regexp_matches("+x+", '[0-9]') END")
	case arrow.DATE32:
		return k.evaluate(ctx, v, "coalesce("+v+" = TRY_CAST("+x+" AS TIMESTAMP), true)")
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128:
		if err := k.evaluate(ctx, v, v+" = ("+text+")"); err == nil {
			return nil
		}
	}
	return k.evaluate(ctx, v, "true")
}

// readExpression reads an expression whose value the column's type holds: what is equal to
// it after the CAST. A text that it gives is read as one.
func (k *keyColumn) readExpression(ctx context.Context, dt arrow.DataType, expression string) error {
	x := "(" + expression + ")"
	rows, err := selectOne(ctx, x)
	if err != nil {
		return err
	}
	defer rows.Release()
	if column := rows.Batches()[0].Column(0); column.DataType().ID() == arrow.STRING && column.IsValid(0) {
		return k.readText(ctx, dt, string(columnar.AppendValue(nil, column, 0, time.UTC)))
	}
	v := "CAST(" + x + " AS " + columnar.TypeName(dt) + ")"
	return k.evaluate(ctx, v, v+" IS NOT DISTINCT FROM "+x)
}

// evaluate takes what an expression gives, if the condition same holds. Otherwise no row
// has that value.
func (k *keyColumn) evaluate(ctx context.Context, expression, same string) error {
	rows, err := selectOne(ctx, expression+" AS v, "+same+" AS same")
	if err != nil {
		return err
	}
	defer rows.Release()
	b := rows.Batches()[0]
	if is := b.Column(1).(*array.Boolean); is.IsNull(0) || !is.Value(0) {
		return nil
	}
	keys, err := k.encode(b.Column(0))
	if err != nil {
		return err
	}
	k.value = keys.Key(0)
	return nil
}

// selectOne computes expressions of SQL over nothing.
func selectOne(ctx context.Context, expressions string) (*tidemill.Rows, error) {
	s, err := newSession(nil)
	if err != nil {
		return nil, err
	}
	df, err := s.SQL(ctx, "SELECT "+expressions)
	if err != nil {
		return nil, err
	}
	rows, err := s.Collect(ctx, df)
	if err != nil {
		return nil, err
	}
	if rows.NumRows() != 1 {
		rows.Release()
		return nil, errors.New("an expression gives one value")
	}
	return rows, nil
}

func (k *keyColumn) encode(column arrow.Array) (*keyenc.Keys, error) {
	keys := &keyenc.Keys{}
	plain := columnar.PlainColumn(memory.DefaultAllocator, column)
	defer plain.Release()
	return keys, k.codec.Encode([]arrow.Array{plain}, keys)
}

// matches says which rows of b have the value: those it equals, or that are written so.
func (k *keyColumn) matches(b arrow.RecordBatch) (func(i int) bool, error) {
	column := b.Column(k.at)
	written := func(i int) bool {
		text := ""
		if column.IsValid(i) {
			text = string(columnar.AppendValue(nil, column, i, time.UTC))
		}
		return text == k.text
	}
	if k.value == nil {
		return written, nil
	}
	keys, err := k.encode(column)
	return func(i int) bool { return bytes.Equal(keys.Key(i), k.value) || written(i) }, err
}

// matching is the rows of b that have all the values; nil if there are none.
func matching(b arrow.RecordBatch, want []keyColumn) (arrow.RecordBatch, error) {
	if len(want) == 0 {
		b.Retain()
		return b, nil
	}
	tests := make([]func(i int) bool, len(want))
	for k := range want {
		var err error
		if tests[k], err = want[k].matches(b); err != nil {
			return nil, err
		}
	}
	var rows []int32
	for i := range int(b.NumRows()) {
		ok := true
		for _, test := range tests {
			ok = ok && test(i)
		}
		if ok {
			rows = append(rows, int32(i))
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return kernel.FilterBatch(memory.DefaultAllocator, b, rows), nil
}
