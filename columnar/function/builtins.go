package function

import "slices"

// Builtins returns a registry of every function and operator of the engine. Each
// call makes a new one, to which a session may add its own.
func Builtins() *Registry {
	r := NewRegistry()
	all := scalars()
	applyConstantRules(all)
	for _, f := range all {
		if err := r.AddScalar(f); err != nil {
			panic("bug: " + err.Error())
		}
	}
	for _, f := range aggregates() {
		if err := r.AddAggregate(f); err != nil {
			panic("bug: " + err.Error())
		}
	}
	return r
}

// scalars lists every built-in scalar function. How a new one is added: its Scalar
// value in the list of the file it belongs to, with Doc and Example.
func scalars() []*Scalar {
	return slices.Concat(
		arithmeticScalars(), comparisonScalars(), mathScalars(), bitScalars(),
		conditionalScalars(), textScalars(), patternScalars(), encodingScalars(),
		timeScalars(), windowScalars(), nestedScalars(), jsonScalars(),
		integerScalars(), doubleScalars(), similarityScalars(), wordScalars(), urlScalars(),
		calendarScalars(), listScalars(), listSumScalars(), mapScalars(), jsonPathScalars(),
		listPartScalars(), jsonMakeScalars(),
		listMoreScalars(), toNumberScalars(), drawnScalars(),
		charsetScalars(), assertionScalars(), intervalPartScalars(), pathScalars(), listZipScalars(),
		[]*Scalar{hashScalar(), formatBracesScalar(), toCharScalar(), regexpSubstrScalar(), shiftUnsignedScalar(),
			mapContainsValueScalar(), prettyJSONScalar()},
	)
}
