package sql

// corpus is one text for every construct of the dialect. It seeds the fuzzer.
var corpus = []string{
	benchQuery,
	`CREATE STREAM bids (ts TIMESTAMP, auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR,
	  WATERMARK FOR ts AS ts - INTERVAL '10 seconds')
	 WITH (connector = 'filesystem', path = 'landing/bids', format = 'csv', header = true, max_files_per_trigger = 10);
	 CREATE TABLE channels WITH (path = 'dim/channels.parquet');
	 CREATE VIEW big AS SELECT * FROM bids WHERE price > 1000;
	 CREATE SINK per_minute WITH (path = 'out/per_minute', format = 'parquet', output_mode = 'append',
	  partition_by = 'day', checkpoint = 'ckpt/per_minute', trigger = '10 seconds');
	 INSERT INTO per_minute
	 SELECT window.start AS start, CAST(window.start AS DATE) AS day, channel, count(*) AS bids, max(price) AS top
	 FROM big GROUP BY window(ts, INTERVAL '1 minute'), channel;`,
	`CREATE STREAM s (WATERMARK FOR ts AS ts) WITH ('path' = 'x', "format" := json)`,
	`CREATE OR REPLACE TABLE IF NOT EXISTS t (t BIGINT, ts AS to_timestamp(t / 1000), a ARRAY<STRUCT<x: INT, y MAP<STRING, ARRAY<INT>>>>, d DECIMAL(10, 2), z TIMESTAMP(3) WITH LOCAL TIME ZONE) USING csv OPTIONS (path 'x', sep ';')`,
	`CREATE VIEW v (a, b) AS SELECT 1, 2; INSERT INTO s (a, b) SELECT 1, 2; SET time_zone = 'Europe/Berlin'; SET TIME ZONE 'UTC'; SET a.b TO -1`,
	`EXPLAIN ANALYZE SELECT 1; EXPLAIN INSERT INTO x SELECT 1; DESCRIBE t; DESC 'a/*.csv'; DESCRIBE SELECT 1; SHOW TABLES`,
	`SELECT sum(a) OVER (PARTITION BY b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), rank() OVER w,
	 lag(a, 1) IGNORE NULLS OVER (w RANGE BETWEEN INTERVAL '1 day' PRECEDING AND 1 FOLLOWING EXCLUDE TIES)
	 FROM t WINDOW w AS (ORDER BY c DESC NULLS LAST) QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1`,
	`SELECT a, b, count(*) FROM t GROUP BY GROUPING SETS ((a, b), a, (), ROLLUP (a, b)), CUBE(c, (d, e)) HAVING count(*) > 1`,
	`SELECT DISTINCT ON (id) * FROM t WHERE a > 1 WITHIN WATERMARK`,
	`SELECT count(*) FILTER (WHERE x > 1), count(DISTINCT x), string_agg(x, ',' ORDER BY y), listagg(x) WITHIN GROUP (ORDER BY y DESC) FROM t GROUP BY ALL ORDER BY ALL DESC`,
	`SELECT * FROM a SEMI JOIN b USING (x) LEFT ANTI JOIN c ON a.x = c.x FULL OUTER JOIN d USING (x, y) CROSS JOIN e NATURAL JOIN f, g`,
	`SELECT 1 UNION ALL (SELECT 2 ORDER BY 1 LIMIT 1) INTERSECT SELECT 3 EXCEPT ALL VALUES (1), (2) UNION BY NAME SELECT 4 ORDER BY 1 LIMIT 10 OFFSET 5`,
	`SELECT * FROM read_csv('x/*.csv', header => true, 'sep' = ';', quote := '"') AS r (a, b), 'a.parquet', range(10) r2, (VALUES (1, 'a')) v (n, s)`,
	`SELECT * FROM TUMBLE(t, ts, INTERVAL '1 minute'), HOP(TABLE t, DESCRIPTOR(ts), '5 minutes', '10 minutes'), TABLE(SESSION(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '5' MINUTE)), SESSION(TABLE t PARTITION BY (a, b), DESCRIPTOR(ts), '5 minutes')`,
	`SELECT * FROM t, UNNEST(t.a) WITH ORDINALITY AS u (x, i), LATERAL (SELECT t.x) l, LATERAL f(t.x) LATERAL VIEW OUTER explode(a) e AS x, y`,
	`SELECT * FROM ((SELECT 1) UNION SELECT 2) q, ((a JOIN b ON TRUE)) j, ((SELECT 1)) z`,
	`SELECT x IN (1, 2), y NOT IN (SELECT 1), EXISTS (SELECT 1), NOT EXISTS (VALUES (1)), (SELECT max(a) FROM t) + 1, (a, b) IN ((1, 2))`,
	`SELECT CASE a WHEN 1 THEN 2 END, CASE WHEN a THEN b ELSE c END, CAST(a AS INT), TRY_CAST(a AS DOUBLE PRECISION), a::int[]::text, -a::int`,
	`SELECT ARRAY[1, 2][0], [1], {'a': 1, b: 2}.a, MAP {'k': 1}, MAP['k', 1], struct(1 AS a, 2), s.f.g, f(x).y, m['k'].z, t.*, * EXCEPT (a) REPLACE (b + 1 AS b)`,
	`SELECT INTERVAL '10 seconds', INTERVAL '10' SECOND, INTERVAL 10 SECONDS, INTERVAL '1:30' MINUTE TO SECOND, INTERVAL 1 DAY 2 HOURS, INTERVAL -5 MINUTES, interval, interval - 1`,
	`SELECT DATE '2024-01-01', TIME '10:00', TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00Z', X'1F', date, time`,
	`SELECT a LIKE 'x!%' ESCAPE '!', a NOT ILIKE b, a RLIKE 'x+', a NOT SIMILAR TO 'x', a BETWEEN 1 AND 2 AND c, a IS NOT DISTINCT FROM b, a <=> b, a IS NOT NULL, b IS TRUE, c IS UNKNOWN`,
	`SELECT extract(year FROM ts), position('a' IN b), substring(x FROM 2 FOR 3), substring(x FOR 3), trim(BOTH ' ' FROM x), trim(LEADING FROM x), overlay(a PLACING b FROM 1), ts AT TIME ZONE 'UTC'`,
	`SELECT a + b * c - -d / e // f % g || h, NOT a OR b AND c = d, a div b, ~a & b | c << 2 >> 1, !a = b`,
	`SELECT "a""b" AS "from", ` + "`x y`" + `.end, window.end AS end, offset, end FROM t AS "order"`,
	`SELECT 1, 1.5, .5, 1., 1e0, 1.5e-3, 1_000, 5L, 1.5D, 'it''s', NULL, TRUE, false -- comment
	 /* block /* nested */ */`,
}
