// Package metrics shows over HTTP what queries do: in the text format of Prometheus, as a
// page for people, and as a health check. Metrics is told by Listeners and makes an
// http.Handler; it starts no goroutine and opens no port.
//
// What is shown is what the newest Progress of each query says, and sums over the batches
// of this run. Nothing is asked of a running query. The names of the metrics are a
// promise, as those of files are.
package metrics
