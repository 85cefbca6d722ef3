package codec

import (
	"errors"

	"github.com/tidemill/tidemill/logical/connector"
)

// keptSamples is how many bad records a ScanStats keeps.
const keptSamples = 5

// CountMalformed counts a bad record, buffer indexes [start, end) of in. describe says
// what is wrong with it, without the line; it is asked only while samples are still kept,
// or all bad records are: finding a line number means reading the file again.
func CountMalformed(s *connector.ScanStats, in *Input, start, end int, describe func() connector.RecordError) {
	if s == nil {
		return
	}
	isSample := s.MalformedRows.Load() < keptSamples
	if !isSample && s.Kept == nil {
		s.MalformedRows.Add(1)
		return
	}
	e := describe()
	at := connector.Span{Offset: in.Offset(start), Length: int64(end - start)}
	if isSample {
		e.Line = in.Line(at.Offset)
	}
	s.MalformedText(e, in.texts(), at)
}

// CountRows counts rows handed on.
func CountRows(s *connector.ScanStats, rows int) {
	if s != nil {
		s.Rows.Add(int64(rows))
	}
}

// ModeKey is the option mode.
func ModeKey(p *Mode) connector.Key {
	return connector.EnumKey("mode", p, "permissive", "drop", "fail")
}

// CorruptColumn is implemented by formats with an option corrupt_column: the name of
// the declared VARCHAR column that receives the raw text of malformed records, "" if
// none is set. Who makes Columns for the format finds its position by it.
type CorruptColumn interface{ CorruptColumn() string }

// Pinner is implemented by formats that leave a choice to the first file even where
// columns are declared (CSV: is there a header). Pin makes the choice once, to be
// handed to WithPinned; it is nil if no file has anything in it yet.
type Pinner interface {
	Pin(files []File, schema Columns) (pinned map[string]string, err error)
}

// maxBatchText is how many bytes of text a batch collects before it is handed on
// with fewer rows.
const maxBatchText = 64 << 20

// BatchFull says whether a batch that holds rows and text should be handed on.
func BatchFull(rows, batchRows, textBytes int) bool {
	return rows >= batchRows || textBytes >= maxBatchText
}

// Dropped is err, or nil for that of a damaged file that is to be left out, which is
// counted then.
func (m Mode) Dropped(err error, stats *connector.ScanStats) error {
	var bad *connector.RecordError
	if m != Drop || !errors.As(err, &bad) {
		return err
	}
	stats.MalformedFile(*bad)
	return nil
}
