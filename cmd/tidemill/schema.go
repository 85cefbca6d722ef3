package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/columnar"
)

func newSchema() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "schema PATH…",
		Short: "show the inferred schema, and where files differ from it",
		Args:  takes(1, -1, "a PATH or more"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := newSession(nil)
			if err != nil {
				return err
			}
			var out strings.Builder
			for i, path := range args {
				report, err := s.Schema(c.Context(), path, format)
				if err != nil {
					return err
				}
				if i > 0 {
					out.WriteByte('\n')
				}
				printSchema(&out, path, report)
			}
			fmt.Print(out.String())
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "", "csv, json, parquet or text (default: what the names of the files say)")
	return c
}

func printSchema(w io.Writer, path string, r tidemill.SchemaReport) {
	fmt.Fprintf(w, "%s: %s\n", path, count(int64(len(r.Files)), "file"))
	width := 0
	for _, f := range r.Schema.Fields() {
		width = max(width, len([]rune(f.Name)))
	}
	for _, f := range r.Schema.Fields() {
		fmt.Fprintf(w, "  %-*s  %s\n", width, f.Name, columnar.TypeName(f.Type))
	}
	for _, f := range r.Files {
		if len(f.Differences) > 0 {
			fmt.Fprintf(w, "%s: %s\n", f.Path, strings.Join(f.Differences, "; "))
		}
	}
}
