// Package diff compares rows by value: as sets in which rows may repeat, or in order,
// with doubles that may be a little apart. Batch boundaries do not count, and a
// dictionary equals its plain form.
//
// Rows turns batches into Row values, Compare walks through two lists of them. Who
// compares much data compares something cheaper first: a Row is text.
package diff
