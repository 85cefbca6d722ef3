-- Revenue by city, kept exact while order files land in a directory.
--
--   tidemill run --trigger available-now examples/orders/orders.sql
--   tidemill query "SELECT * FROM 'out/orders_by_city' ORDER BY revenue DESC"
--
-- Drop another file into examples/orders/landing and run it again: only the new file
-- is read. Kill it at any moment: nothing is lost or counted twice.

CREATE STREAM orders (
  ts TIMESTAMP, order_id BIGINT, city VARCHAR, product VARCHAR, quantity BIGINT, price DECIMAL(10,2)
) WITH (path = 'examples/orders/landing', format = 'csv', header = true, max_files_per_trigger = 1);

CREATE SINK orders_by_city WITH (path = 'out/orders_by_city', format = 'parquet', output_mode = 'complete');

INSERT INTO orders_by_city
SELECT city, count(*) AS orders, sum(quantity) AS items, sum(quantity * price) AS revenue
FROM orders
GROUP BY city;
