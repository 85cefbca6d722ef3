package csv

import (
	"github.com/tidemill/tidemill/formats/codec"
)

// sniffable are the delimiters that are found out, in the order of preference.
const sniffable = ",;\t|"

// sniffedRecords is how many records of a file are looked at.
const sniffedRecords = 64

// settled is the format with its delimiter found out, if that was asked for: by the first
// of the files that has a record, so that it does not depend on how many there are.
func (f *format) settled(files []codec.File) (*format, error) {
	if !f.opts.sniffs() {
		return f, nil
	}
	for _, file := range files {
		if file.Size == 0 {
			continue
		}
		file.Hash = nil
		delimiter, err := f.sniff(file)
		if err != nil {
			return nil, err
		}
		if delimiter != "" {
			g := *f
			g.opts.Delimiter, g.sniffed = delimiter, true
			return &g, nil
		}
	}
	return f, nil
}

// sniff is the delimiter that divides most of the first records of a file into as many
// fields as the first, of several the one that makes more fields; a comma if none makes
// two; "" if the file has no record.
func (f *format) sniff(file codec.File) (string, error) {
	best, bestScore, any := ",", 0, false
	for _, c := range sniffable {
		counts, err := f.fieldCounts(file, string(c))
		if err != nil {
			return "", err
		}
		any = any || len(counts) > 0
		same := 0
		for _, n := range counts {
			if n == counts[0] {
				same++
			}
		}
		// Records that agree count most; then, fields.
		if len(counts) > 0 && counts[0] > 1 && same*1000+min(counts[0], 999) > bestScore {
			best, bestScore = string(c), same*1000+min(counts[0], 999)
		}
	}
	if !any {
		return "", nil
	}
	return best, nil
}

// fieldCounts are the numbers of fields of the first records, for a delimiter.
func (f *format) fieldCounts(file codec.File, delimiter string) (counts []int, err error) {
	opts := f.opts
	opts.Delimiter = delimiter
	d, _, err := opts.compile("")
	if err != nil {
		return nil, nil // it is the quote, or the escape
	}
	in, err := codec.OpenInput(codec.InputSpec{File: file, Range: codec.Range{End: file.Size},
		Compression: opts.Compression, Encoding: opts.Encoding, Mode: opts.Mode})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s := newScanner(&d, in)
	for len(counts) < sniffedRecords {
		record, err := s.record()
		if err != nil || record == nil {
			return counts, err
		}
		counts = append(counts, len(record))
	}
	return counts, nil
}
