-- Window functions.
-- missing: window-functions
SELECT id, row_number() OVER (ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, rank() OVER (ORDER BY k), dense_rank() OVER (ORDER BY k) FROM t;
-- missing: window-functions
SELECT id, sum(id) OVER (PARTITION BY k ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t;
-- missing: window-functions
SELECT id, avg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t;
-- missing: window-functions
SELECT id, count(*) OVER (PARTITION BY b) FROM t;
-- missing: window-functions
SELECT id, lag(id) OVER (ORDER BY id), lead(id, 2) OVER (ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, lag(s, 1, 'none') OVER (PARTITION BY k ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, first_value(s) OVER (PARTITION BY k ORDER BY id), last_value(id) OVER (PARTITION BY k ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, max(d) OVER (PARTITION BY k) FROM t;
-- missing: window-functions
SELECT id, ntile(4) OVER (ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM t;
-- missing: window-functions
SELECT id, nth_value(id, 2) OVER (PARTITION BY k ORDER BY id) FROM t;
-- missing: window-functions
SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC) = 1;
-- missing: window-functions
SELECT k, sum(count(*)) OVER (ORDER BY k) FROM t GROUP BY k;
-- missing: window-functions
SELECT id, sum(id) OVER (ORDER BY k) FROM t;
-- missing: window-functions
SELECT id, sum(id) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t;
