-- A stream of sales joined with a table of products, which is read again each batch.
--
--   tidemill run --trigger available-now examples/enrich/enrich.sql
--   tidemill query "SELECT * FROM 'out/revenue_by_category' ORDER BY category"
--
-- Sales of products that the table does not have are kept, as category 'unknown'.

CREATE STREAM sales (
  id BIGINT, sku VARCHAR, quantity BIGINT, at TIMESTAMP
) WITH (path = 'examples/enrich/landing', format = 'json', max_files_per_trigger = 1);

CREATE TABLE products (
  sku VARCHAR, name VARCHAR, category VARCHAR, price DECIMAL(10,2)
) WITH (path = 'examples/enrich/products.csv', header = true);

CREATE VIEW priced AS
SELECT s.id, s.at, coalesce(p.category, 'unknown') AS category, s.quantity * p.price AS revenue
FROM sales s LEFT JOIN products p ON s.sku = p.sku;

CREATE SINK revenue_by_category WITH (path = 'out/revenue_by_category', format = 'csv', output_mode = 'complete');

INSERT INTO revenue_by_category
SELECT category, count(*) AS sales, sum(revenue) AS revenue
FROM priced
GROUP BY category;
