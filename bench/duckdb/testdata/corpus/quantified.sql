-- ANY and ALL, of queries and arrays, and rows.
SELECT id FROM t WHERE k = ANY (SELECT k FROM u);
SELECT id, k = ANY (SELECT k FROM u) FROM t;
SELECT id, k <> ALL (SELECT k FROM u) FROM t;
SELECT id, k <> ANY (SELECT k FROM u) FROM t;
SELECT id, k = ALL (SELECT k FROM u) FROM t;
SELECT id, id < ANY (SELECT weight FROM u), id <= ANY (SELECT weight FROM u), id > ANY (SELECT weight FROM u), id >= ANY (SELECT weight FROM u) FROM t;
SELECT id, id < ALL (SELECT weight FROM u), id <= ALL (SELECT weight FROM u), id > ALL (SELECT weight FROM u), id >= ALL (SELECT weight FROM u) FROM t;
SELECT id, k < ALL (SELECT k FROM u WHERE k IS NOT NULL), k >= ANY (SELECT k FROM u WHERE k IS NOT NULL) FROM t;
SELECT id, k < ANY (SELECT k FROM e), k >= ALL (SELECT k FROM e), k <> ANY (SELECT k FROM e), k = ALL (SELECT k FROM e) FROM t;
SELECT id, id > ALL (SELECT weight FROM u WHERE u.k = t.k), id > ANY (SELECT weight FROM u WHERE u.k = t.k) FROM t;
SELECT id FROM t WHERE id <= ALL (SELECT weight FROM u WHERE u.k = t.k);
SELECT id FROM t WHERE NOT id > ANY (SELECT weight FROM u WHERE u.weight < 5);
SELECT id, d > ALL (SELECT x.d FROM t x WHERE x.id < 4) FROM t;
SELECT id, s < ANY (SELECT name FROM u) FROM t;
SELECT id, day >= ALL (SELECT x.day FROM t x WHERE x.k = t.k AND x.day IS NOT NULL) FROM t;
SELECT id, id = ANY ([1, 2, 5]), id <> ALL ([1, 2, 5]), id < ANY ([3, 4]), id >= ALL ([3, 4]) FROM t;
SELECT id, k = ANY ([1, NULL]), k <> ALL ([1, NULL]), k < ANY ([2, NULL]), k > ALL ([2, NULL]) FROM t;
SELECT id, id = ANY (xs), id <> ALL (xs), id <= ANY (xs), id > ALL (xs) FROM n WHERE xs IS NOT NULL;
-- differs: any-of-null
SELECT id, id = ANY (xs), id > ALL (xs) FROM n;
SELECT id, 'a' = ANY (words), 'a' < ALL (words) FROM n;
SELECT id FROM t WHERE (k, id) IN (SELECT k, weight FROM u);
SELECT id FROM t WHERE (k, id) IN ((1, 1), (2, 7), (3, 3));
SELECT id FROM t WHERE (k, s) IN (SELECT x.k, x.s FROM t x WHERE x.id < 10);
SELECT id FROM t WHERE (id, id + 1) NOT IN (SELECT x.id, x.id + 1 FROM t x WHERE x.id < 10);
SELECT id FROM t WHERE (id, k) NOT IN (SELECT x.id, x.k FROM t x WHERE x.k IS NOT NULL) AND k IS NOT NULL;
SELECT id, (id, id) = ANY (SELECT x.id, x.id FROM t x WHERE x.id < 5) FROM t;
SELECT id FROM t WHERE (id, 5) < (7, 3);
SELECT id, (id, 5) < (7, 6), (id, 5) <= (7, 5), (id, 5) > (7, 4), (id, 5) >= (7, 6), (id, 5) = (7, 5), (id, 5) <> (7, 5) FROM t;
SELECT id FROM t WHERE (id, id + 1, id + 2) >= (5, 6, 7);
-- differs: row-with-null
SELECT id, (k, id) = (1, 1), (k, id) < (2, 5) FROM t;

-- TIME and INTERVAL.
SELECT TIME '12:30:00' + INTERVAL '90 minutes', TIME '00:30:00' - INTERVAL '1 hour', TIME '23:59:59' + INTERVAL '2 seconds';
SELECT INTERVAL '2 hours' + TIME '23:00:00', TIME '01:00:00' + INTERVAL '1 day 1 hour', TIME '01:00:00' - INTERVAL '26 hours';
