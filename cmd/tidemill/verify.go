package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
)

func newVerify() *cobra.Command {
	var f scriptFlags
	c := &cobra.Command{
		Use:   "verify [flags] FILE.sql",
		Short: "derive the committed output again from the logged inputs, and compare",
		Long: `Runs every committed batch of every INSERT of the file again, in memory and with fresh
state, from what the checkpoint says it read, and compares the rows with those that are
committed: exactly, floats to two units in the last place. It writes nothing, takes no
lock, and may look at a query that runs. Exit code 1 if a row differs, or a batch cannot be
derived again for another reason than that clean_source took its input away.`,
		Example: `  tidemill verify orders.sql`,
		Args:    takes(1, 1, "one FILE.sql"),
		RunE: func(c *cobra.Command, args []string) error {
			return verify(c.Context(), args[0], &f)
		},
	}
	f.add(c)
	return c
}

func verify(ctx context.Context, file string, f *scriptFlags) error {
	script, _, err := f.open(ctx, file)
	if err != nil {
		return err
	}
	found, err := script.Verify(ctx)
	for i := range found {
		printVerification(&found[i])
	}
	if err != nil {
		return err
	}
	return verdict(found)
}

// printVerification tells what was found of one query.
func printVerification(v *tidemill.Verification) {
	if v.Skipped != "" {
		fmt.Printf("%s: not verified: %s\n", v.Query, v.Skipped)
		return
	}
	if v.Upto < 0 {
		fmt.Printf("%s: no batch is committed yet in %s\n", v.Query, v.Output)
		return
	}
	fmt.Printf("%s: %s of %s up to batch %d derived again: %s, %s\n", v.Query, countOf(v.Batches, "batch", "batches"),
		v.Output, v.Upto, count(v.Files, "file"), count(v.Rows, "row"))
	for _, u := range v.Unverified {
		batches := fmt.Sprintf("batch %d", u.From)
		if u.To > u.From {
			batches = fmt.Sprintf("batches %d to %d", u.From, u.To)
		}
		fmt.Printf("%s: %s not verified: %s\n", v.Query, batches, u.Reason)
	}
	for _, l := range v.LeftOver {
		fmt.Printf("%s: left over: %s\n", v.Query, l)
	}
	for _, d := range v.Differences {
		var at []string
		if d.Batch >= 0 {
			at = append(at, fmt.Sprintf("batch %d", d.Batch))
		}
		if d.File != "" {
			at = append(at, d.File)
		}
		fmt.Printf("%s: %s: %s\n", v.Query, strings.Join(at, ", "), d.Text)
	}
}

func countOf(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// verdict is the last word on all queries, and the exit code.
func verdict(found []tidemill.Verification) error {
	var rows, differ, open, skipped int64
	for i := range found {
		v := &found[i]
		rows += v.Differing
		switch {
		case v.Skipped != "":
			skipped++
		case len(v.Differences) > 0:
			differ++
		case !v.Verified():
			open++
		}
	}
	queries := count(int64(len(found)), "query")
	if len(found) != 1 {
		queries = fmt.Sprintf("%d queries", len(found))
	}
	switch {
	case differ > 0:
		of := fmt.Sprintf("%s in %d of %s", countOf(rows, "row differs", "rows differ"), differ, queries)
		if rows == 0 {
			of = fmt.Sprintf("no row differs, but the files of %d of %s do", differ, queries)
		}
		return &exitError{1, fmt.Sprintf("the output is not what the inputs give: %s; if the query was changed, verify with the SQL that it ran with; else run it anew into a new output, or bring the files back", of)}
	case open > 0:
		return &exitError{1, fmt.Sprintf("the output could not be verified as a whole: %d of %s", open, queries)}
	case skipped == int64(len(found)):
		fmt.Println("nothing to verify")
		return nil
	}
	fmt.Println("verified: the output is what the inputs give")
	return nil
}
