-- sum by a text of 100 values
-- data: h2o
-- check: count(*), sum(v1)
SELECT id1, sum(v1) AS v1 FROM {data} GROUP BY id1
