-- the highest bid of each window
-- mode: append
SELECT window.start AS starts, max(price) AS price, max_by(struct(auction, bidder, date_time, extra), price) AS bid
FROM bid GROUP BY window(date_time, INTERVAL '10 seconds')
