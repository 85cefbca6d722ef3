package incremental

import (
	"github.com/tidemill/tidemill/checkpoint"
	"github.com/tidemill/tidemill/logical/connector"
)

// manyInputs is how many files a batch names in its commit, unless the Config says otherwise.
// Of more it has the hashes alone: which files they are the log of the source tells.
const manyInputs = 10_000

// batchInputs are the files that a batch read, for its commit.
type batchInputs struct {
	most  int // named
	files []checkpoint.InputFile
	many  []checkpoint.InputHashes // in place of files
}

// add takes one more file of a stream, in the order of its log.
func (b *batchInputs) add(stream string, f connector.FileHash) {
	in := checkpoint.InputFile{Source: stream, Path: f.Path, Size: f.Size, ModTime: f.ModTime, Hash: f.Hash}
	if b.many == nil && len(b.files) < b.most {
		b.files = append(b.files, in)
		return
	}
	for _, early := range b.files {
		b.many = checkpoint.AddInputHash(b.many, early)
	}
	b.files, b.many = nil, checkpoint.AddInputHash(b.many, in)
}
