-- six keys, about as many groups as rows
-- data: h2o
-- check: count(*), sum(n), round(sum(v3), 2)
SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM {data} GROUP BY id1, id2, id3, id4, id5, id6
