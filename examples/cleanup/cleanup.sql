-- Messy CSV in, clean Parquet out; what could not be read is kept aside.
--
--   tidemill run --trigger available-now examples/cleanup/cleanup.sql
--   tidemill query "SELECT sensor, count(*) AS n, round(avg(celsius), 2) AS mean FROM 'out/readings' GROUP BY sensor ORDER BY sensor"
--   tidemill query "SELECT * FROM 'out/unreadable'"
--
-- In mode permissive (the default) a record that does not fit keeps what could be read of
-- it, with null for the rest. It is counted in the progress (numMalformedRows), and its
-- text is in the corrupt_column.

CREATE STREAM readings (
  at TIMESTAMP, sensor VARCHAR, celsius DOUBLE, raw VARCHAR
) WITH (path = 'examples/cleanup/landing', format = 'csv', header = true, corrupt_column = 'raw');

CREATE SINK clean WITH (path = 'out/readings', format = 'parquet');
CREATE SINK unreadable WITH (path = 'out/unreadable', format = 'json');

INSERT INTO clean
SELECT at, lower(trim(sensor)) AS sensor, celsius
FROM readings
WHERE raw IS NULL AND celsius IS NOT NULL;

INSERT INTO unreadable
SELECT raw FROM readings WHERE raw IS NOT NULL;
