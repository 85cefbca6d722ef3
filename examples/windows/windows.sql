-- Page views a minute, in Parquet files by day, for ever.
--
--   tidemill run --trigger available-now examples/windows/windows.sql
--   tidemill query "SELECT day, count(*) AS minutes, sum(views) AS views FROM 'out/views_per_minute' GROUP BY day ORDER BY day"
--
-- A minute is written once, when the watermark has passed its end: the newest time seen
-- less 30 seconds. A row that comes even later is dropped and counted (numLateRows in the
-- progress). The last minutes wait in the state for what may still land.

CREATE STREAM views (
  ts TIMESTAMP, page VARCHAR, visitor VARCHAR, ms BIGINT,
  WATERMARK FOR ts AS ts - INTERVAL '30 seconds'
) WITH (path = 'examples/windows/landing', format = 'csv', header = true, max_files_per_trigger = 1);

CREATE SINK views_per_minute WITH (
  path = 'out/views_per_minute', format = 'parquet', output_mode = 'append', partition_by = 'day'
);

INSERT INTO views_per_minute
SELECT window.start AS start, CAST(window.start AS DATE) AS day, page,
       count(*) AS views, count(DISTINCT visitor) AS visitors, max(ms) AS slowest
FROM views
GROUP BY window(ts, INTERVAL '1 minute'), page;
