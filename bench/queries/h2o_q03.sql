-- sum and avg by a text of many values
-- data: h2o
-- check: count(*), sum(v1), round(sum(v3), 3)
SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM {data} GROUP BY id3
