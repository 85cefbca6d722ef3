package gen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tidemill/tidemill/columnar"
)

// NEXMarkTables are the streams of the online auction: of 50 events, numbered from 0,
// the first is a person, the next three are auctions, the other 46 bids.
var NEXMarkTables = []string{"person", "auction", "bid"}

const (
	personShare, auctionShare, bidShare = 1, 3, 46
	eventShares                         = personShare + auctionShare + bidShare

	firstID         = 1000 // of persons and auctions
	firstCategory   = 10
	categories      = 5
	openAuctions    = 100
	activePersons   = 1000
	aheadOfLast     = 10 // ids that may be named before they exist
	hotEvery        = 100
	manyChannels    = 10_000
	eventMicros     = 100 // between events: 10,000 a second
	auctionOfBidHot = 2   // one bid in two is for the hot auction
	bidderHot       = 4   // three in four are by the hot bidder
	sellerHot       = 4
)

// NEXMark is one of NEXMarkTables for so many events of the three together. Shares, ids,
// hot keys, prices and the lengths of auctions are distributed as the public generator
// distributes them with its default settings; the random numbers are not its own.
func NEXMark(seed uint64, table string, events int64) (*Data, error) {
	d := &Data{seed: seed}
	switch table {
	case "person":
		d.Rows, d.fill = nexmarkRows(events, 0, personShare), fillPerson
		d.Schema = fieldsOf("id", columnar.Int64, "name", columnar.String, "email_address", columnar.String, "credit_card", columnar.String,
			"city", columnar.String, "state", columnar.String, "date_time", columnar.Timestamp, "extra", columnar.String)
	case "auction":
		d.Rows, d.fill = nexmarkRows(events, personShare, auctionShare), fillAuction
		d.Schema = fieldsOf("id", columnar.Int64, "item_name", columnar.String, "description", columnar.String, "initial_bid", columnar.Int64,
			"reserve", columnar.Int64, "date_time", columnar.Timestamp, "expires", columnar.Timestamp, "seller", columnar.Int64,
			"category", columnar.Int64, "extra", columnar.String)
	case "bid":
		d.Rows, d.fill = nexmarkRows(events, personShare+auctionShare, bidShare), fillBid
		d.Schema = fieldsOf("auction", columnar.Int64, "bidder", columnar.Int64, "price", columnar.Int64, "channel", columnar.String,
			"url", columnar.String, "date_time", columnar.Timestamp, "extra", columnar.String)
	default:
		return nil, fmt.Errorf("stream %q is unknown; known are %v", table, NEXMarkTables)
	}
	return d, nil
}

// nexmarkRows is how many of the first events are of a kind that has share of each 50,
// after the first `after`.
func nexmarkRows(events, after, share int64) int64 {
	return events/eventShares*share + min(max(events%eventShares-after, 0), share)
}

// eventTime is that of an event, in microseconds.
func eventTime(event int64) arrow.Timestamp { return arrow.Timestamp(eventStart + event*eventMicros) }

// lastPerson is the number of the newest person when an event happens.
func lastPerson(event int64) int64 { return event / eventShares }

// lastAuction is the number of the newest auction when an event happens, -1 before the
// first.
func lastAuction(event int64) int64 {
	n := event/eventShares*auctionShare - 1
	return n + min(max(event%eventShares-personShare+1, 0), auctionShare)
}

// anyPerson is one of the active persons, or one soon to be.
func anyPerson(r *rand.Rand, event int64) int64 {
	known := lastPerson(event) + 1
	active := min(known, activePersons)
	return known - active + r.Int64N(active+aheadOfLast)
}

// anyAuction is one of those in flight, or one soon to be.
func anyAuction(r *rand.Rand, event int64) int64 {
	last := lastAuction(event)
	first := max(last-openAuctions, 0)
	return first + r.Int64N(last-first+1+aheadOfLast)
}

// price is spread evenly over six orders of magnitude, in cents.
func price(r *rand.Rand) int64 { return int64(math.Round(math.Pow(10, r.Float64()*6) * 100)) }

func fillPerson(r *rand.Rand, b *array.RecordBuilder, row int64) {
	event := row * eventShares
	first, last := oneOf(r, firstNames), oneOf(r, lastNames)
	a := appender{b: b}
	a.int(firstID + row)
	a.text(first + " " + last)
	a.text(letters(r, 7) + "@" + letters(r, 5) + ".com")
	a.text(fmt.Sprintf("%04d %04d %04d %04d", r.IntN(10_000), r.IntN(10_000), r.IntN(10_000), r.IntN(10_000)))
	a.text(oneOf(r, cities))
	a.text(oneOf(r, states))
	a.time(eventTime(event))
	a.text(letters(r, 60+r.IntN(40)))
}

func fillAuction(r *rand.Rand, b *array.RecordBuilder, row int64) {
	event := row/auctionShare*eventShares + personShare + row%auctionShare
	a := appender{b: b}
	a.int(firstID + row)
	a.text(letters(r, 3+r.IntN(17)))
	a.text(letters(r, 3+r.IntN(97)))
	initial := price(r)
	a.int(initial)
	a.int(initial + price(r))
	a.time(eventTime(event))
	// An auction stays open for about the time in which openAuctions others begin.
	horizon := int64(openAuctions * eventShares / auctionShare * eventMicros)
	a.time(eventTime(event) + arrow.Timestamp(1+r.Int64N(2*horizon)))
	seller := anyPerson(r, event)
	if r.IntN(sellerHot) > 0 {
		seller = lastPerson(event) / hotEvery * hotEvery
	}
	a.int(firstID + seller)
	a.int(firstCategory + r.Int64N(categories))
	a.text(letters(r, 100+r.IntN(100)))
}

func fillBid(r *rand.Rand, b *array.RecordBuilder, row int64) {
	event := row/bidShare*eventShares + personShare + auctionShare + row%bidShare
	a := appender{b: b}
	auction := anyAuction(r, event)
	if r.IntN(auctionOfBidHot) > 0 {
		auction = lastAuction(event) / hotEvery * hotEvery
	}
	a.int(firstID + auction)
	bidder := anyPerson(r, event)
	if r.IntN(bidderHot) > 0 {
		bidder = lastPerson(event)/hotEvery*hotEvery + 1
	}
	a.int(firstID + bidder)
	a.int(price(r))
	channel := oneOf(r, hotChannels)
	if r.IntN(2) == 0 {
		channel = "channel-" + strconv.Itoa(r.IntN(manyChannels))
	}
	a.text(channel)
	url := "https://www.nexmark.com/" + letters(r, 5) + "/" + letters(r, 5) + "/" + letters(r, 5) + "/item.htm?query=1"
	if r.IntN(10) > 0 {
		url += "&channel_id=" + strconv.Itoa(r.IntN(1<<20))
	}
	a.text(url)
	a.time(eventTime(event))
	a.text(letters(r, 20+r.IntN(40)))
}

// appender fills the columns of a row from left to right.
type appender struct {
	b  *array.RecordBuilder
	at int
}

func (a *appender) next() array.Builder {
	a.at++
	return a.b.Field(a.at - 1)
}

func (a *appender) int(v int64)            { a.next().(*array.Int64Builder).Append(v) }
func (a *appender) text(v string)          { a.next().(*array.StringBuilder).Append(v) }
func (a *appender) time(v arrow.Timestamp) { a.next().(*array.TimestampBuilder).Append(v) }

func oneOf(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// letters is a made-up word.
func letters(r *rand.Rand, n int) string {
	word := make([]byte, n)
	for i := range word {
		word[i] = byte('a' + r.IntN(26))
	}
	return string(word)
}

var (
	hotChannels = []string{"Google", "Facebook", "Baidu", "Apple"}
	firstNames  = []string{"Ada", "Ben", "Carla", "Deniz", "Emil", "Fatima", "Goran", "Hana", "Ivo", "Jana", "Kofi"}
	lastNames   = []string{"Abbas", "Brandt", "Costa", "Diaz", "Eriksen", "Fischer", "Garcia", "Haddad", "Ito"}
	cities      = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states      = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
)
