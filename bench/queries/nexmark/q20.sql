-- bids joined with the auctions of one category
-- mode: append
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, a.item_name, a.description, a.initial_bid, a.reserve, a.expires, a.seller, a.category
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
