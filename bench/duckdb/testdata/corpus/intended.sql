-- Each statement shows one intended difference.
-- differs: power-operator
SELECT 2 ^ 3;
-- differs: out-of-range-index
SELECT words[5] FROM n;
-- differs: division-by-zero
SELECT id / (k - k) FROM t WHERE k IS NOT NULL;
-- differs: concat-null
SELECT concat(s, 'x') FROM t;
-- differs: grouping-set-no-rows
SELECT k, count(*) FROM e GROUP BY GROUPING SETS ((k), ());
