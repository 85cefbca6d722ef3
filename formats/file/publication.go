package file

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// Publication is what one batch did to an output directory.
type Publication struct {
	Batch int64
	// Replaces says that its files of the output proper replace all before them.
	Replaces bool
	Files    []PublishedFile
}

// PublishedFile is a file as its batch wrote it.
type PublishedFile struct {
	Side string // "" for the output proper, late or bad
	Path string
	Size int64
	Rows int64
	Hash string // codec.ContentHash
}

// Published lists what is committed in an output directory, in the order of the batches,
// without files that later batches replaced, and the id of the query that writes it.
func Published(fsys vfs.FS, dir string) (list []Publication, queryID string, err error) {
	id, ok, err := readIdentity(fsys, dir)
	if err == nil && !ok {
		err = &fs.PathError{Op: "open", Path: path.Join(dir, controlDir, idName), Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, "", unreadableOutput(dir, err)
	}
	entries, err := readEntries(fsys, path.Join(dir, controlDir, manifestDir))
	if err != nil {
		return nil, "", unreadableOutput(dir, err)
	}
	for _, e := range fold(entries) {
		list = append(list, publication(dir, e))
	}
	return list, id.Query, nil
}

// PublishedBy is what one batch did to an output directory; it is quick for the newest.
func PublishedBy(fsys vfs.FS, dir string, batch int64) (Publication, error) {
	manifest := path.Join(dir, controlDir, manifestDir)
	entries, err := readManifestFile(fsys, manifest, strconv.FormatInt(batch, 10))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err = readEntries(fsys, manifest)
	}
	if err != nil {
		return Publication{}, unreadableOutput(dir, err)
	}
	for _, e := range entries {
		if e.Batch == batch {
			return publication(dir, e), nil
		}
	}
	return Publication{}, unreadableOutput(dir, fmt.Errorf("there is no entry of batch %d", batch))
}

func unreadableOutput(dir string, err error) error {
	return &connector.RefusedError{Path: dir, Reason: "what is committed in it cannot be told", Err: err}
}

func publication(dir string, e manifestEntry) Publication {
	p := Publication{Batch: e.Batch, Replaces: e.Kind == kindComplete}
	for _, f := range e.Files {
		of := dir
		if f.Side != "" {
			of += "." + f.Side
		}
		p.Files = append(p.Files, PublishedFile{Side: f.Side, Path: path.Join(of, f.Path), Size: f.Size, Rows: f.Rows, Hash: f.Hash})
	}
	return p
}

// ContentHash is the hash that an output notes of each of its files.
func ContentHash(fsys vfs.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := newBlockHasher()
	if _, err := io.Copy(hashWriter{sum}, bufio.NewReaderSize(f, 1<<20)); err != nil {
		return "", err
	}
	return sum.hash()
}

type hashWriter struct{ sum *blockHasher }

func (w hashWriter) Write(p []byte) (int, error) {
	w.sum.write(p)
	return len(p), nil
}
