package connector

// Offset is a position in a source, as canonical JSON chosen by the source.
// Offsets are compared with ==. "" is before the first row.
type Offset string
