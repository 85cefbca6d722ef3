-- range of two columns by a text of many values
-- data: h2o
-- check: count(*), sum(range)
SELECT id3, max(v1) - min(v2) AS range FROM {data} GROUP BY id3
