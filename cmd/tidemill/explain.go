package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newExplain() *cobra.Command {
	var file string
	var analyze bool
	var set []string
	c := &cobra.Command{
		Use:   "explain [flags] 'SQL'",
		Short: "show the logical, optimized and physical plan, and which rules fired",
		Args:  takes(0, 1, "one text of SQL, or -f FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			text, name, err := textOrFile(args, file)
			if err != nil {
				return err
			}
			s, err := newSession(set)
			if err != nil {
				return err
			}
			plan, err := s.ExplainSQL(c.Context(), name, text, analyze)
			if err != nil {
				return err
			}
			fmt.Print(plan)
			return nil
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "read the SQL from a file")
	c.Flags().BoolVar(&analyze, "analyze", false, "run the query and show the rows and time of every operator")
	c.Flags().StringArrayVar(&set, "set", nil, "name=value, as SET; may be repeated")
	return c
}
