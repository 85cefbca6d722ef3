package codec_test

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/tidemill/tidemill/formats/codec"
	"github.com/tidemill/tidemill/formats/codec/codectest"
)

// Zero bytes behind a bzip2 stream, and between two, are padding; what else follows one, or a
// stream that is cut off, is damage, also with zeros behind it.
func TestBzip2Padding(t *testing.T) {
	t.Parallel()
	decode := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	stream := decode("QlpoOTFBWSZTWacUK3cAAALBgAAQAgGEgCAAIYAMAjj1G4u5IpwoSFOKFbuA")
	endsInZero := decode("QlpoOTFBWSZTWfUdeLAAAAFJAAAQAQAAASAAIZgZgWF3JFOFCQ9R14sA")
	if endsInZero[len(endsInZero)-1] != 0 {
		t.Fatal("the stream does not end in a zero byte")
	}
	zeros := func(n int) []byte { return make([]byte, n) }
	for name, c := range map[string]struct {
		data []byte
		want string // "": damaged
	}{
		"one zero":             {slices.Concat(stream, zeros(1)), "one\ntwo\n"},
		"two zeros":            {slices.Concat(stream, zeros(2)), "one\ntwo\n"},
		"a block of zeros":     {slices.Concat(stream, zeros(100_000)), "one\ntwo\n"},
		"zeros between":        {slices.Concat(stream, zeros(3), stream, zeros(1)), "one\ntwo\none\ntwo\n"},
		"ends in zero":         {endsInZero, "n6\n"},
		"and one more":         {slices.Concat(endsInZero, zeros(1)), "n6\n"},
		"and another stream":   {slices.Concat(endsInZero, stream), "n6\none\ntwo\n"},
		"cut off":              {stream[:len(stream)-1], ""},
		"cut off before zeros": {slices.Concat(stream[:len(stream)-2], zeros(512)), ""},
		"a text behind":        {slices.Concat(stream, zeros(2), []byte("text")), ""},
		"a byte behind":        {slices.Concat(stream, []byte{1}), ""},
	} {
		got, err := read(t, codectest.File(t, "x.bz2", c.data), codec.InputSpec{})
		if c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A file may begin with a frame that zstd and LZ4 readers pass over.
func TestSkippableFrame(t *testing.T) {
	t.Parallel()
	const content = "some text, some more\n"
	short := "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
	long := "\x5f\x2a\x4d\x18\x20\x00\x00\x00" + "0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		name  string
		frame string
		by    codec.Compression
	}{
		{"x.csv", short, codec.Zstd}, {"x.csv", long, codec.Zstd}, {"x.zst", long, codec.Zstd},
		{"x.csv", short, codec.LZ4}, {"x.lz4", long, codec.LZ4},
	} {
		f := codectest.File(t, c.name, append([]byte(c.frame), compress(t, c.by, content)...))
		if got, err := read(t, f, codec.InputSpec{}); err != nil || got != content {
			t.Errorf("%s in %s: %q, %v", c.by, c.name, got, err)
		}
	}
}
