-- the auction with the most bids of each sliding window
-- mode: append
SELECT w.start AS starts, w.end AS ends, max_by(auction, n) AS auction, max(n) AS bids
FROM (SELECT window AS w, auction, count(*) AS n FROM bid GROUP BY window(date_time, INTERVAL '10 seconds', INTERVAL '2 seconds'), auction)
GROUP BY w
