SELECT * FROM n;
SELECT id, st.a, st.b FROM n;
SELECT id, xs FROM n WHERE xs IS NULL;
-- missing: unnest
SELECT id, unnest(xs) FROM n;
-- missing: unnest
SELECT id, x FROM n, UNNEST(xs) AS q(x);
SELECT st.a, count(*) FROM n GROUP BY st.a;
SELECT words, count(*) FROM n GROUP BY words;
SELECT xs, count(*) FROM n GROUP BY xs;
SELECT st, count(*) FROM n GROUP BY st;
SELECT id FROM n WHERE st.b = 'a';
-- duckdb: SELECT len(xs) FROM n;
SELECT cardinality(xs) FROM n;
SELECT array_length(words) FROM n;
SELECT list_contains(words, 'a') FROM n;
-- missing: unnest
SELECT sum(x) FROM (SELECT unnest(xs) AS x FROM n);
-- Arrays count from 0, as in Spark.
-- differs: array-index
SELECT words[1] FROM n WHERE id % 3 = 2;
SELECT DISTINCT words FROM n;
