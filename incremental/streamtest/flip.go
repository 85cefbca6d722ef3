package streamtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar/columnartest"
	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// FlipEverywhere stops a scenario before its last step, changes one byte of a file of
// the checkpoint or of the output's control files, and goes on. The query must refuse the
// file, or come to the right rows: never to wrong ones. perFile is how many bytes of each
// file are tried, 0 for all.
func FlipEverywhere(t *testing.T, s Scenario, perFile int, seed uint64) {
	t.Helper()
	mem := columnartest.Mem(t)
	want, _, err := s.reference(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	disk, w, err := s.stopped(t.Context(), mem)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Release() }()
	rnd := rand.New(rand.NewPCG(seed, 0))
	refused, right := 0, 0
	for _, name := range controlFiles(t, w) {
		data, err := vfs.ReadFile(disk, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range positions(rnd, len(data), perFile) {
			wrong, err := s.flipped(t.Context(), mem, disk, name, data, at, want)
			switch {
			case wrong != nil:
				t.Errorf("%s: byte %d of %s (%d bytes) changed: %v", s.Name, at, name, len(data), wrong)
			case err != nil:
				refused++
			default:
				right++
			}
		}
	}
	t.Logf("%s: %d changed bytes refused, %d made good", s.Name, refused, right)
}

// stopped is the scenario before its last step. Only sinks of files can be started again
// from a copy of the disk.
func (s *Scenario) stopped(ctx context.Context, mem arrowmemory.Allocator) (*vfs.Mem, *World, error) {
	disk := vfs.NewMem()
	w, err := s.world(disk, mem)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Steps[:len(s.Steps)-1] {
		if err := s.step(ctx, w, i, true); err != nil {
			return nil, nil, err
		}
	}
	return disk, w, w.Close()
}

// controlFiles are the files of a checkpoint and an output that are not data.
func controlFiles(t *testing.T, w *World) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{checkpointDir, outputDir} {
		names, err := w.List(dir)
		if err != nil && dir == checkpointDir {
			t.Fatal(err)
		}
		for _, name := range names {
			if dir == checkpointDir || strings.Contains(name, "/.tidemill/") {
				out = append(out, name)
			}
		}
	}
	return out
}

// positions draws n of size bytes, the first and the last among them; 0 is all.
func positions(rnd *rand.Rand, size, n int) []int {
	if n == 0 || size <= n {
		all := make([]int, size)
		for i := range all {
			all[i] = i
		}
		return all
	}
	chosen := map[int]bool{0: true, size - 1: true}
	for len(chosen) < n {
		chosen[rnd.IntN(size)] = true
	}
	return slices.Sorted(maps.Keys(chosen))
}

// flipped goes on from a copy of disk with one byte changed. err is a refusal, wrong
// anything that must not be.
func (s *Scenario) flipped(ctx context.Context, mem arrowmemory.Allocator, disk *vfs.Mem, name string, data []byte, at int, want *outcome) (wrong, err error) {
	copied := disk.Clone()
	changed := slices.Clone(data)
	changed[at] ^= 1 << (at % 8)
	w, err := s.world(copied, mem)
	if err != nil {
		return err, nil
	}
	defer func() { _ = w.Release() }()
	w.Clock.now = w.Clock.now.Add(1e15) // later than everything there
	if err := writeFile(copied, name, changed, w.Clock.now); err != nil {
		return err, nil
	}
	before, beforeErr := w.Output(ctx)
	if err := s.step(ctx, w, len(s.Steps)-1, true); err != nil {
		if !isRefusal(err) {
			return fmt.Errorf("it failed, but with no word that the file is damaged: %w", err), nil
		}
		after, afterErr := w.Output(ctx)
		if before != after || (beforeErr == nil) != (afterErr == nil) {
			return fmt.Errorf("refused with %w, but the output changed from\n%sto\n%s", err, before, after), nil
		}
		return nil, err
	}
	if err := w.Close(); err != nil {
		return err, nil
	}
	return s.compare(ctx, w, want, name), nil
}

func isRefusal(err error) bool {
	var refused *connector.RefusedError
	return errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrIncompatible) || errors.As(err, &refused)
}

// Twins are two processes with the same query on the same checkpoint.
func Twins(t *testing.T) (first, second *World) {
	t.Helper()
	mem := columnartest.Mem(t)
	disk := vfs.NewMem()
	s := Scenario{
		SQL:   `CREATE STREAM t (k VARCHAR) WITH (path = '/in/t', format = 'json');`,
		Query: `SELECT k FROM t`,
	}
	var worlds [2]*World
	for i := range worlds {
		w, err := s.world(disk, mem)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Release(); err != nil {
				t.Error(err)
			}
		})
		worlds[i] = w
	}
	return worlds[0], worlds[1]
}
