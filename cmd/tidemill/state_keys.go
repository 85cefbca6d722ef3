package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

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
	value []byte // encoded by codec; nil: text is none of the column's type
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
	name := columnar.TypeName(dt)
	forms := []string{"CAST(" + ast.QuoteString(w.value) + " AS " + name + ")", "CAST((" + w.value + ") AS " + name + ")"}
	if dt.ID() == arrow.BINARY { // of which every text is one
		slices.Reverse(forms)
	}
	for _, form := range forms {
		if k.value, err = k.evaluate(ctx, form); err == nil {
			return k, nil
		}
	}
	k.why = usagef("%s=%s: it is no %s, neither as text nor as an expression of SQL", w.column, w.value, name)
	return k, nil
}

// evaluate computes an expression of SQL over nothing.
func (k *keyColumn) evaluate(ctx context.Context, expression string) ([]byte, error) {
	s, err := newSession(nil)
	if err != nil {
		return nil, err
	}
	df, err := s.SQL(ctx, "SELECT "+expression)
	if err != nil {
		return nil, err
	}
	rows, err := s.Collect(ctx, df)
	if err != nil {
		return nil, err
	}
	defer rows.Release()
	if rows.NumRows() != 1 {
		return nil, errors.New("an expression gives one value")
	}
	keys, err := k.encode(rows.Batches()[0].Column(0))
	if err != nil {
		return nil, err
	}
	return keys.Key(0), nil
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
