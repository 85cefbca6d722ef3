-- the last bid of each bidder for each auction
-- mode: update
SELECT bidder, auction, max(date_time) AS date_time, max_by(price, date_time) AS price, max_by(channel, date_time) AS channel, max_by(url, date_time) AS url
FROM bid GROUP BY bidder, auction
