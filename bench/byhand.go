package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/bench/harness"
	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/memory"
	"github.com/tidemill/tidemill/formats/parquet"
)

// byHand is what somebody would write who needs the batches of a stream, but no promise:
// each file is aggregated, what comes of it is merged with the groups so far, which are
// kept in memory, and the new result replaces the one before. Nothing is logged, saved,
// hashed or synced, and no batch begins before the one before it has ended.
type byHand struct {
	session *tidemill.Session
	out     string
	groups  *memory.Table
}

func (s *suites) byHand(ctx context.Context, dir, format, work string) error {
	session, err := s.session()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(dir + "/part-*")
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no files", dir)
	}
	h := byHand{session: session, out: work + "/result.parquet"}
	defer h.forget()
	for i, file := range files {
		if err := h.batch(ctx, i, fmt.Sprintf("CREATE TABLE part%d (ts TIMESTAMP, key BIGINT, value DOUBLE) WITH (path = '%s', format = '%s');", i, filepath.ToSlash(file), format)); err != nil {
			return err
		}
	}
	return nil
}

// batch takes file i into the result. table is the statement that names it.
func (h *byHand) batch(ctx context.Context, i int, table string) error {
	query := fmt.Sprintf("SELECT key, count(*) AS n, max(value) AS top FROM part%d GROUP BY key", i)
	if i > 0 {
		query = fmt.Sprintf("SELECT key, CAST(sum(n) AS BIGINT) AS n, max(top) AS top FROM (%s UNION ALL SELECT key, n, top FROM groups%d) GROUP BY key", query, i)
	}
	df, err := h.session.SQL(ctx, table+query)
	if err != nil {
		return err
	}
	rows, err := h.session.Query(ctx, df)
	if err != nil {
		return err
	}
	batches, err := collect(ctx, rows)
	defer releaseAll(batches)
	if err != nil {
		return err
	}
	if err := h.write(rows.Schema(), batches); err != nil {
		return err
	}
	h.forget()
	if h.groups, err = memory.NewTable(rows.Schema(), batches...); err != nil {
		return err
	}
	return h.session.RegisterTable(fmt.Sprintf("groups%d", i+1), h.groups)
}

// write replaces the result.
func (h *byHand) write(schema *arrow.Schema, batches []arrow.RecordBatch) error {
	f, err := os.Create(h.out + ".tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := parquet.NewFileWriter(f, schema, parquet.WriterConfig{})
	if err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), h.out)
}

func (h *byHand) forget() {
	if h.groups != nil {
		h.groups.Release()
		h.groups = nil
	}
}

// collect reads to the end, and closes.
func collect(ctx context.Context, rows columnar.Reader) (batches []arrow.RecordBatch, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for {
		b, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return batches, nil
		}
		if err != nil {
			return batches, err
		}
		batches = append(batches, b)
	}
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// besideByHand runs the batches by hand and as a stream, in this process and in turns, and
// gives the runs of median time.
func (s *suites) besideByHand(ctx context.Context, dir, format string) (hand, stream harness.Measurement, err error) {
	var runs [2][]harness.Measurement
	for range s.n + 1 { // the first warms up
		for i, run := range []func(work string) error{
			func(work string) error { return s.byHand(ctx, dir, format, work) },
			func(work string) error { return s.asStream(ctx, dir, format, work) },
		} {
			m, err := s.timed(run)
			if err != nil {
				return hand, stream, err
			}
			runs[i] = append(runs[i], m)
		}
	}
	return harness.Median(runs[0][1:]), harness.Median(runs[1][1:]), nil
}

// asStream runs the batches as a stream, exactly once.
func (s *suites) asStream(ctx context.Context, dir, format, work string) error {
	running, err := s.script(ctx, overheadJob(dir, format, work), nil, nil)
	if err != nil {
		return err
	}
	return running.Wait()
}

// timed runs f in a directory of its own, and measures this process.
func (s *suites) timed(f func(work string) error) (m harness.Measurement, err error) {
	work, err := os.MkdirTemp(s.dir, "run-")
	if err != nil {
		return m, err
	}
	start, cpu := time.Now(), ownCPU()
	err = f(filepath.ToSlash(work))
	m.Wall, m.CPU = time.Since(start), ownCPU()-cpu
	return m, errors.Join(err, os.RemoveAll(work))
}

// ownCPU is the processor time of this process so far, 0 where it is not known.
func ownCPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
