package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/internal/vfs"
)

func newQuery() *cobra.Command {
	var file, format, out string
	var set []string
	c := &cobra.Command{
		Use:   "query [flags] 'SQL'",
		Short: "run a bounded query over files and print its result",
		Long: `Runs SQL over what is there now and prints the rows of the last query. The text may
hold several statements (CREATE …, SET …, SELECT …), separated by semicolons.`,
		Example: `  tidemill query "SELECT city, count(*) FROM 'landing/*.csv' GROUP BY city"
  tidemill query --format parquet --out top.parquet -f top.sql`,
		Args: takes(0, 1, "one text of SQL, or -f FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			text, name, err := textOrFile(args, file)
			if err != nil {
				return err
			}
			s, err := newSession(set)
			if err != nil {
				return err
			}
			if err := checkOutGiven(c, out); err != nil {
				return err
			}
			return query(c.Context(), s, text, name, format, out)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "read the SQL from a file")
	c.Flags().StringVar(&format, "format", "", "table, csv, jsonl, parquet, arrow or avro (default: table on a terminal, else csv)")
	c.Flags().StringVar(&out, "out", "", "write the result to exactly this file")
	c.Flags().StringArrayVar(&set, "set", nil, "name=value, as SET; may be repeated")
	return c
}

func query(ctx context.Context, s *tidemill.Session, text, file, format, out string) error {
	if format == "" {
		format = "csv"
		if out == "" && term.IsTerminal(int(os.Stdout.Fd())) {
			format = "table"
		}
	}
	if err := checkFormat(format); err != nil {
		return err
	}
	if err := checkOut(out); err != nil {
		return err
	}
	df, err := s.SQLFile(ctx, file, text)
	if err != nil || df == nil {
		return err
	}
	if err := checkNames(format, df.Schema().Names()); err != nil {
		return err
	}
	r := result{format: format, zone: s.Location(), toFile: out != ""}
	if format == "table" { // the widths of its columns are those of all rows
		if r.rows, err = s.Collect(ctx, df); err != nil {
			return err
		}
		defer r.rows.Release()
		return r.write(out)
	}
	in, err := s.Query(ctx, df)
	if err != nil {
		return err
	}
	q := &running{ctx: ctx, in: in}
	if err := q.write(r, out); err != nil {
		_ = q.close() // the first error says more
		return err
	}
	return q.close()
}

// write writes the result of a query as it comes.
func (q *running) write(r result, out string) error {
	if err := q.readAhead(aheadBytes); err != nil {
		return err
	}
	r.rows, r.rest = q.rows(), q.rest()
	err := r.write(out)
	if q.failed != nil {
		return q.failed
	}
	return err
}

// write prints the result, or writes it to the file out if that names one.
func (r *result) write(out string) error {
	if out == "" {
		return r.print()
	}
	if err := writeOut(out, r.encode); err != nil {
		return fmt.Errorf("--out %s: %w", out, err)
	}
	return nil
}

// writeOut gives a file its new content at once: that which a link leads to, not the link.
// A device, a pipe or what this process has open is written to, since a file in its place
// would be none.
func writeOut(out string, encode func(io.Writer) error) error {
	if f := openAlready(out); f != nil {
		return encode(f)
	}
	if info, err := os.Stat(out); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(out, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(encode(f), f.Close())
	}
	if target, err := filepath.EvalSymlinks(out); err == nil {
		out = target
	}
	fsys := vfs.OS()
	if info, err := os.Stat(out); err == nil {
		fsys = keptAccess{fsys, info}
	}
	return vfs.WriteAtomicFunc(fsys, out, encode)
}

// keptAccess creates files that only those may read and write who could the file in whose
// place they are put, and that belong to its owner and group where the system allows that.
type keptAccess struct {
	vfs.FS
	old os.FileInfo
}

func (k keptAccess) Create(name string) (vfs.File, error) {
	mode := k.old.Mode().Perm()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return nil, err
	}
	vfs.TakeOwner(f, k.old)
	if err := f.Chmod(mode); err != nil { // the umask may have taken some of it
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openAlready is the file of this process that a name such as /dev/stdout means.
func openAlready(out string) *os.File {
	switch out {
	case "/dev/stdout", "/dev/fd/1":
		return os.Stdout
	case "/dev/stderr", "/dev/fd/2":
		return os.Stderr
	}
	return nil
}

// checkNames finds before a query runs that a format cannot hold its columns.
func checkNames(format string, names []string) error {
	if format == "table" || format == "csv" {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return usagef("two columns of the result are called %q, and --format %s holds a name once; rename one with AS", name, format)
		}
		seen[name] = true
	}
	return nil
}

// checkOutGiven refuses an --out that names nothing: an empty variable of a shell, say.
func checkOutGiven(c *cobra.Command, out string) error {
	if out == "" && c.Flags().Changed("out") {
		return usagef("--out names nothing; give it a name, or leave it out")
	}
	return nil
}

// checkOut finds before a query runs that its result has no place.
func checkOut(out string) error {
	if out == "" {
		return nil
	}
	if info, err := os.Stat(out); err == nil && info.IsDir() {
		return usagef("--out %s is a directory; name a file", out)
	}
	if _, err := os.Lstat(out); err == nil {
		if _, err := os.Stat(out); err != nil {
			return usagef("--out %s is a link that leads nowhere: %w", out, err)
		}
	}
	switch info, err := os.Stat(filepath.Dir(out)); {
	case err != nil:
		return usagef("--out %s: %w", out, err)
	case !info.IsDir():
		return usagef("--out %s: %s is a file, not a directory", out, filepath.Dir(out))
	}
	return nil
}
