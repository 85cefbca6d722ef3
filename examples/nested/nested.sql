-- JSON lines with objects and arrays inside; their columns are inferred.
--
--   tidemill schema examples/nested/landing
--   tidemill run --trigger available-now examples/nested/nested.sql
--   tidemill query "SELECT * FROM 'out/first_items' ORDER BY at LIMIT 5"

CREATE STREAM events WITH (path = 'examples/nested/landing', format = 'json');

CREATE SINK first_items WITH (path = 'out/first_items', format = 'json');

INSERT INTO first_items
SELECT at, user.id AS user_id, coalesce(user.geo.country, '??') AS country,
       cardinality(items) AS n, items[0].sku AS first_sku, items[0].qty AS first_qty
FROM events
WHERE kind = 'buy' AND cardinality(items) > 0;
