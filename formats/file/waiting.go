package file

import "github.com/tidemill/tidemill/logical/connector"

var _ connector.Waiter = (*Source)(nil)

// Waiting implements connector.Waiter: files were found that no batch has read.
func (s *Source) Waiting() bool { return len(s.pending.files) > 0 }
