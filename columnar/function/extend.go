package function

import "github.com/apache/arrow-go/v18/arrow"

// For those who register functions of their own.

// Exactly is the Matcher of arguments of type dt: what is cast to dt implicitly is
// accepted, too.
func Exactly(dt arrow.DataType) Matcher { return exactly(dt) }

// AnyType is the Matcher of arguments of every type, as they are.
func AnyType() Matcher { return anyType }

// Always is the Result of an overload that has one result type.
func Always(dt arrow.DataType) func([]arrow.DataType) (arrow.DataType, error) { return always(dt) }
