package harness

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Measures of the chart, in pixels.
const (
	chartWidth, chartLeft, chartRight = 760, 250, 60
	barHeight, barGap, chartTop       = 16, 6, 56
)

// WriteChart draws the value of a column, a ratio, of every result that has it as a bar
// on a logarithmic scale around one: to the left of it less time than the other engine.
func (r *Report) WriteChart(w io.Writer, title, column string) error {
	var bars []Result
	largest := 2.0
	for _, res := range r.Results {
		if v, ok := res.Values[column]; ok && v.Number > 0 {
			bars = append(bars, res)
			largest = max(largest, v.Number, 1/v.Number)
		}
	}
	height := chartTop + len(bars)*(barHeight+barGap) + 30
	middle := chartLeft + (chartWidth-chartLeft-chartRight)/2
	unit := float64(middle-chartLeft) / math.Log(largest)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/><text x="12" y="22" font-size="15">%s</text>`+"\n", escaped(title))
	fmt.Fprintf(&b, `<text x="12" y="40" fill="#666">%s</text>`+"\n", escaped(r.Machine))
	for i, res := range bars {
		v, y := res.Values[column].Number, chartTop+i*(barHeight+barGap)
		length := math.Log(v) * unit
		x, color := float64(middle), "#c0504d"
		if length < 0 {
			x, length, color = x+length, -length, "#2e7d5b"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`,
			chartLeft-12, y+barHeight-4, escaped(res.Name), x, y, max(length, 1), barHeight, color)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%.2f</text>`+"\n", chartWidth-chartRight+8, y+barHeight-4, v)
	}
	bottom := chartTop + len(bars)*(barHeight+barGap)
	fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#333"/>`, middle, chartTop-6, middle, bottom)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#666">as long</text></svg>`+"\n", middle, bottom+18)
	_, err := io.WriteString(w, b.String())
	return err
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
