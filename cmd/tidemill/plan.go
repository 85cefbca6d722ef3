package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
)

func newPlan() *cobra.Command {
	var f scriptFlags
	c := &cobra.Command{
		Use:   "plan [flags] FILE.sql",
		Short: "show what an edited query keeps of its checkpoint, and what would be refused",
		Long: `Compares every INSERT of the file with its checkpoint: operators with state, streams,
pinned settings and the sink. It writes nothing and takes no lock: a query that runs
meanwhile is not disturbed, and does not count against the answer. Exit code 3 if a run would
be refused.`,
		Example: `  tidemill plan orders.sql`,
		Args:    takes(1, 1, "one FILE.sql"),
		RunE: func(c *cobra.Command, args []string) error {
			return planFile(c.Context(), args[0], &f)
		},
	}
	f.add(c)
	return c
}

func planFile(ctx context.Context, file string, f *scriptFlags) error {
	script, _, err := f.open(ctx, file)
	if err != nil {
		return err
	}
	all, err := script.Changes(ctx)
	if err != nil {
		return err
	}
	var refusal error
	for i := range all {
		printChanges(&all[i])
		if refusal == nil {
			refusal = all[i].Refusal
		}
	}
	return refusal
}

// printChanges is a table of the parts of one query.
func printChanges(c *tidemill.Changes) {
	switch {
	case c.Checkpoint == "":
		fmt.Printf("query %s keeps no checkpoint\n", c.Query)
	case c.Batch < 0:
		fmt.Printf("query %s, checkpoint %s: new\n", c.Query, c.Checkpoint)
	default:
		fmt.Printf("query %s, checkpoint %s: after batch %d\n", c.Query, c.Checkpoint, c.Batch)
	}
	if c.Running {
		fmt.Println("it runs now; a run of this file would have to wait until it has ended")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, p := range c.Parts {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", p.Verdict, p.Part, p.Name, p.Text)
	}
	_ = w.Flush() // stdout that went away is no error here
	if c.Refusal == nil {
		fmt.Printf("a run would start with batch %d\n", c.Batch+1)
	}
}
