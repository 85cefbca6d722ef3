-- bids joined with a table
-- mode: append
SELECT b.auction, b.bidder, b.price, b.date_time, c.value FROM bid b JOIN side c ON b.auction % 10000 = c.key
