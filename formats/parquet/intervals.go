package parquet

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Parquet's INTERVAL is months, days and milliseconds, none of them negative. Exact
// intervals are 16 bytes without a logical type, months, days and nanoseconds with their
// signs, and the footer's metadata says that such columns are intervals.
const (
	exactIntervalLength = 16
	exactIntervalsKey   = "tidemill.intervals"
	exactIntervalsForm  = "months, days, nanoseconds"
)

// exactInterval is the element of an interval, made exact.
func exactInterval(e format.SchemaElement) format.SchemaElement {
	return format.SchemaElement{
		Name: e.Name, RepetitionType: e.RepetitionType, Type: e.Type, TypeLength: thrift.New(int32(exactIntervalLength)),
	}
}

// hasExactIntervals says whether a file's intervals are exact.
func hasExactIntervals(metadata []format.KeyValue) bool {
	for _, kv := range metadata {
		if kv.Key == exactIntervalsKey {
			return kv.Value == exactIntervalsForm
		}
	}
	return false
}

// isExactInterval says whether e is one, in a file that has such.
func isExactInterval(e *format.SchemaElement) bool {
	return e.Type.V == format.FixedLenByteArray && e.TypeLength.V == exactIntervalLength && annotationOf(e).kind == annNone
}

func (w *leafWriter) appendIntervals(a *array.MonthDayNanoInterval, sel []int32) error {
	n := len(sel)
	if sel == nil {
		n = a.Len()
	}
	for j := range n {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		v := a.Value(i)
		if w.length == exactIntervalLength {
			w.values = binary.LittleEndian.AppendUint32(w.values, uint32(v.Months))
			w.values = binary.LittleEndian.AppendUint32(w.values, uint32(v.Days))
			w.values = binary.LittleEndian.AppendUint64(w.values, uint64(v.Nanoseconds))
			continue
		}
		millis := v.Nanoseconds / 1e6
		if v.Months < 0 || v.Days < 0 || v.Nanoseconds < 0 || v.Nanoseconds%1e6 != 0 || millis > math.MaxUint32 {
			return errors.New("a Parquet file holds intervals of whole milliseconds that are not negative; cast it to VARCHAR")
		}
		w.values = binary.LittleEndian.AppendUint32(w.values, uint32(v.Months))
		w.values = binary.LittleEndian.AppendUint32(w.values, uint32(v.Days))
		w.values = binary.LittleEndian.AppendUint32(w.values, uint32(millis))
	}
	return nil
}

// convertInterval reads months, days and milliseconds.
func convertInterval(dst, src []byte, n int) error {
	out := arrow.MonthDayNanoIntervalTraits.CastFromBytes(dst)[:n]
	for i := range out {
		v := src[intervalLength*i:]
		months, days := binary.LittleEndian.Uint32(v), binary.LittleEndian.Uint32(v[4:])
		if months > math.MaxInt32 || days > math.MaxInt32 {
			return errRange
		}
		out[i] = arrow.MonthDayNanoInterval{
			Months: int32(months), Days: int32(days),
			Nanoseconds: int64(binary.LittleEndian.Uint32(v[8:])) * int64(time.Millisecond),
		}
	}
	return nil
}

// convertExactInterval reads months, days and nanoseconds.
func convertExactInterval(dst, src []byte, n int) error {
	out := arrow.MonthDayNanoIntervalTraits.CastFromBytes(dst)[:n]
	for i := range out {
		v := src[exactIntervalLength*i:]
		out[i] = arrow.MonthDayNanoInterval{
			Months: int32(binary.LittleEndian.Uint32(v)), Days: int32(binary.LittleEndian.Uint32(v[4:])),
			Nanoseconds: int64(binary.LittleEndian.Uint64(v[8:])),
		}
	}
	return nil
}
