package function

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"

	"github.com/tidemill/tidemill/columnar"
	"github.com/tidemill/tidemill/columnar/kernel"
)

// encodingScalars turn bytes into text and digests.
func encodingScalars() []*Scalar {
	toHex := bytesToText("hex", "The bytes of a text or BINARY, or an integer, in hexadecimal.", "hex('abc') = 616263", func(dst, s []byte) []byte {
		return append(dst, strings.ToUpper(hex.EncodeToString(s))...)
	}, "to_hex")
	toHex.Overloads = append(toHex.Overloads, Overload{
		Args: []Matcher{bigint}, Result: always(columnar.String),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				in := numbersOf[int64](c.args[0])
				return c.text(c.rows*16, func(dst []byte, i int) ([]byte, error) {
					return append(dst, strings.ToUpper(strconv.FormatUint(uint64(in.at(i)), 16))...), nil
				})
			}), nil
		},
	})
	return []*Scalar{
		toHex,
		textToBytes("unhex", "hexadecimal", "The bytes that hexadecimal digits stand for.", "CAST(unhex('616263') AS VARCHAR) = abc", func(dst, s []byte) ([]byte, error) {
			if len(s)%2 == 1 {
				s = append([]byte{'0'}, s...)
			}
			return hex.AppendDecode(dst, s)
		}, "from_hex"),
		bytesToText("base64", "The bytes of a text or BINARY in base 64.", "base64('abc') = YWJj", base64.StdEncoding.AppendEncode, "to_base64"),
		textToBytes("unbase64", "base 64", "The bytes that base 64 stands for.", "CAST(unbase64('YWJj') AS VARCHAR) = abc", base64.StdEncoding.AppendDecode, "from_base64"),
		bytesToText("md5", "MD5 digest in hexadecimal.", "md5('abc') = 900150983cd24fb0d6963f7d28e17f72", func(dst, s []byte) []byte {
			sum := md5.Sum(s)
			return hex.AppendEncode(dst, sum[:])
		}),
		bytesToText("sha1", "SHA-1 digest in hexadecimal.", "sha1('abc') = a9993e364706816aba3e25717850c26c9cd0d89d", func(dst, s []byte) []byte {
			sum := sha1.Sum(s)
			return hex.AppendEncode(dst, sum[:])
		}, "sha"),
		bytesToText("sha256", "SHA-256 digest in hexadecimal.", "left(sha256('abc'), 8) = ba7816bf", func(dst, s []byte) []byte {
			sum := sha256.Sum256(s)
			return hex.AppendEncode(dst, sum[:])
		}),
		sha2Scalar(),
		bytesToText("url_encode", "The text as it stands in the query of a URL.", "url_encode('a b&c') = a+b%26c", func(dst, s []byte) []byte {
			return append(dst, url.QueryEscape(string(s))...)
		}),
		digestNumber("crc32", "CRC-32 of the bytes of a text or BINARY.", "crc32('abc') = 891568578", func(s []byte) int64 { return int64(crc32.ChecksumIEEE(s)) }),
		digestNumber("xxhash64", "XXH3 hash of the bytes of a text or BINARY, the same in every release.", "xxhash64('') = 3244421341483603138", func(s []byte) int64 { return int64(xxh3.Hash(s)) }),
	}
}

// bytesToText is a function from bytes to a text. f appends the result.
func bytesToText(name, doc, example string, f func(dst, s []byte) []byte, aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{textType}, Result: always(columnar.String),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				in := kernel.TextsOf(c.args[0])
				return c.text(2*in.Size(c.rows), func(dst []byte, i int) ([]byte, error) { return f(dst, in.At(i)), nil })
			}), nil
		},
	}}}
}

// textToBytes is a function from a text to the bytes that it stands for in an encoding.
func textToBytes(name, encoding, doc, example string, f func(dst, s []byte) ([]byte, error), aliases ...string) *Scalar {
	return &Scalar{Name: name, Aliases: aliases, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{varchar}, Result: always(columnar.Binary), Fallible: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Binary, func(c *call) (arrow.Array, error) {
				in := kernel.TextsOf(c.args[0])
				return c.text(in.Size(c.rows), func(dst []byte, i int) ([]byte, error) {
					d, err := f(dst, in.At(i))
					if err != nil {
						return d, fmt.Errorf("%q is not %s", in.At(i), encoding)
					}
					return d, nil
				})
			}), nil
		},
	}}}
}

// digestNumber is a function from bytes to a number.
func digestNumber(name, doc, example string, f func(s []byte) int64) *Scalar {
	return &Scalar{Name: name, Doc: doc, Example: example, Overloads: []Overload{{
		Args: []Matcher{textType}, Result: always(columnar.Int64),
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.Int64, func(c *call) (arrow.Array, error) {
				in := kernel.TextsOf(c.args[0])
				return fixedRows(c, func(i int) int64 { return f(in.At(i)) })
			}), nil
		},
	}}}
}

// sha2Scalar is sha2(text, bits), as in Spark.
func sha2Scalar() *Scalar {
	return &Scalar{Name: "sha2", Doc: "SHA-2 digest of 224, 256 (also 0), 384 or 512 bits in hexadecimal; null for other lengths.", Example: "left(sha2('abc', 256), 8) = ba7816bf", Overloads: []Overload{{
		Args: []Matcher{textType, bigint}, Result: always(columnar.String), NullSafe: true,
		Bind: func([]arrow.DataType, []arrow.Array) (Kernel, error) {
			return onRows(columnar.String, func(c *call) (arrow.Array, error) {
				in, length := kernel.TextsOf(c.args[0]), numbersOf[int64](c.args[1])
				return c.nullableText(c.rows*64, func(dst []byte, i int) ([]byte, bool) {
					s := in.At(i)
					switch length.at(i) {
					case 0, 256:
						sum := sha256.Sum256(s)
						return hex.AppendEncode(dst, sum[:]), true
					case 224:
						sum := sha256.Sum224(s)
						return hex.AppendEncode(dst, sum[:]), true
					case 384:
						sum := sha512.Sum384(s)
						return hex.AppendEncode(dst, sum[:]), true
					case 512:
						sum := sha512.Sum512(s)
						return hex.AppendEncode(dst, sum[:]), true
					}
					return dst, false
				})
			}), nil
		},
	}}}
}
