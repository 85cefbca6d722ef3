-- every column once, two groups
-- data: h2o
-- check: sum(n), min(a), max(b), min(c), sum(s), round(sum(f), 2)
SELECT v1 > 3 AS k, count(*) AS n, min(id1) AS a, max(id2) AS b, min(id3) AS c, sum(id4 + id5 + id6 + v1 + v2) AS s, sum(v3) AS f FROM {data} GROUP BY v1 > 3
