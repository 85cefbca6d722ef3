-- bids of each bidder in sessions
-- mode: append
SELECT bidder, count(*) AS bids, session_window.start AS starts, session_window.end AS ends
FROM bid GROUP BY bidder, session_window(date_time, INTERVAL '10 seconds')
