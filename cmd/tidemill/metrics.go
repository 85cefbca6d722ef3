package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/incremental"
	"github.com/tidemill/tidemill/incremental/metrics"
)

// metricsServer serves the metrics of a run; nil serves nothing.
type metricsServer struct {
	server *http.Server
	done   chan error
}

// serveMetrics listens at addr and has the run report there, too. note is told the address.
func serveMetrics(addr string, o *tidemill.RunOptions, note func(text string)) (*metricsServer, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("--metrics %s: %w", addr, err)
	}
	m := metrics.New()
	next := o.Listener
	o.Listener = func(query string) incremental.Listener { return m.Listener(query, next(query)) }
	s := &metricsServer{
		// A client that sends nothing, or takes nothing, must not be held for ever.
		server: &http.Server{Handler: m.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second},
		done:   make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(l) }()
	note(fmt.Sprintf("metrics at http://%s", l.Addr()))
	return s, nil
}

// close ends the server with the run: requests under way get a second.
func (s *metricsServer) close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close() // those that took longer
	}
	if err := <-s.done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}
