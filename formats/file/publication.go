package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/tidemill/tidemill/formats/codec"
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

// Decided lists what is being published at this moment, or was when its query ended: the
// decision is made, and files may have their names already, but it is not committed yet.
func Decided(fsys vfs.FS, dir string) ([]Publication, error) {
	pending := path.Join(dir, controlDir, pendingName)
	names, err := fsys.ReadDir(pending)
	if err != nil {
		return nil, unreadableOutput(dir, err)
	}
	var list []Publication
	for _, name := range names {
		if _, err := strconv.ParseInt(name.Name(), 10, 64); err != nil {
			continue // a temporary file
		}
		entries, err := readManifestFile(fsys, pending, name.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is committed by now
		}
		if err != nil {
			return nil, unreadableOutput(dir, err)
		}
		for _, e := range entries {
			list = append(list, publication(dir, e))
		}
	}
	return list, nil
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
func ContentHash(ctx context.Context, fsys vfs.FS, name string) (string, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return "", err
	}
	id := connector.FileIdentity{Path: name, Size: info.Size(), ModTime: info.ModTime().UnixMicro()}
	f := codec.File{FS: fsys, FileIdentity: id, Hash: codec.NewContentHash(id.Size)}
	if err := codec.HashFile(ctx, f); err != nil {
		return "", err
	}
	return f.Hash.Sum()
}
