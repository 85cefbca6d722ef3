-- the two largest values of each of many groups
-- data: h2o
-- check: count(*), sum(id6), round(sum(v3), 2)
SELECT id6, v3 FROM {data} QUALIFY row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) <= 2
