package faultfs_test

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/internal/vfs/faultfs"
	"github.com/tidemill/tidemill/internal/vfs/vfstest"
)

var texts = []string{
	`(crash (and rename (path "commits/2")))`,
	`(error ENOSPC (from 12 write))`,
	`(short (nth 3 mutating))`,
	`(error EIO (or (not reading) (path "a b\"\n/*")))`,
	`(crash any)`,
	`(error EACCES (and open (or (path "x") (path "y")) (not (nth 0 any))))`,
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		r, err := faultfs.Parse(text)
		if err != nil {
			t.Error(err)
		}
		if got := r.String(); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	built := faultfs.Rule{
		Action: faultfs.Error, Err: "EIO",
		When: faultfs.And(faultfs.On(vfs.OpSync), faultfs.Or(faultfs.Any(), faultfs.Reading()),
			faultfs.Not(faultfs.Path("a")), faultfs.From(2, faultfs.Nth(1, faultfs.Mutating()))),
	}
	const want = `(error EIO (and sync (or any reading) (not (path "a")) (from 2 (nth 1 mutating))))`
	if got := built.String(); got != want || faultfs.MustParse(want).String() != want {
		t.Errorf("got %s", got)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                       `"" where "(" should be`,
		`(boom any)`:                             `unknown action "boom"`,
		`(error EWHAT any)`:                      `unknown error "EWHAT"`,
		`(crash sometimes)`:                      `unknown condition "sometimes"`,
		`(crash (nth x any))`:                    `want a count`,
		`(crash (nth -1 any))`:                   `want a count`,
		`(crash (path x))`:                       `want a text in double quotes`,
		"(crash (path `x`))":                     `want a text in double quotes`,
		`(crash (path "[") )`:                    `syntax error in pattern`,
		`(crash (path "x))`:                      `text without end`,
		`(crash any) x`:                          `"x" where "" should be`,
		`(crash (and))`:                          `unknown condition ")"`,
		`(crash (not any any))`:                  `"any" where ")" should be`,
		`(crash (maybe any))`:                    `unknown condition (maybe`,
		strings.Repeat("(crash ", 1)[:6]:         `unknown condition ""`,
		`(crash ` + strings.Repeat("(not ", 200): `nested deeper`,
	} {
		if _, err := faultfs.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Add(`(crash (path "`)
	f.Add("(error EIO (nth 99999999999999999999 any))")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := faultfs.Parse(text)
		if err != nil {
			return
		}
		again, err := faultfs.Parse(r.String())
		if err != nil {
			t.Fatalf("%s prints as %s: %v", text, r, err)
		}
		if again.String() != r.String() {
			t.Fatalf("%s prints as %s", r, again)
		}
		_, _ = faultfs.New(vfs.NewMem(), r).Stat("a/b")
	})
}

func arm(text string) (*faultfs.FS, *vfs.Mem) {
	m := vfs.NewMem()
	return faultfs.New(m, faultfs.MustParse(text)), m
}

func TestError(t *testing.T) {
	t.Parallel()
	f, m := arm(`(error ENOSPC (nth 1 (and create (path "d/*"))))`)
	must(t, f.MkdirAll("d"))
	vfstest.Write(t, f, "a", "1")
	vfstest.Write(t, f, "d/a", "1")
	_, err := f.Create("d/b")
	if !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, faultfs.ErrInjected) || errors.Is(err, faultfs.ErrCrashed) {
		t.Fatalf("error is %v", err)
	}
	if want := `create d/b: no space left on device (error ENOSPC (nth 1 (and create (path "d/*"))))`; err.Error() != want {
		t.Errorf("error is %s, want %s", err, want)
	}
	vfstest.Write(t, f, "d/c", "1")
	if _, err := m.Stat("d/b"); err == nil {
		t.Error("the failed call was made")
	}
	if got := f.Fired(); got[0] != 1 {
		t.Errorf("fired %v", got)
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	f, _ := arm(`(error EIO (from 1 stat))`)
	_, err := f.Stat("/")
	must(t, err)
	for range 3 {
		if _, err := f.Stat("/"); !errors.Is(err, syscall.EIO) {
			t.Fatalf("error is %v", err)
		}
	}
	if mutating, reading := f.Calls(); mutating != 0 || reading != 4 {
		t.Errorf("%d and %d calls", mutating, reading)
	}
	f.Arm()
	_, err = f.Stat("/")
	must(t, err)
}

func TestShort(t *testing.T) {
	t.Parallel()
	f, m := arm(`(short (or (nth 1 write) (and remove (path "a"))))`)
	w, err := f.Create("a")
	must(t, err)
	_, err = w.Write([]byte("12345678"))
	must(t, err)
	n, err := w.Write([]byte("abcdefgh"))
	if n != 4 || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%d, %v", n, err)
	}
	must(t, w.Close())
	if got := vfstest.Read(t, m, "a"); got != "12345678abcd" {
		t.Errorf("content is %q", got)
	}
	if err := f.Remove("a"); !errors.Is(err, syscall.EIO) {
		t.Errorf("error is %v", err)
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	f, m := arm(`(crash (and rename (path "commits/2")))`)
	must(t, f.MkdirAll("prepared"))
	must(t, f.MkdirAll("commits"))
	vfstest.Write(t, f, "prepared/2", "x")
	open, err := f.Open("prepared/2")
	must(t, err)
	l, err := f.Lock("lock")
	must(t, err)
	if f.Crashed() {
		t.Fatal("crashed before the call")
	}
	if err := f.Rename("prepared/2", "commits/2"); !errors.Is(err, faultfs.ErrCrashed) {
		t.Fatalf("error is %v", err)
	}
	if !f.Crashed() {
		t.Fatal("not crashed")
	}
	for what, err := range map[string]error{
		"stat":   second(f.Stat("prepared/2")),
		"open":   second(f.Open("prepared/2")),
		"create": second(f.Create("x")),
		"list":   second(f.ReadDir("/")),
		"dir":    second(f.OpenDir("/")),
		"lock":   second(f.Lock("other")),
		"mkdir":  f.MkdirAll("y"),
		"remove": f.Remove("prepared/2"),
		"read":   second(open.Read(make([]byte, 1))),
		"readat": second(open.ReadAt(make([]byte, 1), 0)),
		"fstat":  second(open.Stat()),
		"sync":   open.Sync(),
		"close":  open.Close(),
		"unlock": l.Close(),
	} {
		if !errors.Is(err, faultfs.ErrCrashed) || !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s after the crash: %v", what, err)
		}
	}
	after := m.Crash(0, 1)
	if got := vfstest.Read(t, after, "prepared/2"); got != "x" {
		t.Errorf("content is %q", got)
	}
	again, err := after.Lock("lock")
	must(t, err)
	must(t, again.Close())
	if m.OpenFiles() != 0 {
		t.Errorf("%d files left open", m.OpenFiles())
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"commits/2", "/ckpt/commits/2", true},
		{"commits/2", "commits/2", true},
		{"commits/2", "commits/12", false},
		{"commits/2", "xcommits/2", false},
		{"2", "a/2", true},
		{"*/2", "2", false},
		{"commits/*", "ckpt/commits/77", true},
		{"/ckpt/*", "/ckpt/a", true},
		{"/ckpt/*", "/x/ckpt/a", false},
		{"part-*.parquet", "out/day=1/part-00-000.parquet", true},
	} {
		m := vfs.NewMem()
		f := faultfs.New(m, faultfs.Rule{Action: faultfs.Error, Err: "EIO", When: faultfs.Path(tt.pattern)})
		_, err := f.Stat(tt.name)
		if got := errors.Is(err, faultfs.ErrInjected); got != tt.want {
			t.Errorf("%q on %q: %v", tt.pattern, tt.name, got)
		}
	}
}

func TestReadFault(t *testing.T) {
	t.Parallel()
	f, _ := arm(`(error EIO (and read (path "a")))`)
	vfstest.Write(t, f, "a", "1")
	if _, err := vfs.ReadFile(f, "a"); !errors.Is(err, syscall.EIO) {
		t.Errorf("error is %v", err)
	}
	r, err := f.Open("a")
	must(t, err)
	defer r.Close()
	if _, err := io.ReadAll(r); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("error is %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
