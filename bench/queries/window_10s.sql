-- count and max by windows of 10 s and 1,000 keys: two groups in three rows
-- data: events
-- check: count(*), sum(n), round(sum(top), 2)
SELECT window(ts, INTERVAL '10 seconds') AS w, key, count(*) AS n, max(value) AS top FROM {data} GROUP BY window(ts, INTERVAL '10 seconds'), key
-- duckdb:
SELECT time_bucket(INTERVAL '10 seconds', ts) AS w, key, count(*) AS n, max(value) AS top FROM {data} GROUP BY time_bucket(INTERVAL '10 seconds', ts), key
