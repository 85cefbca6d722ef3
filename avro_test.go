package tidemill_test

import (
	"testing"

	"github.com/tidemill/tidemill"
	"github.com/tidemill/tidemill/formats/avro"
)

// Avro files are a format as the others: read by name and by function, written by a sink,
// read by a stream.
func TestAvroFiles(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	x.landBids()
	x.ok(x.run(x.WriteStream(x.bids()).To("out/a", avro.Options{Compression: avro.Zstd, CompressionLevel: 3}).PartitionBy("channel")))
	want := x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM 'in/bids'")
	for _, from := range []string{"'out/a'", "'out/a/**/*.avro'", "read_avro('out/a')", "read_avro('out/a', mode => 'drop')"} {
		x.expect(from, x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM "+from), want)
	}
	now := tidemill.AvailableNow()
	sc, err := x.OpenScript(x.ctx, "a.sql", `
		CREATE STREAM s WITH (path = 'out/a', format = 'avro');
		CREATE SINK k WITH (path = 'out/b', format = 'avro', compression = 'deflate');
		INSERT INTO k SELECT * FROM s;`, tidemill.RunOptions{Trigger: &now})
	x.ok(err)
	x.ok(sc.Start(x.ctx).Wait())
	x.expect("through a stream", x.sql("SELECT count(*), sum(price), count(DISTINCT channel) FROM 'out/b'"), want)
	x.expect("rows by number", x.sql("SELECT count(DISTINCT struct(_metadata.file_path, _metadata.row_number)) FROM 'out/b'"), x.sql("SELECT count(*) FROM 'in/bids'"))
}
