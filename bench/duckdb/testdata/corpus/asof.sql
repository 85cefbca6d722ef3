-- No two rows of a right side are equally near: which of those DuckDB takes is not said.
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts >= b.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts >= b.ts;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts > b.ts;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts <= b.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON b.k = a.k AND b.ts >= a.ts;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND b.ts > a.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts < b.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.ts > b.ts;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.ts < b.ts;
SELECT t.id, u.name FROM t ASOF JOIN u ON t.k = u.k AND t.id >= u.weight;
SELECT t.id, u.name FROM t ASOF LEFT JOIN u ON t.k = u.k AND t.id >= u.weight;
SELECT t.id, u.name FROM t ASOF LEFT JOIN u ON t.dec >= u.weight AND u.k IS NOT NULL;
SELECT t.id, u.name FROM t ASOF LEFT JOIN u ON t.d >= u.weight AND u.k IS NOT NULL;
SELECT t.id, u.name FROM t ASOF LEFT JOIN u ON t.f < u.weight AND u.k IS NOT NULL;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.day >= b.day;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.day > b.ts;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.s = b.s AND a.b = b.b AND a.id > b.id;
SELECT a.id, b.name FROM t a ASOF LEFT JOIN u b ON a.s <= b.name;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k + 1 = b.k AND a.ts - INTERVAL '1 day' >= b.ts;
SELECT k, ts, b.id FROM t a ASOF JOIN t b USING (k, ts);
SELECT a.id, b.id, a.ts, b.ts FROM t a ASOF LEFT JOIN t b USING (k, ts);
SELECT a.id, b.n FROM t a ASOF LEFT JOIN (SELECT id AS n, ts FROM t WHERE id % 3 = 0) b USING (ts);
-- Conditions on one side.
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts >= b.ts AND b.id % 2 = 0;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts AND b.id % 2 = 0 AND b.s IS NOT NULL;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts > b.ts AND a.id % 2 = 0;
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts AND a.id % 2 = 0;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.ts > b.ts AND 1 > 2;
-- A filter above is asked of the nearest row.
SELECT a.id, b.id FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts WHERE b.id % 2 = 0;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts > b.ts WHERE b.id IS NULL OR b.id > a.id;
SELECT a.id, b.id FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.ts > b.ts WHERE a.id < 20 AND b.id < 20;
SELECT b.k, count(*), max(a.id) FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts GROUP BY b.k;
SELECT a.id, b.id, c.name FROM t a ASOF JOIN t b ON a.k = b.k AND a.ts > b.ts ASOF LEFT JOIN u c ON b.k = c.k AND b.id >= c.weight;
-- Empty sides.
SELECT count(*) FROM t ASOF LEFT JOIN e ON t.k = e.k AND t.ts >= e.ts;
SELECT count(*) FROM e ASOF LEFT JOIN t ON t.k = e.k AND e.ts >= t.ts;
SELECT count(*) FROM t ASOF JOIN e ON t.ts >= e.ts;
-- fails
SELECT a.id FROM t a ASOF JOIN t b ON a.k = b.k;
-- fails
SELECT a.id FROM t a ASOF JOIN t b ON a.ts >= b.ts AND a.id > b.id;
-- fails
SELECT a.id FROM t a ASOF JOIN t b ON a.ts BETWEEN b.ts AND b.day;
-- fails
SELECT a.id FROM t a ASOF JOIN t b ON a.k = b.k OR a.ts >= b.ts;
-- missing: asof-kinds
SELECT a.id, b.id FROM t a ASOF RIGHT JOIN t b ON a.k = b.k AND a.ts >= b.ts;
-- missing: asof-kinds
SELECT a.id, b.id FROM t a ASOF FULL JOIN t b ON a.k = b.k AND a.ts >= b.ts;
-- missing: asof-kinds
SELECT a.id FROM t a ASOF SEMI JOIN t b ON a.k = b.k AND a.ts >= b.ts;
