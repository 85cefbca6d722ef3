package noop

import (
	"testing"

	"github.com/tidemill/tidemill/logical/connector"
	"github.com/tidemill/tidemill/logical/connector/connectortest"
)

func TestSink(t *testing.T) {
	t.Parallel()
	connectortest.TestSink(t, func(*testing.T) connectortest.SinkCase {
		return connectortest.SinkCase{Forgets: true, Open: func(*testing.T, int64) connector.Sink { return Sink{} }}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := Connector().Sink(t.Context(), connector.Env{Options: map[string]string{"path": "x"}}); err == nil {
		t.Error("an option was accepted")
	}
}
