-- correlation by a text and a number
-- data: h2o
-- check: count(*), round(sum(r2), 4)
-- nan: corr-one-row
SELECT id2, id4, power(corr(v1, v2), 2) AS r2 FROM {data} GROUP BY id2, id4
