package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tidemill": main})
}

// TestScripts runs testdata/script: the command line as a user sees it, with its exit
// codes. Beside testscript's own commands there are those of scriptCommands.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Cmds:                scriptCommands,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "America/New_York") // the machine's zone must not matter
			return nil
		},
	})
}

type scriptCommand = func(ts *testscript.TestScript, neg bool, args []string)

var scriptCommands = map[string]scriptCommand{
	"fails":   scriptFails,
	"drain":   scriptDrain,
	"rows":    scriptRows,
	"tree":    scriptTree,
	"age":     scriptAge,
	"cut":     scriptCut,
	"repeat":  scriptRepeat,
	"fifo":    scriptFIFO,
	"count":   scriptCount,
	"waitfor": scriptWaitFor,
	"chars":   scriptChars,
	"signal":  scriptSignal,
	"port":    scriptPort,
	"get":     scriptGet,
}

// fails CODE COMMAND…: the command ends with that exit code.
func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// drain FILE [FLAG…]: runs a file of SQL until it has drained, quietly, and expects success.
func scriptDrain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: drain FILE.sql [FLAG…]")
	}
	all := append([]string{"run", "--trigger", "available-now", "--progress", "jsonl"}, args[1:]...)
	ts.Check(ts.Exec("tidemill", append(all, args[0])...))
}

// rows SQL LINE…: a query gives these lines of CSV below its header. An argument "-" is
// an empty result.
func scriptRows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rows SQL LINE…")
	}
	ts.Check(ts.Exec("tidemill", "query", "--format", "csv", args[0]))
	_, got, _ := strings.Cut(ts.ReadFile("stdout"), "\n")
	want := strings.Join(args[1:], "\n") + "\n"
	if want == "-\n" {
		want = ""
	}
	if got != want {
		ts.Fatalf("%s\ngot\n%swant\n%s", args[0], got, want)
	}
}

// tree FILE DIR…: writes to FILE what is below the directories: names, sizes, times.
func scriptTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: tree FILE DIR…")
	}
	var sb strings.Builder
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				fmt.Fprintln(&sb, p, info.Size(), info.ModTime().UnixNano())
			}
			return err
		}))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(sb.String()), 0o644))
}

// age DURATION FILE…: makes files so old that one more is not older than the one before.
func scriptAge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: age DURATION FILE…")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	for _, f := range args[1:] {
		at := time.Now().Add(-d)
		ts.Check(os.Chtimes(ts.MkAbs(f), at, at))
	}
}

// cut SIZE FILE: keeps the first bytes of a file.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut SIZE FILE")
	}
	n, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[1]), n))
}

// repeat N FORMAT FILE: writes FORMAT N times, with the number in place of %d; \n is a
// line end.
func scriptRepeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat N FORMAT FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[2]), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	ts.Check(err)
	w := bufio.NewWriter(f)
	format := strings.ReplaceAll(args[1], `\n`, "\n")
	for i := range n {
		ts.Check(second(w.WriteString(strings.ReplaceAll(format, "%d", strconv.Itoa(i)))))
	}
	ts.Check(errors.Join(w.Flush(), f.Close()))
}

func second(_ int, err error) error { return err }

// fifo NAME: makes a named pipe.
func scriptFIFO(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fifo NAME")
	}
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o644))
}

// count N GLOB: so many files match.
func scriptCount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: count N GLOB")
	}
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if strconv.Itoa(len(files)) != args[0] {
		ts.Fatalf("%s matches %d files: %s", args[1], len(files), files)
	}
}

// waitfor FILE: waits until a file that matches is there.
func scriptWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor GLOB")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(files) > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("no file matches %s", args[0])
		}
	}
}

// chars MAX: the last stderr is one paragraph of at most so many characters.
func scriptChars(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: chars MAX")
	}
	most, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := strings.TrimSuffix(ts.ReadFile("stderr"), "\n")
	if n := len([]rune(text)); n > most || n == 0 {
		ts.Fatalf("the message has %d characters", n)
	}
	if strings.Contains(text, "\n\n") || strings.Contains(text, "goroutine ") {
		ts.Fatalf("not one paragraph:\n%s", text)
	}
}

// signal NAME: sends TERM or INT to what runs in the background.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT}
	if neg || len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|INT")
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(signals[args[0]]))
	}
}

// port NAME: sets a variable to a port that nobody listens at.
func scriptPort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Check(l.Close())
}

// get URL FILE PATTERN: asks until the answer matches, and writes it to FILE.
func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: get URL FILE PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[2])
	ts.Check(err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for {
		body, err := fetch(args[0])
		if err == nil && pattern.Match(body) {
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), body, 0o644))
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s answers %v\n%s", args[0], err, body)
		}
	}
}

// fetch is the status and the body of an answer.
func fetch(url string) ([]byte, error) {
	r, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return append([]byte(r.Status+"\n"), body...), err
}
