-- every bid as it is
-- mode: append
SELECT auction, bidder, price, date_time, extra FROM bid
