-- persons who sold something in the window in which they came
-- mode: append
SELECT DISTINCT p.id, p.name, p.window_start AS starts
FROM TUMBLE(person, date_time, INTERVAL '10 seconds') p
JOIN TUMBLE(auction, date_time, INTERVAL '10 seconds') a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
