// Package text reads and writes plain text: one VARCHAR column, value, a row a line.
// Lines end in LF, CRLF or CR; unlike a record of CSV or JSON, an empty line is one.
package text
