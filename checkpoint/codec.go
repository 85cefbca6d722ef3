package checkpoint

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/internal/vfs"
)

// FormatVersion is the version of the files that this engine writes. It opens
// checkpoints of this version and of earlier ones.
const FormatVersion = 1

// A file of a log is one header line and a body:
//
//	tidemill offsets v1 12 xxh3 5f1d…\n
//	{…}
//
// kind, version and number (or range) are those of the file; the checksum is the
// xxh3-128 of everything but itself and the line end after it.

const headerWord = "tidemill"

// encodeFile puts the header before body.
func encodeFile(kind, id string, body []byte) []byte {
	return encodeVersion(kind, FormatVersion, id, body)
}

func encodeVersion(kind string, version int, id string, body []byte) []byte {
	return append(headerOf(kind, version, id, body), body...)
}

// headerOf is the header line of a file, with room for its body if that is small.
func headerOf(kind string, version int, id string, body []byte) []byte {
	prefix := fmt.Sprintf("%s %s v%d %s xxh3 ", headerWord, kind, version, id)
	room := 0
	if len(body) <= largeBody {
		room = len(body)
	}
	data := make([]byte, 0, len(prefix)+33+room)
	data = append(data, prefix...)
	data = hex.AppendEncode(data, sumOf(prefix, body))
	return append(data, '\n')
}

// largeBody is from what size on a body is not copied behind its header.
const largeBody = 1 << 20

// writeFile writes a file of a log durably.
func writeFile(fsys vfs.FS, name, kind, id string, body []byte) error {
	if len(body) <= largeBody {
		return vfs.WriteAtomic(fsys, name, encodeFile(kind, id, body))
	}
	return vfs.WriteAtomicFunc(fsys, name, func(w io.Writer) error {
		if _, err := w.Write(headerOf(kind, FormatVersion, id, body)); err != nil {
			return err
		}
		_, err := w.Write(body)
		return err
	})
}

func sumOf(prefix string, body []byte) []byte {
	h := xxh3.New()
	_, _ = h.WriteString(prefix)
	_, _ = h.Write(body)
	sum := h.Sum128().Bytes()
	return sum[:]
}

// versionError says that a whole file was written by a later engine.
type versionError struct{ version int }

func (e *versionError) Error() string {
	return fmt.Sprintf("format version %d, this engine knows versions up to %d: use a newer engine", e.version, FormatVersion)
}

// decodeFile returns the body, which is a part of data. An error is a text for
// the reason of a CorruptError, or a *versionError.
func decodeFile(kind, id string, data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("the file is empty")
	}
	line, body, ok := bytes.Cut(data, []byte("\n"))
	fields := strings.Split(string(line), " ")
	if !ok || len(fields) != 6 || fields[0] != headerWord || fields[4] != "xxh3" {
		return nil, fmt.Errorf("no header line")
	}
	prefix := string(line[:len(line)-len(fields[5])])
	if hex.EncodeToString(sumOf(prefix, body)) != fields[5] {
		return nil, fmt.Errorf("the checksum does not match the content")
	}
	if fields[1] != kind || fields[3] != id {
		return nil, fmt.Errorf("the file is of %s %s, not of %s %s", fields[1], fields[3], kind, id)
	}
	version, err := strconv.Atoi(strings.TrimPrefix(fields[2], "v"))
	if err != nil || version < 1 {
		return nil, fmt.Errorf("unknown version %q", fields[2])
	}
	if version > FormatVersion {
		return nil, &versionError{version}
	}
	return body, nil
}

// HashBytes is the hash by which files are named in commits: the xxh3-128 of all
// bytes, in hexadecimal.
func HashBytes(data []byte) string {
	sum := xxh3.Hash128(data).Bytes()
	return hex.EncodeToString(sum[:])
}

// Names of files need not be UTF-8. Such texts are written as {"base64": "…"}, so
// that no two names become one.

type base64Text struct {
	Base64 []byte `json:"base64"`
}

var encodeText = json.MarshalToFunc(func(enc *jsontext.Encoder, s string) error {
	if utf8.ValidString(s) {
		return errors.ErrUnsupported
	}
	return enc.WriteValue([]byte(`{"base64":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"}`))
})

var decodeText = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, s *string) error {
	if dec.PeekKind() != '{' {
		return errors.ErrUnsupported
	}
	var t base64Text
	if err := json.UnmarshalDecode(dec, &t); err != nil {
		return err
	}
	*s = string(t.Base64)
	return nil
})

// marshal returns canonical JSON in one line: the same value gives the same bytes.
func marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), json.WithMarshalers(encodeText))
}

// marshalPretty is marshal laid out for people: what is at the top, and the
// elements of lists at the top, have a line each. It ends in a line end.
func marshalPretty(v any) ([]byte, error) {
	data, err := marshal(v)
	if err != nil {
		return nil, err
	}
	return layOut(data, 2), nil
}

// unmarshal reads what marshal wrote. Members that v does not have are an error:
// ignoring what a later engine wrote could lose its meaning.
func unmarshal(data []byte, v any) error {
	return json.Unmarshal(data, v, json.RejectUnknownMembers(true), json.WithUnmarshalers(decodeText))
}

// layOut breaks the lines of compact JSON down to the given depth.
func layOut(data []byte, depth int) []byte {
	out := make([]byte, 0, len(data)+len(data)/8+16)
	level, quoted := 0, false
	newline := func() {
		out = append(out, '\n')
		for range level {
			out = append(out, ' ')
		}
	}
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case quoted:
			out = append(out, c)
			if c == '\\' {
				i++
				out = append(out, data[i])
			}
			quoted = c != '"'
			continue
		case c == '"':
			quoted = true
		case c == '}' || c == ']':
			level--
			if level < depth && data[i-1] != '{' && data[i-1] != '[' {
				newline()
			}
		}
		out = append(out, c)
		switch {
		case c == '{' || c == '[':
			level++
			if level <= depth && data[i+1] != '}' && data[i+1] != ']' {
				newline()
			}
		case c == ',' && level <= depth:
			newline()
		case c == ':' && level <= depth:
			out = append(out, ' ')
		}
	}
	return append(out, '\n')
}

// A sealed file is JSON alone, with a member for the checksum: "xxh3:" and the
// HashBytes of the same file with that member empty.

// seal returns v as a sealed file. v must always have JSON.
func seal[T any](v T, checksum func(*T) *string) []byte {
	*checksum(&v) = ""
	*checksum(&v) = "xxh3:" + HashBytes(mustPretty(v))
	return mustPretty(v)
}

// unseal reads a sealed file. Only the bytes that seal writes are accepted, so that
// no changed byte goes unnoticed.
func unseal[T any](name string, data []byte, checksum func(*T) *string) (T, error) {
	var v, none T
	if len(data) == 0 {
		return none, corrupt(name, NoBatch, "the file is empty", nil)
	}
	if err := unmarshal(data, &v); err != nil {
		return none, corrupt(name, NoBatch, "the content cannot be read", err)
	}
	if _, err := marshal(v); err != nil || !bytes.Equal(data, seal(v, checksum)) {
		return none, corrupt(name, NoBatch, "the checksum does not match the content", err)
	}
	return v, nil
}

// mustPretty is marshalPretty for values that always have JSON.
func mustPretty(v any) []byte {
	data, err := marshalPretty(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return data
}
