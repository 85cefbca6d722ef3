package codec

import (
	"bytes"

	"github.com/tidemill/tidemill/logical/connector"
)

// foreignMagics are the first bytes of files that are no text and that no text begins with.
var foreignMagics = []struct{ magic, is string }{
	{"PK\x03\x04", "a ZIP archive: unpack it"},
	{"PAR1\x15", "a Parquet file: read it as format = 'parquet'"},
	{"ARROW1\x00\x00", "an Arrow file: read it as format = 'arrow'"},
	{"Obj\x01", "an Avro file: read it as format = 'avro'"},
	{"\x1f\x9d", "compressed by compress (.Z): compress it anew, with gzip or zstd"},
	{"\x5d\x00\x00\x80\x00\xff\xff\xff\xff", "compressed as .lzma: compress it anew, with xz or zstd"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"},
	{"Rar!\x1a\x07", "a RAR archive: unpack it"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document: save it as CSV"},
	{"SQLite format 3\x00", "an SQLite database: export its tables"},
}

// foreign says of a file that is read as text what it is instead; "" if nothing speaks
// against text.
func foreign(head []byte) string {
	for _, f := range foreignMagics {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.is
		}
	}
	return ""
}

// checkForeign refuses a plain file that is no text, or leaves it out.
func (in *Input) checkForeign(head []byte) error {
	what := foreign(head)
	if what == "" || in.comp != CompressionNone || !in.spec.Encoding.isUTF8() {
		return nil
	}
	bad := connector.RecordError{File: in.spec.File.Path, Reason: "it is no text but " + what}
	if in.spec.Mode == Drop {
		in.leaveOut(bad)
		return nil
	}
	bad.Reason += "; mode = 'drop' leaves such files out"
	return &bad
}
