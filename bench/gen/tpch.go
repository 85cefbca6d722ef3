package gen

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/tidemill/tidemill/columnar"
)

// TPCHTables are the tables of the decision support benchmark in order of their size.
var TPCHTables = []string{"region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"}

// TPCH is one of TPCHTables at a scale: 1 is about a gigabyte of text, 6,000,000 lines
// of 1,500,000 orders. Sizes, keys, ranges and how columns depend on each other are
// those of the public specification; the random numbers and the words of comments are
// not, so its answers for validation do not hold.
func TPCH(seed uint64, table string, scale float64) (*Data, error) {
	w := &warehouse{seed: seed, suppliers: max(int64(10_000*scale), 1), parts: max(int64(200_000*scale), 4),
		customers: max(int64(150_000*scale), 3), orders: max(int64(1_500_000*scale), 1), clerks: max(int64(1000*scale), 1)}
	money, key := columnar.Decimal(15, 2), columnar.Int64
	d := &Data{seed: seed}
	switch table {
	case "region":
		d.Schema, d.Rows, d.fill = fieldsOf("r_regionkey", key, "r_name", columnar.String, "r_comment", columnar.String), int64(len(regions)), w.region
	case "nation":
		d.Schema = fieldsOf("n_nationkey", key, "n_name", columnar.String, "n_regionkey", key, "n_comment", columnar.String)
		d.Rows, d.fill = int64(len(nations)), w.nation
	case "supplier":
		d.Schema = fieldsOf("s_suppkey", key, "s_name", columnar.String, "s_address", columnar.String, "s_nationkey", key,
			"s_phone", columnar.String, "s_acctbal", money, "s_comment", columnar.String)
		d.Rows, d.fill = w.suppliers, w.supplier
	case "customer":
		d.Schema = fieldsOf("c_custkey", key, "c_name", columnar.String, "c_address", columnar.String, "c_nationkey", key,
			"c_phone", columnar.String, "c_acctbal", money, "c_mktsegment", columnar.String, "c_comment", columnar.String)
		d.Rows, d.fill = w.customers, w.customer
	case "part":
		d.Schema = fieldsOf("p_partkey", key, "p_name", columnar.String, "p_mfgr", columnar.String, "p_brand", columnar.String, "p_type", columnar.String,
			"p_size", columnar.Int32, "p_container", columnar.String, "p_retailprice", money, "p_comment", columnar.String)
		d.Rows, d.fill = w.parts, w.part
	case "partsupp":
		d.Schema = fieldsOf("ps_partkey", key, "ps_suppkey", key, "ps_availqty", columnar.Int32, "ps_supplycost", money, "ps_comment", columnar.String)
		d.Rows, d.fill = w.parts*suppliersOfPart, w.partsupp
	case "orders":
		d.Schema = fieldsOf("o_orderkey", key, "o_custkey", key, "o_orderstatus", columnar.String, "o_totalprice", money, "o_orderdate", columnar.Date,
			"o_orderpriority", columnar.String, "o_clerk", columnar.String, "o_shippriority", columnar.Int32, "o_comment", columnar.String)
		d.Rows, d.fill = w.orders, w.order
	case "lineitem":
		d.Schema = fieldsOf("l_orderkey", key, "l_partkey", key, "l_suppkey", key, "l_linenumber", columnar.Int32, "l_quantity", money,
			"l_extendedprice", money, "l_discount", money, "l_tax", money, "l_returnflag", columnar.String, "l_linestatus", columnar.String,
			"l_shipdate", columnar.Date, "l_commitdate", columnar.Date, "l_receiptdate", columnar.Date,
			"l_shipinstruct", columnar.String, "l_shipmode", columnar.String, "l_comment", columnar.String)
		d.Rows, d.fill = w.orders, w.lineitems
	default:
		return nil, fmt.Errorf("table %q is unknown; known are %s", table, strings.Join(TPCHTables, ", "))
	}
	return d, nil
}

// fieldsOf is a schema of names and types in turn.
func fieldsOf(list ...any) *arrow.Schema {
	var fields []arrow.Field
	for i := 0; i < len(list); i += 2 {
		fields = append(fields, columnar.Field(list[i].(string), list[i+1].(arrow.DataType)))
	}
	return columnar.NewSchema(fields...)
}

// warehouse makes the rows of all tables; row numbers count from 0, keys from 1.
type warehouse struct {
	seed                                        uint64
	suppliers, parts, customers, orders, clerks int64
}

const suppliersOfPart = 4

// Days since 1970 of the calendar of the specification.
const (
	firstOrder = 8035  // 1992-01-01
	lastOrder  = 10440 // 1998-08-02
	today      = 9298  // 1995-06-17
)

var (
	regions = []string{"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"}
	nations = []struct {
		name   string
		region int64
	}{
		{"ALGERIA", 0}, {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1}, {"EGYPT", 4}, {"ETHIOPIA", 0}, {"FRANCE", 3}, {"GERMANY", 3}, {"INDIA", 2},
		{"INDONESIA", 2}, {"IRAN", 4}, {"IRAQ", 4}, {"JAPAN", 2}, {"JORDAN", 4}, {"KENYA", 0}, {"MOROCCO", 0}, {"MOZAMBIQUE", 0}, {"PERU", 1},
		{"CHINA", 2}, {"ROMANIA", 3}, {"SAUDI ARABIA", 4}, {"VIETNAM", 2}, {"RUSSIA", 3}, {"UNITED KINGDOM", 3}, {"UNITED STATES", 1},
	}
	segments     = []string{"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"}
	priorities   = []string{"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"}
	instructions = []string{"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"}
	modes        = []string{"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"}
	typeWords    = [3][]string{
		{"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"}, {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"}, {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"},
	}
	containerWords = [2][]string{{"SM", "LG", "MED", "JUMBO", "WRAP"}, {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"}}
	colors         = strings.Fields(`almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
		chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost
		goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint
		misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy
		seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow`)
	commentWords = strings.Fields(`furiously quickly carefully blithely slyly special pending regular express unusual final ironic even bold silent
		packages deposits requests accounts instructions theodolites foxes pinto beans ideas platelets sheaves asymptotes dependencies excuses
		sleep wake haggle nag use boost affix detect integrate cajole above against along among the of about across after`)
)

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// between is a random integer of both bounds and all between them.
func between(r *rand.Rand, low, high int64) int64 { return low + r.Int64N(high-low+1) }

// row appends values to the columns of b in order: integers (decimals in cents) and texts.
func appendRow(b *array.RecordBuilder, values ...any) {
	for i, v := range values {
		switch c := b.Field(i).(type) {
		case *array.Int64Builder:
			c.Append(v.(int64))
		case *array.Int32Builder:
			c.Append(int32(v.(int64)))
		case *array.Decimal128Builder:
			c.Append(decimal128.FromI64(v.(int64)))
		case *array.Date32Builder:
			c.Append(arrow.Date32(v.(int64)))
		case *array.StringBuilder:
			c.Append(v.(string))
		}
	}
}

// comment is some words, at least low letters and at most high.
func comment(r *rand.Rand, low, high int) string {
	want := low + r.IntN(high-low+1)
	var text []byte
	for len(text) < want {
		if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(text, pick(r, commentWords)...)
	}
	return strings.TrimSpace(string(text[:want]))
}

func address(r *rand.Rand) string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	text := make([]byte, 10+r.IntN(31))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return string(text)
}

func phone(r *rand.Rand, nation int64) string {
	return fmt.Sprintf("%d-%d-%d-%d", nation+10, between(r, 100, 999), between(r, 100, 999), between(r, 1000, 9999))
}

func (w *warehouse) region(r *rand.Rand, b *array.RecordBuilder, row int64) {
	appendRow(b, row, regions[row], comment(r, 31, 115))
}

func (w *warehouse) nation(r *rand.Rand, b *array.RecordBuilder, row int64) {
	appendRow(b, row, nations[row].name, nations[row].region, comment(r, 31, 114))
}

// supplier: of each 10,000 five have complaints in their comment, five recommendations.
func (w *warehouse) supplier(r *rand.Rand, b *array.RecordBuilder, row int64) {
	nation, text := r.Int64N(25), comment(r, 25, 60)
	switch row % 2000 {
	case 7:
		text += " Customer " + pick(r, commentWords) + " Complaints"
	case 1013:
		text += " Customer " + pick(r, commentWords) + " Recommends"
	}
	appendRow(b, row+1, fmt.Sprintf("Supplier#%09d", row+1), address(r), nation, phone(r, nation), between(r, -99_999, 999_999), text)
}

func (w *warehouse) customer(r *rand.Rand, b *array.RecordBuilder, row int64) {
	nation := r.Int64N(25)
	appendRow(b, row+1, fmt.Sprintf("Customer#%09d", row+1), address(r), nation, phone(r, nation), between(r, -99_999, 999_999), pick(r, segments), comment(r, 29, 116))
}

func (w *warehouse) part(r *rand.Rand, b *array.RecordBuilder, row int64) {
	var name [5]string
	for i, c := range r.Perm(len(colors))[:5] {
		name[i] = colors[c]
	}
	maker := between(r, 1, 5)
	appendRow(b, row+1, strings.Join(name[:], " "), fmt.Sprintf("Manufacturer#%d", maker), fmt.Sprintf("Brand#%d%d", maker, between(r, 1, 5)),
		pick(r, typeWords[0])+" "+pick(r, typeWords[1])+" "+pick(r, typeWords[2]), between(r, 1, 50),
		pick(r, containerWords[0])+" "+pick(r, containerWords[1]), retailPrice(row+1), comment(r, 5, 22))
}

// retailPrice is in cents.
func retailPrice(part int64) int64 { return 90_000 + part/10%20_001 + 100*(part%1000) }

// supplierOf is the i-th of the four suppliers of a part.
func (w *warehouse) supplierOf(part, i int64) int64 {
	return (part+i*(w.suppliers/suppliersOfPart+(part-1)/w.suppliers))%w.suppliers + 1
}

func (w *warehouse) partsupp(r *rand.Rand, b *array.RecordBuilder, row int64) {
	part := row/suppliersOfPart + 1
	appendRow(b, part, w.supplierOf(part, row%suppliersOfPart), between(r, 1, 9999), between(r, 100, 100_000), comment(r, 49, 198))
}

// line is one line of an order, money in cents.
type line struct {
	part, supplier, quantity, price, discount, tax int64
	shipped, committed, received                   int64
}

// orderOf makes an order and its lines, which two tables tell of; the rest of their
// columns come from r.
func (w *warehouse) orderOf(row int64) (key, date int64, lines []line, r *rand.Rand) {
	r = rand.New(rand.NewPCG(w.seed, 1<<40+uint64(row)))
	key, date = row/8*32+row%8+1, between(r, firstOrder, lastOrder)
	lines = make([]line, between(r, 1, 7))
	for i := range lines {
		part := between(r, 1, w.parts)
		l := line{part: part, supplier: w.supplierOf(part, r.Int64N(suppliersOfPart)), quantity: between(r, 1, 50), discount: between(r, 0, 10), tax: between(r, 0, 8)}
		l.price = l.quantity * retailPrice(part)
		l.shipped, l.committed = date+between(r, 1, 121), date+between(r, 30, 90)
		l.received = l.shipped + between(r, 1, 30)
		lines[i] = l
	}
	return key, date, lines, r
}

func (w *warehouse) order(_ *rand.Rand, b *array.RecordBuilder, row int64) {
	key, date, lines, r := w.orderOf(row)
	total, open := int64(0), 0
	for _, l := range lines {
		total += (l.price*(100-l.discount)*(100+l.tax) + 5000) / 10_000
		if l.shipped > today {
			open++
		}
	}
	status := "P"
	switch open {
	case 0:
		status = "F"
	case len(lines):
		status = "O"
	}
	customer := between(r, 1, w.customers)
	for customer%3 == 0 { // a third has no orders
		customer = between(r, 1, w.customers)
	}
	appendRow(b, key, customer, status, total, date, pick(r, priorities), fmt.Sprintf("Clerk#%09d", between(r, 1, w.clerks)), int64(0), comment(r, 19, 78))
}

func (w *warehouse) lineitems(_ *rand.Rand, b *array.RecordBuilder, row int64) {
	key, _, lines, r := w.orderOf(row)
	for i, l := range lines {
		returned, status := "N", "F"
		if l.received <= today {
			returned = pick(r, []string{"R", "A"})
		}
		if l.shipped > today {
			status = "O"
		}
		appendRow(b, key, l.part, l.supplier, int64(i+1), l.quantity*100, l.price, l.discount, l.tax, returned, status,
			l.shipped, l.committed, l.received, pick(r, instructions), pick(r, modes), comment(r, 10, 43))
	}
}
