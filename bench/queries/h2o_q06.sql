-- median and standard deviation by two numbers of 100 and 5 values
-- data: h2o
-- check: count(*), round(sum(m), 2), round(sum(s), 2)
SELECT id4, id5, median(v3) AS m, stddev(v3) AS s FROM {data} GROUP BY id4, id5
