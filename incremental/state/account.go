package state

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidemill/tidemill/columnar"
)

// account is what the state of an operator has reserved from the budget, all its shards
// together.
type account struct {
	budget   *columnar.Budget
	operator string
	held     atomic.Int64
}

// add reserves n bytes more; a negative n gives bytes back, which is never refused.
func (a *account) add(n int64) error {
	if n <= 0 {
		a.budget.Return(-n)
		a.held.Add(n)
		return nil
	}
	err := a.budget.Reserve("", n)
	var refused *columnar.MemoryError
	if errors.As(err, &refused) {
		refused.Who = fmt.Sprintf("the state of %s, %d bytes,", a.operator, a.held.Load())
	}
	if err == nil {
		a.held.Add(n)
	}
	return err
}
