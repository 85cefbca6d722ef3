-- every row joined with a table of 1,000 rows, then seven groups
-- data: events
-- check: count(*), sum(n), round(sum(s), 2)
SELECT d.g, count(*) AS n, sum(t.value) AS s FROM {data} t JOIN (SELECT id AS k, id % 7 AS g FROM range(1000)) d ON t.key = d.k GROUP BY d.g
-- duckdb:
SELECT d.g, count(*) AS n, sum(t.value) AS s FROM {data} t JOIN (SELECT range AS k, range % 7 AS g FROM range(1000)) d ON t.key = d.k GROUP BY d.g
