-- Queries in FROM that use the tables before them.
SELECT t.id, s.m FROM t, LATERAL (SELECT t.id + 1 AS m) s;
SELECT t.id, s.m FROM t CROSS JOIN LATERAL (SELECT t.s || 'x' AS m) s;
SELECT t.id, s.m FROM t LEFT JOIN LATERAL (SELECT t.id AS m) s ON true;
SELECT t.id, a.x, b.y FROM t, LATERAL (SELECT t.id * 2 AS x) a, LATERAL (SELECT a.x + t.id AS y) b;
SELECT t.id, s.m FROM t, LATERAL (SELECT t.id AS m WHERE t.k > 2) s;
SELECT t.id, s.m FROM t LEFT JOIN LATERAL (SELECT t.id AS m WHERE t.k > 2) s ON true;
SELECT t.id, s.name FROM t, LATERAL (SELECT name FROM u WHERE u.k = t.k) s;
SELECT t.id, s.name FROM t LEFT JOIN LATERAL (SELECT name FROM u WHERE u.k = t.k) s ON true;
SELECT t.id, s.name, s.w FROM t LEFT JOIN LATERAL (SELECT name, u.weight + t.id AS w FROM u WHERE u.k = t.k) s ON true;
SELECT t.id, s.name FROM t LEFT JOIN LATERAL (SELECT name, weight FROM u WHERE u.k = t.k) s ON s.weight > 2;
SELECT t.id, s.name, s.z FROM t LEFT JOIN LATERAL (SELECT name, coalesce(u.weight, 0) + t.k AS z FROM u WHERE u.k = t.k) s ON s.z > 3;
SELECT t.id, s.c, s.w FROM t, LATERAL (SELECT count(*) AS c, sum(u.weight) AS w FROM u WHERE u.k = t.k) s;
SELECT t.id, s.c FROM t LEFT JOIN LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k HAVING count(*) > 1) s ON true;
SELECT t.id, s.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.weight < t.id) s;
SELECT t.id, s.c FROM t, LATERAL (SELECT count(*) + t.id AS c FROM u WHERE u.k = t.k) s;
SELECT t.id, s.name, s.c FROM t, LATERAL (SELECT name, count(*) AS c FROM u WHERE u.weight < t.id GROUP BY name) s;
SELECT t.id, s.name FROM t, LATERAL (SELECT name FROM u WHERE u.k = t.k ORDER BY weight DESC, name LIMIT 2) s;
SELECT t.id, s.name FROM t, LATERAL (SELECT name FROM u WHERE u.k = t.k ORDER BY weight DESC, name LIMIT 1 OFFSET 1) s;
SELECT t.id, s.name FROM t LEFT JOIN LATERAL (SELECT name FROM u WHERE u.weight <= t.id ORDER BY weight DESC, name LIMIT 1) s ON true;
SELECT t.id, s.v FROM t, LATERAL (SELECT t.id AS v UNION ALL SELECT t.k) s;
SELECT t.id, s.v FROM t, LATERAL (SELECT t.k AS v UNION SELECT u.k FROM u WHERE u.weight < t.id) s;
SELECT t.id, s.v FROM t, LATERAL (SELECT u.k AS v FROM u WHERE u.weight < t.id EXCEPT SELECT t.k) s;
SELECT t.id, s.v FROM t, LATERAL (SELECT DISTINCT u.k AS v FROM u WHERE u.weight < t.id) s;
SELECT t.id, s.name, s.r FROM t, LATERAL (SELECT name, row_number() OVER (ORDER BY weight, name) AS r FROM u WHERE u.k = t.k) s;
SELECT t.id, s.name, v.name FROM t, LATERAL (SELECT name, weight FROM u WHERE u.k = t.k) s JOIN u v ON v.weight = s.weight;
SELECT t.id, s.m FROM t JOIN LATERAL (SELECT max(weight) AS m FROM u) s ON s.m > t.id;
SELECT n.id, s.x, s.y FROM n, LATERAL (SELECT x, x + n.id AS y FROM unnest(n.xs) AS q(x)) s;
SELECT n.id, s.c FROM n, LATERAL (SELECT count(x) AS c FROM unnest(n.xs) AS q(x) WHERE x > 2) s;
SELECT x.id, (SELECT max(s.m) FROM u, LATERAL (SELECT u.weight + x.id AS m) s WHERE u.k = x.k) FROM t x;

SELECT t.id, s.c FROM t, LATERAL (SELECT count(*) AS c FROM (SELECT DISTINCT name FROM u WHERE u.k % 2 = t.k) q) s;
SELECT t.id, s.name FROM t, LATERAL (SELECT DISTINCT name FROM u WHERE u.k % 2 = t.k) s;
SELECT id FROM t WHERE EXISTS (SELECT DISTINCT name FROM u WHERE u.weight < t.id);
SELECT id, (SELECT count(*) FROM (SELECT DISTINCT name FROM u WHERE u.k % 2 = t.k) q) FROM t;

-- Subqueries that depend on more than equalities with the query around them.
SELECT id, (SELECT count(*) FROM u WHERE u.weight < t.id) FROM t;
SELECT id, (SELECT sum(u.weight) + t.id FROM u WHERE u.weight < t.id) FROM t;
SELECT id, (SELECT max(name) FROM u WHERE u.k = t.k OR u.weight > t.id) FROM t;
SELECT id, (SELECT name FROM u WHERE u.weight <= t.id ORDER BY weight DESC, name LIMIT 1) FROM t;
SELECT id, (SELECT sum(v) FROM (SELECT u.weight AS v FROM u WHERE u.k = t.k UNION ALL SELECT t.id) q) FROM t;
SELECT id FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.weight < t.id HAVING count(*) > 3);
SELECT id FROM t WHERE id IN (SELECT max(u.k) + 1 FROM u WHERE u.weight > t.k);
SELECT id, EXISTS (SELECT 1 FROM u WHERE u.weight > t.id) FROM t;
SELECT id FROM t WHERE k = 1 OR NOT EXISTS (SELECT 1 FROM u WHERE u.weight > t.id);
SELECT id, (SELECT string_agg(name, ',' ORDER BY name DESC) FROM u WHERE u.k = t.k) FROM t;
SELECT id, (SELECT string_agg(name, ',' ORDER BY name DESC) FROM u WHERE u.weight < t.id) FROM t;
SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k GROUP BY u.k HAVING count(*) > t.k) FROM t;

-- Several orders in one select.
SELECT k, string_agg(s, ',' ORDER BY id) AS a, string_agg(s, ',' ORDER BY id DESC) AS b, count(*), max(id) FROM t GROUP BY k;
SELECT string_agg(s, ',' ORDER BY s, id) AS a, string_agg(s, '|' ORDER BY id) AS b FROM t;
SELECT k, b, string_agg(s, ',' ORDER BY id) AS x, string_agg(s, ',' ORDER BY id DESC) AS y FROM t GROUP BY ROLLUP (k, b) HAVING count(*) > 1;

-- Stars.
SELECT * RENAME (name AS title) FROM u;
SELECT * EXCLUDE (k) RENAME (name AS title) FROM u;
SELECT * REPLACE (k + 1 AS k) FROM u;
