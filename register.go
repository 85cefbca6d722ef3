package tidemill

import (
	"fmt"
	"strings"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/function"
	"github.com/tidemill/tidemill/logical"
	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/sql"
)

// RegisterFunction adds a scalar function; SQL and DataFrames find it by name. A name
// that is taken is an error. A panic of the function is a *PanicError of the query, and
// so is a result of another type than was promised an error: the process goes on.
func (s *Session) RegisterFunction(f *function.Scalar) error {
	return registered(s, "register function", func() error {
		g, err := f.Guarded()
		if err == nil {
			err = checkWords(g.Name, g.Aliases)
		}
		if err != nil {
			return err
		}
		return s.functions.AddScalar(g)
	})
}

// RegisterAggregate adds an aggregate function, as RegisterFunction does a scalar one.
func (s *Session) RegisterAggregate(f *function.Aggregate) error {
	return registered(s, "register aggregate", func() error {
		g, err := f.Guarded()
		if err == nil {
			err = checkWords(g.Name, g.Aliases)
		}
		if err != nil {
			return err
		}
		return s.functions.AddAggregate(g)
	})
}

// RegisterConnector adds a connector; CREATE … WITH (connector = '…'), ReadStreamFrom
// and ToConnector find it. A name that is taken is an error. Panics and errors of its
// tables, sources and sinks name them.
func (s *Session) RegisterConnector(c connector.Connector) error {
	return registered(s, "register connector", func() error {
		switch {
		case strings.TrimSpace(c.Name) == "":
			return logical.Usagef("it has no name")
		case c.Table == nil && c.Source == nil && c.Sink == nil:
			return logical.Usagef("%s has neither Table nor Source nor Sink", c.Name)
		case (c.Source == nil) != (c.Discover == nil):
			return logical.Usagef("%s has one of Source and Discover; a stream needs both", c.Name)
		}
		return s.connectors.Add(c.Guarded())
	})
}

// RegisterTable makes a table of the caller's known by name. The session does not
// release it.
func (s *Session) RegisterTable(name string, t connector.Table) error {
	return registered(s, "register table", func() error {
		switch {
		case name == "":
			return logical.Usagef("it has no name")
		case t == nil:
			return logical.Usagef("%s is nil", name)
		}
		g := connector.GuardTable(name, t)
		if g.Schema() == nil {
			return logical.Usagef("%s has no Schema", name)
		}
		return s.catalog.Add(name, logical.Entry{Opened: g})
	})
}

// CreateView makes a DataFrame known by name, as CREATE VIEW does a query: so that the SQL
// that is no verb of a DataFrame, a correlated subquery say, can be written over it. A name
// that is taken is an error.
func (s *Session) CreateView(name string, df *logical.DataFrame) error {
	node, err := df.Plan()
	if err != nil {
		return err
	}
	return registered(s, "create view", func() error {
		if name == "" {
			return logical.Usagef("it has no name")
		}
		return s.catalog.Add(name, logical.Entry{View: node})
	})
}

// checkWords refuses names that SQL reads as something else.
func checkWords(name string, aliases []string) error {
	for _, n := range append([]string{name}, aliases...) {
		if sql.IsWord(n) {
			return fmt.Errorf("%s is a word of the language; give the function another name", n)
		}
	}
	return nil
}

// registered adds something to the session; what is wrong with it is a mistake of usage.
func registered(s *Session, verb string, add func() error) error {
	if err := s.made(); err != nil {
		return err
	}
	if err := columnar.Guard("", add); err != nil {
		return logical.Usagef("%s: %w", verb, err)
	}
	return nil
}
