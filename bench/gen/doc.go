// Package gen makes seeded data for benchmarks: the same arguments give the same
// bytes. It is not part of the public API.
package gen
