package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

func newStatus() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status DIR",
		Short: "of a checkpoint: last batch, offsets, watermark, state, lag, last error",
		Args:  takes(1, 1, "one DIR, a checkpoint"),
		RunE: func(_ *cobra.Command, args []string) error {
			st, err := readStatus(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(os.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(st)
			}
			st.print(os.Stdout)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// inspect looks at a checkpoint; a directory that is none is bad usage.
func inspect(dir string, look func(*checkpoint.View) error) error {
	return noCheckpoint(checkpoint.Inspect(vfs.OS(), dir, look))
}

// noCheckpoint makes bad usage of the error that a directory is no checkpoint.
func noCheckpoint(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return &usageError{err}
	}
	return err
}

// status is what the status command tells.
type status struct {
	Checkpoint string               `json:"checkpoint"`
	Query      string               `json:"query"`
	Running    bool                 `json:"running"`
	Batch      int64                `json:"lastCommittedBatch"`
	Planned    int64                `json:"lastPlannedBatch"`
	BatchTime  string               `json:"batchTime,omitempty"`
	Lag        string               `json:"sinceBatch,omitempty"`
	Watermark  string               `json:"watermark,omitempty"`
	Sources    []sourceStatus       `json:"sources"`
	State      []stateStatus        `json:"state"`
	Counters   *checkpoint.Counters `json:"lastBatchRows,omitempty"`
	LastError  string               `json:"lastError,omitempty"`
}

type sourceStatus struct {
	Name   string          `json:"name"`
	Path   string          `json:"path"`
	Offset json.RawMessage `json:"offset"` // null before the first
}

type stateStatus struct {
	Operator string `json:"operator"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Files    int    `json:"files"`
}

func readStatus(dir string) (*status, error) {
	var st *status
	err := inspect(dir, func(v *checkpoint.View) error {
		meta, err := v.Metadata()
		if err != nil {
			return err
		}
		b, err := v.Batches()
		if err != nil {
			return err
		}
		st = &status{Checkpoint: dir, Query: meta.ID, Sources: []sourceStatus{}, State: []stateStatus{}, Batch: b.LastCommitted(), Planned: b.LastPlanned()}
		if st.Running, err = v.Locked(); err != nil {
			return err
		}
		if e, err := v.LastError(); err == nil && e != nil {
			st.LastError = fmt.Sprintf("%s (batch %d, %s)", e.Message, e.Batch, utc(e.Time))
		}
		return st.readBatch(v)
	})
	return st, err
}

// readBatch adds what the newest commit says.
func (st *status) readBatch(v *checkpoint.View) error {
	paths := map[string]string{}
	if plan, err := v.Plan(); err == nil {
		for _, s := range plan.Sources {
			paths[s.Name] = s.Identity
			if st.Batch == checkpoint.NoBatch {
				st.Sources = append(st.Sources, sourceStatus{Name: s.Name, Path: s.Identity})
			}
		}
	}
	if st.Batch == checkpoint.NoBatch {
		return nil
	}
	c, err := v.Commit(st.Batch)
	if err != nil {
		return err
	}
	st.BatchTime = utc(c.Offsets.Time)
	st.Lag = time.Since(time.UnixMicro(c.Offsets.Time)).Round(time.Second).String()
	st.Counters = &c.Counters
	if c.NextWatermark != nil {
		st.Watermark = utc(*c.NextWatermark)
	}
	for _, s := range c.Sources {
		st.Sources = append(st.Sources, sourceStatus{Name: s.Name, Path: paths[s.Name], Offset: offsetJSON(s.End)})
	}
	for _, s := range c.State {
		st.State = append(st.State, stateStatus{Operator: s.Operator, Rows: s.Rows, Bytes: s.Bytes(), Files: len(s.Files)})
	}
	return nil
}

// offsetJSON is an offset as JSON: most are that already.
func offsetJSON(o connector.Offset) json.RawMessage {
	switch {
	case o == "":
		return nil
	case json.Valid([]byte(o)):
		return json.RawMessage(o)
	}
	text, _ := json.Marshal(string(o)) // a string is always JSON
	return text
}

func utc(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z")
}

func (st *status) print(w io.Writer) {
	fmt.Fprintf(w, "checkpoint  %s\nquery       %s\n", st.Checkpoint, st.Query)
	running := "no"
	if st.Running {
		running = "yes"
	}
	fmt.Fprintf(w, "running     %s\n", running)
	if st.Batch == checkpoint.NoBatch {
		fmt.Fprintln(w, "batches     none yet")
	} else {
		fmt.Fprintf(w, "batch       %d committed at %s (%s ago)\n", st.Batch, st.BatchTime, st.Lag)
		fmt.Fprintf(w, "rows        in %d, out %d, late %d, malformed %d\n", st.Counters.In, st.Counters.Out, st.Counters.Late, st.Counters.Malformed)
	}
	if st.Planned > st.Batch {
		fmt.Fprintf(w, "open        batch %d is planned and not committed\n", st.Planned)
	}
	if st.Watermark != "" {
		fmt.Fprintf(w, "watermark   %s\n", st.Watermark)
	}
	for _, s := range st.Sources {
		offset := "nothing yet"
		if s.Offset != nil {
			offset = string(s.Offset)
		}
		fmt.Fprintf(w, "source      %s  %s  %s\n", s.Name, s.Path, offset)
	}
	for _, s := range st.State {
		fmt.Fprintf(w, "state       %s  %s, %s in %s\n", s.Operator, count(s.Rows, "row"), byteSize(s.Bytes), count(int64(s.Files), "file"))
	}
	if st.LastError != "" {
		fmt.Fprintf(w, "last error  %s\n", st.LastError)
	}
}
