package file

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
	"github.com/tidemill/tidemill/logical/connector"
)

// ReadsBack says whether a source with the options source would list files that a sink
// with the options sink writes.
func ReadsBack(fsys vfs.FS, formats Formats, source, sink map[string]string) bool {
	in, _, err := decodeRead(source)
	if err != nil {
		return false // refused where it is opened
	}
	out, rest, err := decodeWrite(sink)
	if err != nil {
		return false
	}
	format, err := sinkFormat(formats, out, rest, &connector.Env{FS: fsys})
	if err != nil {
		return false
	}
	var names []string
	for batch := range int64(10) {
		for number := range 2 {
			names = append(names, fmt.Sprintf("part-%020d-%03d%s", batch, number, format.Extension()))
		}
	}
	names = append(names, tableName+format.Extension())
	return in.lists(fsys, out.Path, out.PartitionBy, names)
}

// lists says whether a source would list files called one of names in dir, or in the
// folders of the partition columns keys below it.
func (o *ReadOptions) lists(fsys vfs.FS, dir string, keys, names []string) bool {
	root, err := (&lister{fs: fsys, path: o.Path}).find()
	if err != nil || root.file != "" {
		return false
	}
	w := sinkFiles{dir: vfs.Resolve(fsys, dir), keys: keys, names: names}
	from, state := vfs.Resolve(fsys, root.dir), begin(root.patterns)
	return w.isListed(from, state, o.Recursive) || w.isLinked(fsys, from, state, o.Recursive, map[string]bool{})
}

// sinkFiles are the files that a sink writes.
type sinkFiles struct {
	dir         string // resolved
	keys, names []string
}

// isListed says whether a listing that begins in from, which is resolved, comes upon them.
func (w sinkFiles) isListed(from string, state globState, recursive bool) bool {
	keys := w.keys
	if below, ok := elementsBelow(w.dir, from); ok && len(below) <= len(keys) {
		// It begins in a folder of a partition.
		for i, name := range below {
			if !strings.HasPrefix(name, keys[i]+"=") {
				return false
			}
		}
		keys = keys[len(below):]
	} else {
		below, ok := elementsBelow(from, w.dir)
		if !ok {
			return false
		}
		for _, name := range below {
			state = state.folder(name, recursive)
		}
	}
	for _, key := range keys {
		state = state.partition(key, recursive)
	}
	return slices.ContainsFunc(w.names, func(name string) bool {
		matched, _ := state.step(name)
		return matched
	})
}

// isLinked says whether a listing that begins in dir comes upon them through a link to a
// folder, which may not be there yet. seen are the folders that were looked at.
func (w sinkFiles) isLinked(fsys vfs.FS, dir string, state globState, recursive bool, seen map[string]bool) bool {
	key := fmt.Sprint(dir, state)
	if seen[key] {
		return false
	}
	seen[key] = true
	type folder struct {
		dir   string
		state globState
	}
	var folders []folder
	found := false
	// What cannot be read is for the listing itself to tell.
	_ = vfs.List(fsys, dir, func(part []fs.DirEntry) error {
		for _, e := range part {
			isLink := e.Type()&fs.ModeSymlink != 0
			below := globState(nil)
			if isLink || e.IsDir() {
				below = state.folder(e.Name(), recursive)
			}
			if below == nil {
				continue
			}
			name := path.Join(dir, e.Name())
			if isLink {
				name = vfs.Resolve(fsys, name)
				found = found || w.isListed(name, below, recursive)
			}
			folders = append(folders, folder{name, below})
		}
		return nil
	})
	return found || slices.ContainsFunc(folders, func(f folder) bool { return w.isLinked(fsys, f.dir, f.state, recursive, seen) })
}

// elementsBelow are the names that lead from dir to p; ok is false if p does not lie in it.
func elementsBelow(dir, p string) (names []string, ok bool) {
	dir, p = path.Clean(dir), path.Clean(p)
	if p == dir {
		return nil, true
	}
	if dir == "." && !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../") {
		return strings.Split(p, "/"), true
	}
	rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
	if !ok {
		return nil, false
	}
	return strings.Split(rest, "/"), true
}

// folder is the state in a folder called name, empty if a listing does not enter it.
func (s globState) folder(name string, recursive bool) globState {
	_, below := s.step(name)
	if strings.HasSuffix(name, ".checkpoint") || !s.enters(below, recursive) {
		return nil
	}
	return below
}

// enters says whether a listing goes on into a folder for which below is left to match.
func (s globState) enters(below globState, recursive bool) bool {
	return len(below) > 0 && (recursive || below[0] != nil || s[0] != nil)
}

// partition is the state in some folder of a partition column, key=….
func (s globState) partition(key string, recursive bool) globState {
	var below globState
	for _, p := range s {
		switch {
		case isHidden(key):
		case p == nil:
			below = append(below, nil)
		case p[0] == anyDepth:
			below = append(below, p)
		case mayBegin(p[0], key+"="):
			below = append(below, p[1:])
		}
	}
	for i, p := range below {
		if p != nil && len(p) == 0 { // a pattern that ends at a folder takes all that is in it
			below[i] = nil
		}
	}
	below = closure(below)
	if !s.enters(below, recursive) {
		return nil
	}
	return below
}

// mayBegin says whether an element of a pattern matches a name that begins with prefix,
// and goes on as values of a partition do.
func mayBegin(elem, prefix string) bool {
	ok, err := matchElement(elem, prefix+"x")
	return ok && err == nil || strings.HasPrefix(elem, prefix)
}
