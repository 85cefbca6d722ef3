SELECT * FROM n;
SELECT id, st.a, st.b FROM n;
SELECT id, xs FROM n WHERE xs IS NULL;
SELECT id, unnest(xs) FROM n;
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
SELECT sum(x) FROM (SELECT unnest(xs) AS x FROM n);
-- Arrays count from 0, as in Spark.
-- differs: array-index
SELECT words[1] FROM n WHERE id % 3 = 2;
SELECT DISTINCT words FROM n;
SELECT id, x, i FROM n, UNNEST(xs) WITH ORDINALITY AS q(x, i);
SELECT id, x FROM n LEFT JOIN UNNEST(xs) AS q(x) ON TRUE;
SELECT id, w FROM n CROSS JOIN UNNEST(words) AS q(w) WHERE w <> 'a';
SELECT id, unnest(xs) AS x, unnest(words) AS w FROM n;
SELECT w, count(*) FROM n, UNNEST(words) AS q(w) GROUP BY w;
SELECT x, w FROM n, UNNEST(xs) AS a(x), UNNEST(words) AS b(w);
SELECT * FROM UNNEST(ARRAY[1, 2, NULL]) AS q(x);
SELECT unnest(ARRAY[3, 1, 2]) AS x ORDER BY x DESC;
-- duckdb: SELECT id, unnest(xs) AS col FROM n
SELECT id, explode(xs) FROM n;
-- duckdb: SELECT id, x FROM n, UNNEST(xs) AS q(x)
SELECT id, x FROM n LATERAL VIEW explode(xs) q AS x;
-- duckdb: SELECT id, x FROM n LEFT JOIN UNNEST(xs) AS q(x) ON TRUE
SELECT id, x FROM n LATERAL VIEW OUTER explode(xs) q AS x;
-- duckdb: SELECT id, i - 1, x FROM n, UNNEST(xs) WITH ORDINALITY AS q(x, i)
SELECT id, posexplode(xs) FROM n;
SELECT id, max(x) OVER (PARTITION BY id) FROM n, UNNEST(xs) AS q(x);
SELECT [1, 2, 3][0:2], [1, 2, 3][2:], [1, 2, 3][:-2], [1, 2, 3][-2:], [1, 2, 3][3:1], [1, 2, 3][-9:2], [1, 2, 3][2:9], [1, 2, 3][:];
SELECT [1, 2, 3][NULL:2], [1, 2, 3][2:NULL], 'häuser'[2:3], 'abc'[-2:], 'abc'[0:1], 'abc'[3:1];
SELECT words[1:2], words[-1:], words[2:][1:1] FROM n;
SELECT ARRAY(SELECT x FROM (VALUES (3), (NULL), (1)) AS v(x) ORDER BY x DESC NULLS LAST), ARRAY(SELECT 1 WHERE false);
SELECT k, ARRAY(SELECT x FROM (VALUES (1, 'a'), (1, 'b'), (2, 'c')) AS u(j, x) WHERE u.j = v.k ORDER BY x DESC) FROM (VALUES (1), (2), (3)) AS v(k);
SELECT k, (SELECT sum(y) FROM unnest(v.a) AS u(y) WHERE y > 1), ARRAY(SELECT y * 2 FROM unnest(v.a) AS u(y) WHERE y > 1) FROM (VALUES (1, [1, 2, 3]), (2, [4]), (3, [1])) AS v(k, a);
