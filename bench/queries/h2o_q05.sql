-- three sums by a number of many values
-- data: h2o
-- check: count(*), sum(v1), sum(v2), round(sum(v3), 3)
SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM {data} GROUP BY id6
