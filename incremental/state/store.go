package state

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/columnar"
)

// Store is one operator's state at one version.
type Store struct {
	provider *Provider
	operator string
	tables   []*Table

	files    checkpoint.OperatorState
	rows     map[string]int64 // of each table, at the version
	version  int64
	poisoned bool
	dirty    bool // may differ from its version
}

func newStore(p *Provider, spec Spec) (*Store, error) {
	s := &Store{provider: p, operator: spec.Operator}
	acct := &account{budget: p.opts.Budget, operator: spec.Operator}
	for _, schema := range spec.Tables {
		t, err := newTable(schema, p.opts, acct)
		if err != nil {
			s.release()
			return nil, err
		}
		s.tables = append(s.tables, t)
	}
	return s, nil
}

func (s *Store) release() {
	for _, t := range s.tables {
		t.release()
	}
	s.tables = nil
}

// load reads the tables of a version.
func (s *Store) load(ctx context.Context, files checkpoint.OperatorState) error {
	s.files, s.version = files, files.Version
	for _, f := range files.Files {
		if s.Table(f.Table) == nil {
			return fmt.Errorf("%w: the state of %s has a table %s, which the query does not", checkpoint.ErrIncompatible, s.operator, f.Table)
		}
	}
	for _, t := range s.tables {
		list := files.TableFiles(t.schema.Name)
		if len(list) == 0 {
			continue
		}
		if err := t.load(ctx, s.provider.files, s.operator, list); err != nil {
			return err
		}
	}
	return nil
}

// Table is the table of that name, nil if there is none.
func (s *Store) Table(name string) *Table {
	for _, t := range s.tables {
		if t.schema.Name == name {
			return t
		}
	}
	return nil
}

// Version is the version the Store holds: that it was opened at, or the one Commit
// made.
func (s *Store) Version() int64 { return s.version }

// Len is the number of rows of all tables.
func (s *Store) Len() int {
	n := 0
	for _, t := range s.tables {
		n += t.Len()
	}
	return n
}

// live is the number of rows of each table.
func (s *Store) live() map[string]int64 {
	rows := make(map[string]int64, len(s.tables))
	for _, t := range s.tables {
		rows[t.schema.Name] = int64(t.Len())
	}
	return rows
}

// Bytes is the memory held by all tables.
func (s *Store) Bytes() int64 {
	n := int64(0)
	for _, t := range s.tables {
		n += t.Bytes()
	}
	return n
}

// Commit writes a change file for each table that changed and returns the files that
// make up the next version, which the Store then holds. Whether anything believes in
// them is the caller's affair; the same batch run again overwrites them. After an error
// the Store is poisoned.
func (s *Store) Commit(ctx context.Context) (checkpoint.OperatorState, error) {
	if s.poisoned {
		return checkpoint.OperatorState{}, ErrPoisoned
	}
	s.poisoned = true // until it has gone well
	base := s.provider.adopt(s.files)
	to := s.version + 1
	written := make([]*checkpoint.StateFile, len(s.tables))
	g, ctx := errgroup.WithContext(ctx)
	for i, t := range s.tables {
		from := int64(0)
		if list := base.TableFiles(t.schema.Name); len(list) > 0 {
			from = list[len(list)-1].To
		}
		g.Go(func() error {
			return columnar.Guard("", func() (err error) {
				written[i], err = t.commit(ctx, s.provider.files, s.operator, from, to)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return checkpoint.OperatorState{}, err
	}
	next := checkpoint.OperatorState{Operator: s.operator, Version: to, Files: []checkpoint.StateFile{}}
	for i, t := range s.tables {
		next.Files = append(next.Files, base.TableFiles(t.schema.Name)...)
		if written[i] != nil {
			next.Files = append(next.Files, *written[i])
		}
		if err := t.committed(); err != nil {
			return checkpoint.OperatorState{}, err
		}
	}
	next.Rows = int64(s.Len())
	s.files, s.rows, s.version = next, s.live(), to
	s.poisoned, s.dirty = false, false
	return cloneState(next), nil
}

func cloneState(s checkpoint.OperatorState) checkpoint.OperatorState {
	s.Files = slices.Clone(s.Files)
	return s
}

// Abort gives the Store up: what the batch changed is in memory only, and gone with it.
// The next Open reads the version from its files.
func (s *Store) Abort() {
	s.provider.forget(s)
	s.poisoned = true
	s.release()
}
