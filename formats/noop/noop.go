// Package noop is a sink that reads every row and keeps none: for measuring a query,
// and for queries that run for their side outputs or metrics alone.
package noop

import (
	"context"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/logical/connector"
)

// Connector is the connector noop.
func Connector() connector.Connector {
	return connector.Connector{
		Name: "noop",
		Doc:  "reads every row and keeps none",
		Sink: func(_ context.Context, env connector.Env) (connector.Sink, error) {
			if err := connector.Decode(env.Options); err != nil {
				return nil, err
			}
			return Sink{}, nil
		},
	}
}

// Sink counts rows. It cannot know which batch it got last.
type Sink struct{}

var _ connector.Sink = Sink{}

// LastBatch implements connector.Sink.
func (Sink) LastBatch(context.Context) (int64, bool, error) { return -1, false, nil }

// Stage implements connector.Sink.
func (Sink) Stage(ctx context.Context, b connector.SinkBatch) (connector.Staged, error) {
	rows := int64(0)
	for batch, err := range columnar.All(ctx, b.Data) {
		if err != nil {
			return nil, err
		}
		rows += batch.NumRows()
	}
	return staged(rows), nil
}

// Recover implements connector.Sink.
func (Sink) Recover(context.Context) (connector.Staged, error) { return nil, nil }

// Close implements connector.Sink.
func (Sink) Close() error { return nil }

// Description implements connector.Describer.
func (Sink) Description() string { return "NoopSink" }

type staged int64

func (staged) Publish(context.Context) error { return nil }
func (staged) Discard() error                { return nil }
func (s staged) Rows() int64                 { return int64(s) }
