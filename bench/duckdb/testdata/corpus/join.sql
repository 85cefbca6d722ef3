SELECT t.id, u.name FROM t JOIN u ON t.k = u.k;
SELECT t.id, u.name FROM t LEFT JOIN u ON t.k = u.k;
SELECT t.id, u.name FROM t RIGHT JOIN u ON t.k = u.k;
SELECT t.id, u.name FROM t FULL JOIN u ON t.k = u.k;
SELECT t.id, u.name FROM t LEFT JOIN u ON t.k = u.k AND u.weight > 3;
SELECT t.id, u.name FROM t JOIN u ON t.k = u.k AND t.id > u.weight;
SELECT id, name FROM t JOIN u USING (k);
SELECT k, count(*) FROM t JOIN u USING (k) GROUP BY k;
SELECT t.id FROM t SEMI JOIN u ON t.k = u.k;
SELECT t.id FROM t ANTI JOIN u ON t.k = u.k;
SELECT count(*) FROM t CROSS JOIN u;
SELECT count(*) FROM t, u WHERE t.k = u.k;
SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.id < 10;
SELECT a.id, b.id FROM t a JOIN t b ON a.s = b.s AND a.id < b.id;
SELECT a.id, u.name FROM t a JOIN u ON a.id > u.weight AND a.id < u.weight + 2;
SELECT id FROM t WHERE k IN (SELECT k FROM u);
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL);
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u);
-- missing: correlated-subquery
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
-- missing: correlated-subquery
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
SELECT id, (SELECT max(weight) FROM u) FROM t WHERE id < 3;
SELECT id FROM t WHERE id > (SELECT avg(id) FROM t);
SELECT count(*) FROM t LEFT JOIN e ON t.id = e.id;
SELECT count(*) FROM e LEFT JOIN t ON t.id = e.id;
SELECT a.d, count(*) FROM t a JOIN t b ON a.d = b.d GROUP BY a.d;
SELECT t.id, q.n FROM t JOIN (SELECT k, count(*) AS n FROM u GROUP BY k) q ON q.k = t.k;
SELECT x.id FROM t x LEFT JOIN u ON x.k = u.k WHERE u.k IS NULL;
