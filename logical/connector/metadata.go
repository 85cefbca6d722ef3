package connector

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tidemill/tidemill/columnar"
)

// MetadataName is the hidden struct that queries over files may ask for.
const MetadataName = "_metadata"

// The fields of the struct, in their order. Each is a hidden column of a table or stream
// of files: column i of them is asked for as position len(Schema)+i.
const (
	MetadataPath      = iota // VARCHAR
	MetadataFile             // VARCHAR, the last part of the path
	MetadataSize             // BIGINT, in bytes
	MetadataModified         // TIMESTAMP, of the last modification
	MetadataRow              // BIGINT, the number of the row in its file, from 0
	MetadataFieldsLen        // how many there are
)

var metadataFields = [MetadataFieldsLen]arrow.Field{
	MetadataPath:     columnar.Field("file_path", columnar.String),
	MetadataFile:     columnar.Field("file_name", columnar.String),
	MetadataSize:     columnar.Field("file_size", columnar.Int64),
	MetadataModified: columnar.Field("file_modification_time", columnar.Timestamp),
	MetadataRow:      columnar.Field("row_number", columnar.Int64),
}

// MetadataFields are the fields of the struct.
func MetadataFields() []arrow.Field { return append([]arrow.Field(nil), metadataFields[:]...) }

// Filed is implemented by Tables whose rows come from files and that give the hidden
// columns of MetadataFields.
type Filed interface {
	Table
	// HasMetadata says whether they do.
	HasMetadata() bool
}

// HasMetadata says whether a table gives the hidden columns.
func HasMetadata(t Table) bool {
	f, ok := t.(Filed)
	return ok && f.HasMetadata()
}
