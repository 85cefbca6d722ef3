package checkpoint

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tidemill/tidemill/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the samples of FORMAT.md anew")

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	d := open(t, vfs.NewMem(), small)
	defer d.Close()
	for batch := range int64(3) {
		e := offsetsOf(batch)
		e.Tables = []TableFiles{{Name: "channels", Files: []InputFile{{Path: "dim/\xff\"\u2028.parquet", Size: 1 << 60, ModTime: -5}}}}
		e.Settings["odd \n\"key"] = "\\value\u0000"
		must(t, d.Offsets().Add(batch, e))
		got, err := d.Offsets().Get(batch)
		must(t, err)
		if !reflect.DeepEqual(got, e) {
			t.Errorf("got %+v, want %+v", got, e)
		}
		c := commitOf(e, OperatorState{Operator: "op", Version: batch + 1, Files: []StateFile{{
			Table: "t", Kind: Change, From: batch, To: batch + 1, Name: "n", Size: 3, Hash: "h", EvictionBound: ptr(-1),
		}}})
		must(t, d.Prepared().Put(batch, c))
		must(t, d.Commit(batch))
		back, err := d.Commits().Get(batch)
		must(t, err)
		if !reflect.DeepEqual(back, c) {
			t.Errorf("got %+v, want %+v", back, c)
		}
	}
}

// TestNotUTF8 checks that names which differ in bytes that are not UTF-8 stay apart.
func TestNotUTF8(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a\xff", "a\xfe", "a\uFFFD", "", `{"base64":""}`} {
		data, err := marshal(InputFile{Path: name})
		must(t, err)
		if !json.Valid(data) {
			t.Errorf("%s is not JSON", data)
		}
		var back InputFile
		must(t, unmarshal(data, &back))
		if back.Path != name {
			t.Errorf("%q became %q", name, back.Path)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, small)
	defer d.Close()
	write(t, m, "/ckpt/offsets/0", string(encodeVersion("offsets", FormatVersion+1, "0", []byte("{}"))))
	_, err := d.Offsets().Get(0)
	if !errors.Is(err, ErrIncompatible) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "newer engine") {
		t.Errorf("a later version: %v", err)
	}
	for what, data := range map[string][]byte{
		"another kind":   encodeFile("commit", "0", []byte("{}")),
		"another number": encodeFile("offsets", "1", []byte("{}")),
		"no JSON":        encodeFile("offsets", "0", []byte("{")),
		"unknown member": encodeFile("offsets", "0", []byte(`{"later":1}`)),
		"version 0":      encodeVersion("offsets", 0, "0", []byte("{}")),
		"empty":          {},
		"zeros":          make([]byte, 100),
		"text":           []byte("hello\nworld"),
	} {
		write(t, m, "/ckpt/offsets/0", string(data))
		if _, err := d.Offsets().Get(0); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := d.Offsets().Get(7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestFlipEveryByte changes every byte of every file of a checkpoint, in several
// ways, cuts it at every place, and appends to it: reading must say ErrCorrupt.
func TestFlipEveryByte(t *testing.T) {
	t.Parallel()
	m := build(t, 8, small)
	d := newDir(m, "/ckpt", small)
	history, err := d.history.segs.dir, error(nil)
	live, _, err := d.history.segs.list()
	must(t, err)
	last, err := d.commits.Get(7)
	must(t, err)
	drain := func(name string) error {
		for _, err := range newHistory(m, history).Range(0, everything) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	readers := map[string]func(string) error{
		"metadata":  func(string) error { _, err := readMetadata(m, "/ckpt"); return err },
		"plan.json": func(name string) error { _, err := readPlan(m, name); return err },
		"offsets/7": func(string) error { _, err := d.offsets.Get(7); return err },
		"commits/7": func(string) error { return d.commits.check(7) },
		"sources/0/7": func(string) error {
			_, err := newSourceLog(m, "/ckpt/sources/0", 7).get(7)
			return err
		},
		"history/" + live[0].name():                           drain,
		"state/" + testOp + "/" + last.State[0].Files[0].Name: func(string) error { return d.VerifyState(&last) },
	}
	for name, readIt := range readers {
		file := path.Join("/ckpt", name)
		must(t, readIt(file))
		good := read(t, m, file)
		damage := func(what string, at int, data string) {
			f, err := m.Create(file)
			must(t, err)
			_, err = f.Write([]byte(data))
			must(t, err)
			must(t, f.Close())
			if err := readIt(file); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s, %s byte %d: %v", name, what, at, err)
			}
		}
		for i := range len(good) {
			for _, mask := range []byte{0x01, 0x04, 0x20, 0x80} {
				data := []byte(good)
				data[i] ^= mask
				damage("flipped", i, string(data))
			}
			damage("cut at", i, good[:i])
		}
		damage("appended after", len(good), good+"\n")
		damage("doubled after", len(good), good+good)
		write(t, m, file, good)
	}
}

func TestLayOut(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:                    "{}\n",
		`{"a":[],"b":{}}`:       "{\n \"a\": [],\n \"b\": {}\n}\n",
		`{"a":[{"b":[1,2]},3]}`: "{\n \"a\": [\n  {\"b\":[1,2]},\n  3\n ]\n}\n",
		`"a,{\"\\"`:             "\"a,{\\\"\\\\\"\n",
		`[[1,2],[[3]]]`:         "[\n [\n  1,\n  2\n ],\n [\n  [3]\n ]\n]\n",
	} {
		if got := string(layOut([]byte(in), 2)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// TestFormat compares the samples of FORMAT.md with what is written: a line
// "### name" followed by a fenced block is the sample of that file.
func TestFormat(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	d := open(t, m, Options{ID: testID, Engine: "0.1.0"})
	defer d.Close()
	must(t, d.CheckPlan(testPlan()))
	log, err := d.SourceLog(0, NoBatch)
	must(t, err)
	must(t, log.Put(0, []byte(`{"path":"landing/bids/0000.csv","size":100,"mtime":1704067200000000}`+"\n")))
	var last *CommitEntry
	for batch := range int64(3) {
		e := offsetsOf(batch)
		e.Plan = testPlan().Fingerprint()
		e.Tables = []TableFiles{{Name: "channels", Files: []InputFile{{
			Path: "dim/channels.parquet", Size: 4711, ModTime: 1_704_000_000_000_000, Hash: HashBytes([]byte("footer")),
		}}}}
		must(t, d.Offsets().Add(batch, e))
		c := commitOf(e, stateAfter(t, d, last, batch))
		must(t, d.Prepared().Put(batch, c))
		must(t, d.Commit(batch))
		last = &c
	}
	must(t, d.SetLastError(LastError{Time: 1_704_067_300_000_000, Batch: 3, Message: "batch 3: sink parquet: no space left on device"}))
	must(t, log.segs.write(segment{from: 0, to: 1}, nil))
	text, err := os.ReadFile("FORMAT.md")
	must(t, err)
	fresh := regexp.MustCompile("(?s)### `([^`]+)`\n\n```\n.*?```\n").ReplaceAllStringFunc(string(text), func(block string) string {
		name := strings.Split(block, "`")[1]
		return "### `" + name + "`\n\n```\n" + read(t, m, path.Join("/ckpt", name)) + "```\n"
	})
	for _, name := range []string{"metadata", "plan.json", "offsets/2", "commits/2", "sources/0/0", "last_error"} {
		if !strings.Contains(fresh, "### `"+name+"`\n") {
			t.Errorf("FORMAT.md has no sample of %s", name)
		}
	}
	if fresh == string(text) {
		return
	}
	if *rewrite {
		must(t, os.WriteFile("FORMAT.md", []byte(fresh), 0o666))
		return
	}
	t.Error("the samples of FORMAT.md are not what is written; run with -rewrite and read the diff")
}

// members lists the JSON names of a type, those of nested types, too.
func members(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		members(t.Elem(), into)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" {
				continue // not in the file
			}
			into[strings.Split(f.Tag.Get("json"), ",")[0]] = true
			members(f.Type, into)
		}
	}
}

// TestFormatIsComplete checks that FORMAT.md tells every field.
func TestFormatIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FORMAT.md")
	must(t, err)
	names := map[string]bool{}
	for _, v := range []any{Metadata{}, Plan{}, OffsetEntry{}, CommitEntry{}, LastError{}} {
		members(reflect.TypeOf(v), names)
	}
	for name := range names {
		if name == "" || !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("FORMAT.md does not tell field %q", name)
		}
	}
}

func FuzzDecodeFile(f *testing.F) {
	e, _ := marshalPretty(offsetsOf(3))
	f.Add(encodeFile("offsets", "3", e))
	c, _ := marshalPretty(commitOf(offsetsOf(3)))
	f.Add(encodeFile("offsets", "3", c))
	f.Add([]byte("tidemill offsets v1 3 xxh3 \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := decodeFile("offsets", "3", data)
		if err == nil && string(encodeFile("offsets", "3", body)) != string(data) {
			t.Fatalf("%q is accepted and is not what is written", data)
		}
		// The same bytes with a right checksum: the body is then any text.
		body, err = decodeFile("offsets", "3", encodeFile("offsets", "3", data))
		if err != nil || string(body) != string(data) {
			t.Fatalf("%q, %v", body, err)
		}
	})
}

func fuzzJSON[T any](f *testing.F, seed T) {
	data, err := marshalPretty(seed)
	must(f, err)
	f.Add(data)
	f.Add([]byte(`{"batch":1,"seed":"7"}`))
	f.Add([]byte(`{"path":{"base64":"/w=="}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v T
		if unmarshal(data, &v) != nil {
			return
		}
		again, err := marshalPretty(v)
		if err != nil {
			return // a map key or an offset that is not UTF-8 is refused
		}
		var back T
		must(t, unmarshal(again, &back))
		if third, err := marshalPretty(back); err != nil || string(third) != string(again) {
			t.Fatalf("%s became %s, %v", again, third, err)
		}
	})
}

func FuzzOffsetEntry(f *testing.F) { fuzzJSON(f, offsetsOf(3)) }

func FuzzCommitEntry(f *testing.F) { fuzzJSON(f, commitOf(offsetsOf(3), OperatorState{Operator: "x"})) }

func FuzzMetadata(f *testing.F) {
	f.Add(encodeMetadata(Metadata{ID: testID, FormatVersion: 1, Engine: "x"}))
	f.Add([]byte(`{"id":"x","format_version":1,"engine":"","checksum":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMetadata("metadata", data)
		if err == nil && string(encodeMetadata(m)) != string(data) {
			t.Fatalf("%q is accepted and is not what is written", data)
		}
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(seal(testPlan(), planChecksum))
	f.Add([]byte(`{"operators":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := unseal("plan.json", data, planChecksum)
		if err == nil && string(seal(p, planChecksum)) != string(data) {
			t.Fatalf("%q is accepted and is not what is written", data)
		}
	})
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte("@3 5\nhello\n@4 0\n\n"), false)
	f.Add([]byte("@3 99999999999999999999\n"), false)
	packed := segments{packed: true}
	body, err := packed.pack(nil)
	must(f, err)
	f.Add(body, true)
	f.Fuzz(func(t *testing.T, body []byte, zip bool) {
		s := segments{packed: zip}
		entries, err := s.unpack(body, segment{from: 3, to: 9})
		if err != nil {
			return
		}
		again, err := s.pack(entries)
		must(t, err)
		back, err := s.unpack(again, segment{from: 3, to: 9})
		must(t, err)
		if len(back) != len(entries) || len(back) > 0 && !reflect.DeepEqual(back, entries) {
			t.Fatalf("%v became %v", entries, back)
		}
	})
}

func FuzzSegmentName(f *testing.F) {
	f.Add("0-49")
	f.Add("-1-5")
	f.Fuzz(func(t *testing.T, name string) {
		if s, ok := parseSegment(name); ok && s.name() != name {
			t.Fatalf("%q is taken for %q", name, s.name())
		}
	})
}
