package function

// InProportion is how many bytes a call may make beside what it is given before they are
// counted.
const InProportion = 1 << 20

// room reserves what a call has made, n bytes so far, or is about to have made, as far as it
// is out of proportion to its arguments. A refusal is the call's error.
func (c *call) room(n int64) error {
	more := n - InProportion - c.charged
	if c.env.Charge == nil || more <= 0 {
		return nil
	}
	if err := c.env.Charge(more); err != nil {
		return err
	}
	c.charged += more
	return nil
}

// stopped is the error of a query that is over; nil while it goes on.
func (c *call) stopped() error {
	if c.env.Stop == nil {
		return nil
	}
	return c.env.Stop()
}
