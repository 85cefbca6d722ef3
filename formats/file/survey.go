package file

import (
	"context"
	"path"
	"slices"
	"strings"
)

// survey keeps, of a listing that may be of a million files, those that tell what a stream
// is to know before it begins: which formats the names speak of, which columns their
// folders and the first of them have.
type survey struct {
	formats Formats
	one     bool // the format is known: names do not tell
	groups  map[string]*surveyed
}

// surveyed is the first files of one format.
type surveyed struct {
	first   firstFiles // whatever they hold
	filled  firstFiles // with something in them
	folders map[string]foundFile
}

// survey lists the files that tell, sorted: if the columns were just found, of the files
// that were listed for them.
func (p *opening) survey(ctx context.Context) ([]foundFile, error) {
	l := p.o.lister
	root, err := l.find()
	if err != nil {
		return nil, err
	}
	s := &survey{formats: p.formats, one: p.o.spec.Name != "" || p.o.options.Format != "", groups: map[string]*surveyed{}}
	handed, _ := p.o.env.Listed.(*handover)
	if !handed.tell(func(f foundFile) {
		if l.accept(f.rel) {
			s.found(f)
		}
	}) {
		handed = newHandover(l)
		err = l.list(ctx, visitor{found: func(f foundFile) error {
			handed.add(f)
			s.found(f)
			return nil
		}})
		l.dirs = nil
	}
	if err != nil {
		return nil, err
	}
	p.o.handed = handed
	var files []foundFile
	for _, g := range s.groups {
		files = slices.Concat(files, g.first.sorted(), g.filled.sorted())
		for _, f := range g.folders {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, compareFiles)
	files = slices.CompactFunc(files, func(a, b foundFile) bool { return a.rel == b.rel })
	for i := range files {
		files[i].Path = join(root.dir, files[i].rel)
	}
	return files, nil
}

func (s *survey) found(f foundFile) {
	name := ""
	if !s.one {
		if format, _, ok := s.formats.byExtension(f.rel); ok {
			name = format.Name
		}
	}
	g := s.groups[name]
	if g == nil {
		g = &surveyed{first: firstFiles{most: sampleFiles}, filled: firstFiles{most: triedFiles}, folders: map[string]foundFile{}}
		s.groups[name] = g
	}
	g.first.add(f)
	if f.Size > 0 {
		g.filled.add(f)
	}
	dir := path.Dir(f.rel)
	if old, known := g.folders[dir]; strings.Contains(dir, "=") && (!known || compareFiles(f, old) < 0) {
		g.folders[strings.Clone(dir)] = f
	}
}

// firstFiles keeps the first files, in order, of those it is given.
type firstFiles struct {
	most int
	// files are up to twice as many as are kept; the first most are sorted once cut is set.
	files []foundFile
	cut   bool
}

func (k *firstFiles) add(f foundFile) {
	if k.cut && compareFiles(f, k.files[k.most-1]) > 0 {
		return
	}
	if k.files = append(k.files, f); len(k.files) == 2*k.most {
		k.files, k.cut = k.sorted(), true
	}
}

// sorted is what is kept.
func (k *firstFiles) sorted() []foundFile {
	slices.SortFunc(k.files, compareFiles)
	return k.files[:min(len(k.files), k.most)]
}
