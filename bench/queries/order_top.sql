-- the 100 largest of all rows
-- data: events
-- check: count(*), round(sum(value), 2)
SELECT ts, key, value FROM {data} ORDER BY value DESC, ts LIMIT 100
