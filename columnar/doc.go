// Package columnar holds what flows through the engine: Arrow record batches, the
// Reader that hands them on, the SQL types and their Arrow representation, pooled
// and budgeted memory, and, in its sub-packages, kernels, functions, hash tables
// and key encoding.
//
// # Ownership of Arrow memory
//
//  1. A returned array, batch or Datum is the caller's: release it exactly once.
//  2. A parameter is borrowed for the call. To keep it, Retain; to hand it on as a
//     result, Retain.
//  3. Reader.Next transfers one reference; a caller that stops early calls Close,
//     which releases the rest.
//  4. Function values that consume a reference start with take; nothing else does.
//  5. defer b.Release() stands directly below the call that produced b, unless
//     ownership leaves the function.
//  6. Slices taken from an array's buffer live no longer than the array; state and
//     hash tables copy.
//  7. On the error path of a constructor, what was built so far is released (see
//     Releases).
//  8. The allocator comes from a parameter, never from a global or a context value.
//     Limits are asked for at growth points (Budget.Reserve); refusal is an error.
//  9. Tests use columnartest.Mem: a checked allocator that poisons freed buffers.
//
// # Dictionaries
//
// Logical schemas never hold dictionary types. A VARCHAR or BINARY column of a
// batch may still arrive as Dictionary<int32, …>; the batch's own schema says so.
// Group tables, filter, take and pass-through projections work on the codes; all
// others call Plain or PlainColumn first. Sinks and users always see plain columns.
package columnar
