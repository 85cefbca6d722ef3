package sql

import (
	"strings"

	"github.com/tidemill/tidemill/logical/expr"
)

// forms are words before a parenthesis that never call a function of the registry.
var forms = map[string]bool{
	"cast": true, "try_cast": true, "exists": true, "not": true, "in": true, "interval": true, "values": true, "unnest": true,
	"window": true, "session_window": true, "window_time": true, "if": true, "iff": true, "nullif": true,
	"struct": true, "struct_pack": true, "row": true, "named_struct": true, "struct_extract": true,
	"grouping": true, "grouping_id": true, "overlay": true, "from_json": true,
}

// IsWord says whether a name followed by a parenthesis means something of the language's
// own, so that no function of a user's can be called by it.
func IsWord(name string) bool {
	name = strings.ToLower(name)
	_, generates := generators[name]
	return isReserved(strings.ToUpper(name)) || forms[name] || generates || expr.IsRowFunction(name)
}
