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
	chartWidth, chartLeft, chartRight = 760, 250, 70
	barHeight, barGap, headHeight     = 16, 6, 56
)

// RatioColumn is the column of what was run on both engines: our time as a share of the
// other's.
const RatioColumn = "ratio"

// WriteChart draws a chart for each suite that names a column for it, one below the
// other. A ratio is a bar on a logarithmic scale around one, to the left of it less time
// than the other engine; all else are bars from zero.
func (r *Report) WriteChart(w io.Writer) error {
	c := &chart{}
	for _, name := range r.order() {
		suite := r.Suites[name]
		var bars []Result
		for _, res := range r.Results {
			if v, ok := res.Values[suite.Chart]; ok && res.Suite == name && v.Number > 0 {
				bars = append(bars, res)
			}
		}
		if len(bars) == 0 {
			continue
		}
		c.head(name+": "+suite.Chart, suite.Machine)
		if suite.Chart == RatioColumn {
			c.ratios(bars)
		} else {
			c.lengths(bars, suite.Chart)
		}
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#fff"/>
%s</svg>
`, chartWidth, c.y, c.b.String())
	return err
}

// chart is what is drawn so far, down to y.
type chart struct {
	b strings.Builder
	y int
}

func (c *chart) head(title, machine string) {
	fmt.Fprintf(&c.b, `<text x="12" y="%d" font-size="15">%s</text>`+"\n", c.y+22, escaped(title))
	fmt.Fprintf(&c.b, `<text x="12" y="%d" fill="#666">%s</text>`+"\n", c.y+40, escaped(machine))
	c.y += headHeight
}

// ratios draws bars around one.
func (c *chart) ratios(bars []Result) {
	largest := 2.0
	for _, res := range bars {
		v := res.Values[RatioColumn].Number
		largest = max(largest, v, 1/v)
	}
	middle, top := chartLeft+(chartWidth-chartLeft-chartRight)/2, c.y
	unit := float64(middle-chartLeft) / math.Log(largest)
	for _, res := range bars {
		v := res.Values[RatioColumn].Number
		length := math.Log(v) * unit
		x, color := float64(middle), "#c0504d"
		if length < 0 {
			x, length, color = x+length, -length, "#2e7d5b"
		}
		c.bar(res.Name, x, length, color, fmt.Sprintf("%.2f", v))
	}
	fmt.Fprintf(&c.b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#333"/>`, middle, top-6, middle, c.y)
	fmt.Fprintf(&c.b, `<text x="%d" y="%d" text-anchor="middle" fill="#666">as long</text>`+"\n", middle, c.y+18)
	c.y += 30
}

// lengths draws bars from zero.
func (c *chart) lengths(bars []Result, column string) {
	largest := 0.0
	for _, res := range bars {
		largest = max(largest, res.Values[column].Number)
	}
	for _, res := range bars {
		v := res.Values[column].Number
		c.bar(res.Name, chartLeft, v/largest*(chartWidth-chartLeft-chartRight), "#4a7ab5", Short(v))
	}
	c.y += 12
}

func (c *chart) bar(name string, x, length float64, color, value string) {
	fmt.Fprintf(&c.b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`,
		chartLeft-12, c.y+barHeight-4, escaped(name), x, c.y, max(length, 1), barHeight, color)
	fmt.Fprintf(&c.b, `<text x="%d" y="%d">%s</text>`+"\n", chartWidth-chartRight+8, c.y+barHeight-4, value)
	c.y += barHeight + barGap
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder takes everything
	return b.String()
}
