package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/bench/harness"
)

// The README's section on speed stands between these lines.
const (
	sectionStart = "<!-- bench report: begin; written from bench/history, do not edit -->\n"
	sectionEnd   = "<!-- bench report: end -->\n"
)

// withSection puts the section into the text of a page.
func withSection(page, section []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(sectionStart))
	_, after, ok2 := bytes.Cut(rest, []byte(sectionEnd))
	if !ok || !ok2 {
		return nil, errors.New("the lines between which the section stands are missing")
	}
	return slices.Concat(before, []byte(sectionStart), section, []byte(sectionEnd), after), nil
}

// batchRows are the rows of the README's first table: results of the suite query.
var batchRows = []struct{ title, name string }{
	{"sum by a 100-value text (h2o q1), Parquet", "h2o_q01, parquet"},
	{"… CSV", "h2o_q01, csv"},
	{"sum and mean by a 100,000-value text (h2o q3), Parquet", "h2o_q03, parquet"},
	{"… CSV", "h2o_q03, csv"},
	{"three sums by a 100,000-value number (h2o q5), Parquet", "h2o_q05, parquet"},
	{"median and deviation, 10,000 groups (h2o q6), Parquet", "h2o_q06, parquet"},
	{"the two largest of each of 100,000 groups (h2o q8), Parquet", "h2o_q08, parquet"},
	{"six keys, about one group a row (h2o q10), Parquet", "h2o_q10, parquet"},
	{"count and max by 10 s window and 1,000 keys, Parquet", "window_10s, parquet"},
	{"… CSV", "window_10s, csv"},
	{"… JSON lines", "window_10s, jsonl"},
	{"filtered count, Parquet", "scan_count, parquet"},
	{"join with 1,000 rows, then sums, Parquet", "join_small, parquet"},
}

// peerNames are the other engines of the first table, as peers.py names them.
var peerNames = []struct{ title, name string }{{"Polars", "polars"}, {"DataFusion", "datafusion"}, {"Spark", "spark"}}

// readmeSection is what the README says of a report. What was not measured is left out.
func readmeSection(r *harness.Report) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Measured on: %s.\n", r.Suites["query"].Machine)
	if peers, ok := r.Suites["peers"]; ok {
		fmt.Fprintf(&b, "Polars, DataFusion and Spark `local[2]` (second run in a process): taken %s.\n", peers.Machine)
	}
	batchTable(&b, r)
	streamTable(&b, r)
	return b.Bytes()
}

func batchTable(b *bytes.Buffer, r *harness.Report) {
	peers := peerNames
	if _, ok := r.Suites["peers"]; !ok {
		peers = nil
	}
	b.WriteString("\n| 10 M rows, two cores, seconds | Tidemill | DuckDB | ratio | peak MB |")
	for _, p := range peers {
		fmt.Fprintf(b, " %s |", p.title)
	}
	b.WriteString("\n|---|---:|---:|---:|---:|" + strings.Repeat("---:|", len(peers)) + "\n")
	for _, row := range batchRows {
		res := r.Find("query", row.name)
		if res == nil {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s / %s |", row.title, value(res, "tidemill s"), value(res, "DuckDB s"), value(res, harness.RatioColumn),
			value(res, "tidemill MB"), value(res, "DuckDB MB"))
		for _, p := range peers {
			fmt.Fprintf(b, " %s |", value(r.Find("peers", row.name+", "+p.name), "s"))
		}
		b.WriteString("\n")
	}
	if mean := r.Mean("tpch", harness.RatioColumn); mean > 0 {
		fmt.Fprintf(b, "| TPC-H, scale 1, geometric mean of 22 queries | | | %s | |%s\n", harness.Short(mean), strings.Repeat(" |", len(peers)))
	}
}

// value is a cell; of nothing, nothing.
func value(res *harness.Result, column string) string {
	if res == nil {
		return ""
	}
	v, ok := res.Values[column]
	if !ok {
		return ""
	}
	return harness.Short(v.Number)
}

// streamRows are the rows of the second table: {column} stands for a value of the result.
var streamRows = []struct{ suite, name, title, text string }{
	{"nexmark", "q10", "NEXMark q10, the log of all bids in folders by day and minute", "{events/s} events a second, {events/s/core} a core"},
	{"nexmark", "q00", "NEXMark q0, as it is", "{events/s/core} events a second and core"},
	{"nexmark", "q03", "NEXMark q3, two streams joined", "{events/s/core} events a second and core"},
	{"nexmark", "q05", "NEXMark q5, hot items of sliding windows", "{events/s/core} events a second and core"},
	{"nexmark", "q08", "NEXMark q8, windows joined", "{events/s/core} events a second and core"},
	{"fresh", "tidemill, update mode", "kept fresh: a file of 50,000 rows into 3.2 M groups", "{mean s} s, p99 {p99 s} s; {MB} MB"},
	{"fresh", "tidemill, append mode, closed windows to Parquet", "… closed windows to Parquet", "{mean s} s; {MB} MB"},
	{"fresh", "DuckDB, INSERT ON CONFLICT", "… DuckDB's `INSERT … ON CONFLICT`", "{mean s} s: Tidemill takes {ratio} of it"},
	{"fresh", "DuckDB, re-scan of all files", "… DuckDB's query over all 100 files", "{mean s} s: Tidemill takes {ratio} of it"},
	{"peers", "fresh, spark", "… Spark Structured Streaming, RocksDB, the first 40 files", "{s} s a file; {MB} MB"},
	{"latency", "filter, trigger to commit", "batch of 1,000 rows, filtered into Parquet, p50", "{p50 ms} ms"},
	{"latency", "filter, trigger to commit, without fsync", "… without its fsyncs", "{p50 ms} ms"},
	{"latency", "filter, rename to output", "… from a file's rename to its output", "{p50 ms} ms, p99 {p99 ms} ms"},
	{"recovery", "10000000 groups", "restart with 10 M groups of state", "{restart s} s"},
	{"overhead", "csv", "exactly once, batches of 1 M CSV rows, 10,000 groups", overheadText},
	{"overhead", "parquet", "… Parquet", overheadText},
}

// overheadText compares with the same batches without any promise first: what exactly-once
// costs. One query over all files has neither batches nor durability.
const overheadText = "{over by hand %} % time, {CPU over by hand %} % processor time against the same batches by hand (nothing logged, saved or synced); {over same work %} % and {CPU over same work %} % against the same work in one query; {overhead %} % time against a query that only counts"

func streamTable(b *bytes.Buffer, r *harness.Report) {
	b.WriteString("\n| streams, two cores, exactly once, every fsync on | |\n|---|---|\n")
	for _, row := range streamRows {
		res := r.Find(row.suite, row.name)
		if res == nil {
			continue
		}
		text := row.text
		for column := range res.Values {
			text = strings.ReplaceAll(text, "{"+column+"}", value(res, column))
		}
		fmt.Fprintf(b, "| %s | %s |\n", row.title, text)
	}
}
