// Package expr is the expression tree, typed once resolved. Nodes are immutable.
//
// A tree is built in one of two ways and ends up the same: the SQL binder calls the
// typed constructors (NewCall, NewCast, …) directly; the DataFrame functions (Col,
// Lit, …) build unresolved nodes (Name, Unresolved) which Resolve turns into typed
// ones against a schema. Logical plans refer to columns by ID (Column); physical
// plans by position (Ref).
package expr
