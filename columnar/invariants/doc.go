// Package invariants checks what must be true if the engine has no bugs. In builds
// with the tag invariants or with the race detector (tests, CI) a violation panics
// where it happens; in others it is an error beginning with "bug:". Enabled is a
// constant, so that checks too costly for users compile to nothing:
//
//	if invariants.Enabled {
//		invariants.Must(invariants.Batch(b, schema))
//	}
//
// It is not part of the public API.
package invariants
