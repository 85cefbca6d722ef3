-- count of the rows a filter lets pass
-- data: h2o
-- check: sum(n)
SELECT count(*) AS n FROM {data} WHERE v3 > 50 AND id4 = 7
