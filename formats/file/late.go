package file

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/klauspost/compress/s2"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/logical/connector"
)

// Of many files those of few bytes are looked at only when they are read, since what is
// known of a file by then is some kilobytes; of very many, all are. A unit is a run of
// such files, read one after another.
const (
	manyFiles     = 1000
	veryManyFiles = 100_000
	fewBytes      = 1 << 20
	runOfFiles    = 32
)

// lateScan is what the runs of a scan share.
type lateScan struct {
	layout *layout
	req    connector.ScanRequest
	schema *arrow.Schema
	hashes *entryHashes // nil: none are wanted
}

// lateFiles is a run of files: a unit that finds out only when it is opened what they
// are. Of a stream they are what its log says, kept as that text, compressed: of a million
// files that takes less room than anything decoded.
type lateFiles struct {
	*lateScan
	name  string // of the first file
	first int    // its number in hashes
	count int
	bytes int64

	files []foundFile
	lines []byte // or these lines of the log, packed, of files below root
	root  string
}

func (u *lateFiles) Name() string { return u.name }
func (u *lateFiles) Bytes() int64 { return u.bytes }

// isFull says that the run is not to grow by another file.
func (u *lateFiles) isFull(more int64) bool {
	return u.count == runOfFiles || u.count > 0 && u.bytes+more > fewBytes
}

// list decodes the run.
func (u *lateFiles) list() ([]foundFile, error) {
	if u.lines == nil {
		return u.files, nil
	}
	lines, err := s2.Decode(nil, u.lines)
	if err != nil {
		return nil, fmt.Errorf("bug: lines of the log: %w", err)
	}
	files := make([]foundFile, 0, u.count)
	err = eachLogLine(lines, func(f loggedFile, _, _ int) error {
		if !f.skipped {
			files = append(files, f.below(u.root))
		}
		return nil
	})
	return files, err
}

// Open implements connector.Unit.
func (u *lateFiles) Open(ctx context.Context) (columnar.Reader, error) {
	files, err := u.list()
	if err != nil {
		return nil, err
	}
	r := &lateReader{run: u, files: files}
	return r, r.openNext(ctx)
}

// lateReader reads a run of files.
type lateReader struct {
	run   *lateFiles
	files []foundFile
	next  int             // file to open next
	file  columnar.Reader // the one before; nil: it has ended, or has no rows
	hash  *codec.ContentHash
}

func (r *lateReader) Schema() *arrow.Schema { return r.run.schema }

// openNext opens the next file, if there is one.
func (r *lateReader) openNext(ctx context.Context) error {
	if r.next == len(r.files) {
		return nil
	}
	f := r.files[r.next]
	r.next++
	r.hash = nil
	if r.run.hashes != nil {
		r.hash = codec.NewContentHash(f.Size)
	}
	units, err := r.run.layout.fileUnits(ctx, f, r.run.req, r.hash)
	if err != nil || len(units) == 0 {
		return err
	}
	r.file, err = (&wholeFile{name: f.Path, units: units}).Open(ctx)
	return err
}

func (r *lateReader) Next(ctx context.Context) (arrow.RecordBatch, error) {
	for {
		if r.file != nil {
			b, err := r.file.Next(ctx)
			if !errors.Is(err, io.EOF) {
				return b, err
			}
			if err := r.Close(); err != nil {
				return nil, err
			}
			r.run.hashes.take(r.run.first+r.next-1, r.hash)
		}
		if r.next == len(r.files) {
			return nil, io.EOF
		}
		if err := r.openNext(ctx); err != nil {
			return nil, err
		}
	}
}

func (r *lateReader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// lateUnits lists the work of reading many files.
type lateUnits struct {
	*lateScan
	all   bool // no file is looked at now
	units []connector.Unit
	run   *lateFiles // the last of units; nil if it is no run
	n     int        // files so far
}

func (l *layout) lateUnits(count int, req connector.ScanRequest, hashes *entryHashes) *lateUnits {
	req = coarse(count, req)
	shared := &lateScan{layout: l, req: req, schema: requested(l.schema, &req), hashes: hashes}
	return &lateUnits{lateScan: shared, all: count >= veryManyFiles}
}

// add takes one more file; late says that it is to be looked at late, and then run is
// the one that it belongs to.
func (u *lateUnits) add(ctx context.Context, f foundFile) (late bool, err error) {
	if f.Size > fewBytes && !u.all {
		units, err := u.layout.fileUnits(ctx, f, u.req, u.hashes.of(u.n, f.Size))
		u.units, u.run = append(u.units, units...), nil
		u.n++
		return false, err
	}
	if u.run == nil || u.run.isFull(f.Size) {
		u.run = &lateFiles{lateScan: u.lateScan, name: f.Path, first: u.n}
		u.units = append(u.units, u.run)
	}
	u.run.count++
	u.run.bytes += f.Size
	u.n++
	return true, nil
}

// manyUnits is units for many files.
func (l *layout) manyUnits(ctx context.Context, files []foundFile, req connector.ScanRequest) ([]connector.Unit, error) {
	u := l.lateUnits(len(files), req, nil)
	for i, f := range files {
		late, err := u.add(ctx, f)
		if err != nil {
			return nil, err
		}
		if late {
			u.run.files = files[u.run.first : i+1 : i+1]
		}
	}
	return u.units, nil
}

// loggedUnits is units for the many files of an entry of the log.
func (l *layout) loggedUnits(ctx context.Context, root string, lines []byte, count int, req connector.ScanRequest, hashes *entryHashes) ([]connector.Unit, error) {
	u := l.lateUnits(count, req, hashes)
	begin, end := 0, 0 // of the run, in lines
	var packed []byte
	pack := func(run *lateFiles) {
		if run != nil {
			packed = s2.Encode(packed[:cap(packed)], lines[begin:end])
			run.root, run.lines = root, bytes.Clone(packed)
		}
	}
	err := eachLogLine(lines, func(f loggedFile, from, to int) error {
		if f.skipped {
			return nil
		}
		was := u.run
		late, err := u.add(ctx, f.below(root))
		if u.run != was {
			pack(was)
			begin = from
		}
		if late {
			end = to
		}
		return err
	})
	pack(u.run)
	if u.all && hashes != nil {
		hashes.runs = u.units
	}
	return u.units, err
}

// contentSum is what a codec.ContentHash is of; all zeros if it was not taken.
type contentSum [16]byte

// entryHashes are the hashes of the files of one log entry, taken while they are read:
// of those looked at late when they end, of others once they are asked for. A nil one
// takes none.
type entryHashes struct {
	mu      sync.Mutex
	sums    []contentSum
	reading map[int]*codec.ContentHash
	runs    []connector.Unit // *lateFiles of all of very many files; nil of fewer
}

func newEntryHashes(count int) *entryHashes {
	return &entryHashes{sums: make([]contentSum, count), reading: map[int]*codec.ContentHash{}}
}

// of is what to hash file i with.
func (h *entryHashes) of(i int, size int64) *codec.ContentHash {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reading[i] = codec.NewContentHash(size)
	return h.reading[i]
}

// take notes the hash of file i. One that was not read whole (LIMIT, pruning) has none.
func (h *entryHashes) take(i int, hash *codec.ContentHash) {
	if h == nil || hash == nil {
		return
	}
	sum, err := hash.Sum()
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _ = hex.Decode(h.sums[i][:], []byte(sum)) // Sum writes hexadecimal
}

// eachOf visits the files of runs, with their hashes. What was packed to be read needs less
// room than the entry of the log, read once more.
func (h *entryHashes) eachOf(visit func(f connector.FileHash) error) error {
	i := 0
	for _, u := range h.runs {
		files, err := u.(*lateFiles).list()
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := visit(connector.FileHash{FileIdentity: f.FileIdentity, Hash: h.sum(i)}); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// sum is the hash of file i in hexadecimal, "" if it has none.
func (h *entryHashes) sum(i int) string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	reading := h.reading[i]
	h.mu.Unlock()
	h.take(i, reading)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sums[i] == (contentSum{}) {
		return ""
	}
	return hex.EncodeToString(h.sums[i][:])
}
