-- three avgs by a number of 100 values
-- data: h2o
-- check: count(*), round(sum(v1), 6), round(sum(v2), 6), round(sum(v3), 6)
SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM {data} GROUP BY id4
