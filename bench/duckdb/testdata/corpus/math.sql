SELECT abs(id - 30), sign(id - 30) FROM t;
SELECT round(d, 1) FROM t WHERE d BETWEEN -1e6 AND 1e6;
SELECT floor(d), ceil(d) FROM t WHERE d BETWEEN -1e6 AND 1e6;
SELECT sqrt(id), ln(id + 1), log10(id + 1), exp(k) FROM t;
SELECT power(id, 2), pow(2, k) FROM t;
SELECT id % 7, mod(id, 7), -id % 7 FROM t;
SELECT id / 7 FROM t;
SELECT id // 7, -id // 7 FROM t;
SELECT id / 2.5 FROM t;
SELECT dec * 2, dec + 0.5, dec - id FROM t;
SELECT dec / 3 FROM t;
SELECT 1.5 + 2.25, 1.1 * 1.1, 10.0 / 4;
SELECT round(2.5), round(-2.5), round(1.005, 2), round(12345, -2);
SELECT trunc(2.7), trunc(-2.7);
SELECT sin(id), cos(id), tan(id), atan2(id, 2) FROM t;
SELECT d + 1, d * 2, -d FROM t;
SELECT f * 2 FROM t;
SELECT isinf(d) FROM t;
SELECT isnan(d) FROM t;
SELECT id & 7, id | 8, xor(id, 5), id << 2, id >> 1 FROM t;
-- differs: small-integers
SELECT tiny * 2 FROM t;
SELECT tiny + CAST(1 AS INTEGER) FROM t;
SELECT pi();
SELECT degrees(1), radians(180);
SELECT cbrt(27);
SELECT gcd(12, 18), lcm(4, 6);
-- differs: cast-truncates
SELECT CAST(d AS BIGINT) FROM t WHERE d BETWEEN -1e6 AND 1e6;
-- differs: cast-truncates
SELECT CAST(2.5 AS INTEGER), CAST(-2.5 AS INTEGER), CAST(3.5 AS INTEGER);
-- differs: cast-truncates
SELECT CAST(2.5e0 AS INTEGER), CAST(3.5e0 AS INTEGER);
SELECT CAST(id AS DOUBLE), CAST(id AS DECIMAL(10,2)) FROM t;
-- differs: cast-truncates
SELECT CAST(dec AS INTEGER) FROM t;
-- fails
SELECT CAST(300 AS TINYINT);
-- fails
SELECT 9223372036854775807 + 1;
-- fails
SELECT big + 1 FROM t WHERE big > 1000;
-- differs: division-by-zero
SELECT 1 / 0;
-- differs: division-by-zero
SELECT 1 % 0;
