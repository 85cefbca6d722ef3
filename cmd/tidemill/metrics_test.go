package main

import (
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/incremental"
)

// TestMetricsServerEnds opens, asks and closes a server: nothing of it goes on.
func TestMetricsServerEnds(t *testing.T) {
	before := goleak.IgnoreCurrent()
	o := tidemill.RunOptions{Listener: func(string) incremental.Listener { return incremental.Listener{} }}
	address := ""
	s, err := serveMetrics("127.0.0.1:0", &o, func(text string) { address = strings.TrimPrefix(text, "metrics at ") })
	if err != nil {
		t.Fatal(err)
	}
	o.Listener("q").Started("id", "run", "q")
	client := &http.Client{Transport: &http.Transport{}}
	r, err := client.Get(address + "/healthz")
	if err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("the answer is %v, %v", r, err)
	}
	if err == nil {
		_ = r.Body.Close()
	}
	// The client keeps its connection: closing must not wait for it.
	if err := s.close(); err != nil {
		t.Error(err)
	}
	client.CloseIdleConnections()
	goleak.VerifyNone(t, before)
	if _, err := client.Get(address + "/healthz"); err == nil {
		t.Error("the port still answers")
	}
	var none *metricsServer
	if err := none.close(); err != nil {
		t.Error(err)
	}
}
