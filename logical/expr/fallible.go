package expr

import "github.com/tidemill/tidemill/columnar/function"

// IsFallible says whether evaluating e may be an error for some row.
func IsFallible(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Call:
			found = found || x.Signature.Overload.Fallible
		case *Cast:
			found = found || !x.Try && function.CastMayFail(x.Input.Type(), x.To)
		}
		return !found
	})
	return found
}
