-- sum by two texts, 10,000 groups
-- data: h2o
-- check: count(*), sum(v1)
SELECT id1, id2, sum(v1) AS v1 FROM {data} GROUP BY id1, id2
