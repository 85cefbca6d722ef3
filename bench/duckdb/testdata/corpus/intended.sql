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
-- differs: map-of-lists
SELECT map(['a'], [1]);
-- differs: substr-from-zero
SELECT substr('hello', 0, 2);
-- differs: text-to-integer
SELECT TRY_CAST('1.5' AS INT), TRY_CAST('1e3' AS INT);
-- differs: century-start
SELECT date_trunc('century', DATE '2024-05-05');
-- differs: time-bucket-origin
SELECT time_bucket(INTERVAL '7 days', TIMESTAMP '2024-05-05 12:00:00');
-- differs: contains-unknown
SELECT array_contains([1, NULL], 2);
-- differs: distinct-null
SELECT list_distinct([1, NULL, 1]);
-- differs: count-if-no-rows
SELECT count_if(k > 0) FROM t WHERE false;
-- differs: corr-one-row
SELECT corr(x, y) FROM (VALUES (1, 2)) AS v(x, y);
-- differs: similar-to
SELECT 'abc' SIMILAR TO 'a%';
-- differs: integer-division
SELECT 5 // 2.0;
-- differs: round-as-written
SELECT round(1.005e0, 2);
-- differs: split-part-empty
SELECT split_part('a,b', '', 1);
-- differs: ilike-dotted-i
SELECT 'İ' ILIKE 'i';
-- differs: list-sort-nulls
SELECT array_sort([2, NULL, 1]);
-- differs: json-trailing-comma
SELECT json_valid('[1,]');
-- differs: json-doubled-name
SELECT json_keys('{"a":1,"a":2}');
-- differs: from-json-schema
SELECT from_json('{"a":1}', 'a INT');
-- differs: from-json-schema
SELECT schema_of_json('{"a":1}');
-- differs: series-of-months
SELECT * FROM generate_series(TIMESTAMP '2024-01-31', TIMESTAMP '2024-05-31', INTERVAL '1 month');
-- differs: json-text-nested
SELECT json_object('a', json_array(1));
-- differs: regexp-extract-group
SELECT regexp_extract('foo-12', '([a-z]+)-([0-9]+)');
-- differs: list-position
SELECT list_position([1, 2], 3);
-- differs: bit-count
SELECT bit_count(-1);
-- differs: shift-negative
SELECT -1 << 1;
-- differs: shift-by-negative
SELECT 1 >> -1;
-- differs: printf-java
SELECT printf('%g', 1.5e0);
-- differs: printf-java
SELECT printf('%s', NULL);
-- differs: weekday
SELECT weekday(DATE '2024-05-05');
-- differs: minute-for-month
SELECT strptime('2024-05-06', '%Y-%M-%d');
-- differs: string-agg-separator
SELECT string_agg(x) FROM (VALUES ('a'), ('b')) AS v(x);
-- differs: value-null
SELECT max_by(x, y) FROM (VALUES (NULL, 3), ('a', 2), ('b', 1)) AS v(x, y);
-- differs: value-null
SELECT any_value(x) FROM (VALUES (NULL), (1)) AS v(x);
-- differs: sign-nan
SELECT sign(CAST('NaN' AS DOUBLE));
-- differs: split-regexp
SELECT split('a.b', '.');
-- differs: nested-null-order
SELECT [1] < [NULL], {'a': 1} < {'a': NULL};
-- differs: regr-slope-constant
SELECT regr_slope(y, x) FROM (VALUES (1e0, 1e0), (2e0, 1e0)) AS v(y, x);
-- differs: date-slashes
SELECT CAST('2024/02/29' AS DATE);
-- differs: nested-text
SELECT CAST([1, NULL] AS VARCHAR), CAST({'a': 'x'} AS VARCHAR);
-- differs: union-text
SELECT 1 UNION ALL SELECT 'x';
-- differs: offset-minutes
SELECT strftime(TIMESTAMP '2024-02-29 10:11:12', '%z %Z');
-- differs: year-sign
SELECT CAST(DATE '12345-01-02' AS VARCHAR), strftime(DATE '12345-01-02', '%Y');
-- missing: lateral-comma
SELECT t.id, x.c, u.k FROM t, LATERAL (SELECT t.id + 1 AS c) AS x FULL JOIN u ON x.c = u.k;
-- missing: scalar-range
SELECT range(3);
-- missing: lambdas
SELECT list_transform([1, 2], x -> x + 1);
-- missing: slice-step
SELECT words[1:2:2] FROM n;
-- missing: positional-join
SELECT * FROM range(2) AS a(x) POSITIONAL JOIN range(2) AS b(y);
-- missing: columns-conditions
SELECT id FROM t WHERE COLUMNS('id|k') > 0;
-- missing: lambdas
SELECT [x + 1 FOR x IN [1, 2]];
-- missing: pivot
SELECT * FROM (VALUES (1, 'a')) AS v(x, k) PIVOT (sum(x) FOR k IN ('a'));
-- differs: top-k-counts
SELECT approx_top_k(x, 1) FROM (VALUES (1), (3), (3)) AS v(x);
-- differs: weights-of-nothing
SELECT weighted_avg(x, w) FROM (VALUES (1e0, 0e0)) AS v(x, w);
-- differs: map-entries
SELECT map('b', 1, 'a', 2) = map('a', 2, 'b', 1);
-- differs: split-part-zero
SELECT split_part('a,b', ',', 0);
