package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidemill/tidemill/logical/connector"
)

// An entry of a source's log is text: a head line, then a line a file, in the order
// the files are read:
//
//	files 1 {"format.header":"true"}
//	r 2048 1704067200000000 - "day=2024-01-01/a.csv"
//	s 2048 1704067201000000 5f0c… "b.csv"
//
// r is read, s is skipped (same_content, or there at the start of a query that begins
// with what is new). Then come size, modification time in microseconds, content hash
// if it was taken for planning, and the path below the source's root.
type loggedFile struct {
	foundFile
	skipped bool
	hash    string
}

// below is the file with its full path. Both paths are one text.
func (f *loggedFile) below(root string) foundFile {
	full := join(root, f.rel)
	id := f.FileIdentity
	id.Path = full
	return foundFile{full[len(full)-len(f.rel):], id}
}

const logHead = "files 1"

func appendLogHead(out []byte, pinned map[string]string) ([]byte, error) {
	out = append(out, logHead...)
	if len(pinned) > 0 {
		text, err := json.Marshal(pinned)
		if err != nil {
			return nil, err
		}
		out = append(append(out, ' '), text...)
	}
	return append(out, '\n'), nil
}

func (f *loggedFile) append(out []byte) []byte {
	kind, hash := byte('r'), "-"
	if f.skipped {
		kind = 's'
	}
	if f.hash != "" {
		hash = f.hash
	}
	out = append(out, kind, ' ')
	out = strconv.AppendInt(out, f.Size, 10)
	out = append(out, ' ')
	out = strconv.AppendInt(out, f.ModTime, 10)
	out = append(append(append(out, ' '), hash...), ' ')
	out = strconv.AppendQuote(out, f.rel)
	return append(out, '\n')
}

var errLogEntry = errors.New("the log of the source is damaged")

// cutLogHead reads the head line of an entry; lines are those of its files.
func cutLogHead(data []byte) (pinned map[string]string, lines []byte, err error) {
	head, lines, ok := bytes.Cut(data, []byte{'\n'})
	choices, isHead := strings.CutPrefix(string(head), logHead)
	if !ok || !isHead || choices != "" && choices[0] != ' ' {
		return nil, nil, fmt.Errorf("%w: it does not begin with %q", errLogEntry, logHead)
	}
	if choices != "" {
		if err := json.Unmarshal([]byte(choices), &pinned); err != nil {
			return nil, nil, fmt.Errorf("%w: %v", errLogEntry, err)
		}
	}
	return pinned, lines, nil
}

// eachLogLine visits the files of an entry, one at a time, since there may be a million.
// Each is the lines[from:to]. Their Path is not set.
func eachLogLine(lines []byte, visit func(f loggedFile, from, to int) error) error {
	for from := 0; from < len(lines); {
		n := bytes.IndexByte(lines[from:], '\n')
		if n < 0 {
			return fmt.Errorf("%w: its last line is cut", errLogEntry)
		}
		f, err := decodeLogLine(string(lines[from : from+n]))
		if err != nil {
			return err
		}
		if err := visit(f, from, from+n+1); err != nil {
			return err
		}
		from += n + 1
	}
	return nil
}

// countLogged is how many files of an entry are read, going by the first letter of their
// lines.
func countLogged(lines []byte) int {
	n := bytes.Count(lines, []byte("\nr "))
	if bytes.HasPrefix(lines, []byte("r ")) {
		n++
	}
	return n
}

func decodeLogLine(line string) (loggedFile, error) {
	var f loggedFile
	var parts [5]string
	rest, ok := line, true
	for i := range 4 {
		if parts[i], rest, ok = strings.Cut(rest, " "); !ok {
			break
		}
	}
	parts[4] = rest
	if !ok || parts[0] != "r" && parts[0] != "s" {
		return f, badLogLine(line)
	}
	var err1, err2, err3 error
	f.skipped = parts[0] == "s"
	f.Size, err1 = strconv.ParseInt(parts[1], 10, 64)
	f.ModTime, err2 = strconv.ParseInt(parts[2], 10, 64)
	f.rel, err3 = strconv.Unquote(parts[4])
	if err1 != nil || err2 != nil || err3 != nil || f.Size < 0 || f.rel == "" || parts[4][0] != '"' {
		return f, badLogLine(line)
	}
	if parts[3] != "-" {
		f.hash = parts[3]
	}
	return f, nil
}

func badLogLine(line string) error {
	return fmt.Errorf("%w: %.200q is not a file", errLogEntry, line)
}

// position is the JSON of an Offset.
type position struct {
	// Batch is the id of the newest log entry that is part of the range.
	Batch int64 `json:"batch"`
	// Listing, in an offset of Target, says that what the listing of that number had
	// found is part of it, too. It means something in one process only.
	Listing int64 `json:"listing,omitempty"`
}

func (p position) offset() connector.Offset {
	if p.Batch < 0 && p.Listing == 0 {
		return ""
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return connector.Offset(text)
}

func parseOffset(o connector.Offset) (position, error) {
	p := position{Batch: -1}
	if o == "" {
		return p, nil
	}
	d := json.NewDecoder(strings.NewReader(string(o)))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.Batch < -1 {
		return p, fmt.Errorf("%q is not an offset of a file source", string(o))
	}
	return p, nil
}
