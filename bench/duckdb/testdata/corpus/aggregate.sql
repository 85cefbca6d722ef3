SELECT count(*), count(k), count(s), count(d) FROM t;
SELECT count(*), sum(id), min(s), max(d) FROM e;
SELECT sum(id), min(id), max(id), avg(id) FROM t;
SELECT sum(k), avg(k) FROM t;
SELECT sum(tiny), avg(tiny), min(tiny), max(tiny) FROM t;
SELECT sum(dec), min(dec), max(dec) FROM t;
-- differs: decimal-average
SELECT avg(dec) FROM t;
SELECT min(d), max(d) FROM t;
SELECT sum(d) FROM t WHERE d BETWEEN -100 AND 1e6;
SELECT sum(f), avg(f) FROM t;
SELECT min(s), max(s) FROM t;
SELECT min(ts), max(ts), min(day), max(day) FROM t;
SELECT min(b), max(b) FROM t;
SELECT bool_and(b), bool_or(b) FROM t;
SELECT k, count(*) FROM t GROUP BY k;
SELECT k, count(*) FROM t GROUP BY k ORDER BY k;
SELECT k, b, count(*), sum(id) FROM t GROUP BY k, b;
SELECT s, count(*) FROM t GROUP BY s;
SELECT d, count(*) FROM t GROUP BY d;
SELECT dec, count(*) FROM t GROUP BY dec;
SELECT day, count(*) FROM t GROUP BY day;
SELECT ts, k, count(*) FROM t GROUP BY ts, k;
SELECT k, sum(id) AS total FROM t GROUP BY k HAVING sum(id) > 200;
SELECT k, count(*) FROM t GROUP BY k HAVING count(*) > 5 ORDER BY 2 DESC, 1;
SELECT k % 2, count(*) FROM t GROUP BY k % 2;
SELECT k + 1 AS kk, count(*) FROM t GROUP BY kk;
SELECT k, count(*) FROM t GROUP BY ALL;
SELECT count(DISTINCT k), count(DISTINCT s), count(DISTINCT d) FROM t;
SELECT b, count(DISTINCT k) FROM t GROUP BY b;
SELECT sum(DISTINCT k) FROM t;
SELECT count(*) FILTER (WHERE k > 2), sum(id) FILTER (WHERE b) FROM t;
SELECT k, count(*) FILTER (WHERE b) FROM t GROUP BY k;
SELECT stddev(id), stddev_pop(id), variance(id), var_pop(id) FROM t;
SELECT k, stddev(id) FROM t GROUP BY k;
SELECT median(id) FROM t;
SELECT first(id), last(id) FROM (SELECT id FROM t ORDER BY id);
SELECT min_by(s, id), max_by(s, id) FROM t WHERE s IS NOT NULL;
SELECT count(*) FROM t GROUP BY k, s HAVING count(*) > 1;
SELECT sum(id) / count(*) FROM t;
SELECT sum(CASE WHEN k = 1 THEN 1 ELSE 0 END) FROM t;
SELECT max(length(s)) FROM t;
SELECT k, min(s), max(s), min(ts) FROM t GROUP BY k;
SELECT count(*) FROM (SELECT DISTINCT k, b FROM t);
SELECT 1 FROM t GROUP BY k;
SELECT count(*) + 1, sum(id) * 2 FROM t;
-- missing: functions
SELECT approx_count_distinct(k) FROM t;
-- missing: functions
SELECT bit_and(id), bit_or(id), bit_xor(id) FROM t;
SELECT count_if(k = 2) FROM t;
SELECT string_agg(s, '-') FROM (SELECT s FROM t WHERE id < 4 ORDER BY id);
-- missing: functions
SELECT corr(id, k), covar_pop(id, k), covar_samp(id, k) FROM t;
-- Sums of integers that do not fit.
-- differs: integer-overflow
SELECT sum(big) FROM t WHERE big > 1000;
