"""Runs the benchmark queries on other engines, over the files that `bench gen` and `bench/duckdb` made.

    pip install polars datafusion pyspark==4.0.1      # Spark needs Java 17
    python peers.py --dir DIR --json peers.json

Every engine has two threads; of two runs in a process the second counts. Polars and DataFusion are a process of
their own for each query, Spark (local[2]) one for all, since it starts slowly: its memory is the peak so far. Spark
also keeps a result fresh while files land, as `bench/duckdb fresh` does: update mode, state in RocksDB, rows dropped.
An engine that is not installed and a query that it cannot run are named. The output is a table and, with --json, a
report that `bench report` takes. Nothing of this is needed to build or test Tidemill.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

QUERIES = pathlib.Path(__file__).parent.parent / "queries"

# Queries of each format; none named is all.
SUITES = {"parquet": [], "csv": ["h2o_q01", "h2o_q03", "h2o_q10", "window_10s"], "jsonl": ["window_10s"]}

# Where an engine's dialect has other words for the DuckDB form of a query.
BUCKET = r"time_bucket\(INTERVAL '10 seconds', ts\)"
WORDS = {
    "polars": [(BUCKET, "ts10"), (r"\(SELECT range AS k, range % 7 AS g FROM range\(1000\)\)", "small")],
    "datafusion": [(BUCKET, "date_bin(INTERVAL '10 seconds', CAST(ts AS TIMESTAMP))"), (r"SELECT range AS k, range % 7 AS g FROM range\(1000\)", "SELECT value AS k, value % 7 AS g FROM range(0, 1000)")],
    "spark": [
        (BUCKET, "window(ts, '10 seconds')"),
        (r"SELECT range AS k, range % 7", "SELECT id AS k, id % 7"),
        (r"SELECT id6, v3 FROM t QUALIFY (.*) <= 2", r"SELECT id6, v3 FROM (SELECT id6, v3, \1 AS place FROM t) WHERE place <= 2"),
    ],
}


def queries(fmt, only):
    for file in sorted(QUERIES.glob("*.sql")):
        if only not in file.stem or SUITES[fmt] and file.stem not in SUITES[fmt]:
            continue
        text = file.read_text()
        check = re.search(r"-- check: (.*)", text)[1]
        data = re.search(r"-- data: (\w+)", text)[1]
        body = text.split("-- duckdb:\n")[-1]
        body = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        yield file.stem, data, f"SELECT {check} FROM ({body.replace('{data}', 't')}) AS result"


class Polars:
    def __init__(self):
        os.environ["POLARS_MAX_THREADS"] = "2"
        import polars

        self.polars = polars

    def open(self, path, fmt):
        pl = self.polars
        scan = {"parquet": pl.scan_parquet, "csv": lambda p: pl.scan_csv(p, try_parse_dates=True), "jsonl": pl.scan_ndjson}[fmt](path)
        if "ts" in scan.collect_schema().names():
            ts = pl.col("ts").str.to_datetime(time_zone="UTC") if fmt == "jsonl" else pl.col("ts")
            scan = scan.with_columns(ts10=ts.dt.truncate("10s"))
        small = pl.LazyFrame({"k": range(1000)}).with_columns(g=pl.col("k") % 7)
        self.context = pl.SQLContext(t=scan, small=small)

    def run(self, sql):
        return self.context.execute(sql).collect().rows()[0]

    def peak(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class DataFusion:
    def __init__(self):
        import datafusion

        self.context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))

    def open(self, path, fmt):
        if fmt == "jsonl":
            self.context.register_json("t", path, file_extension=".jsonl")
        else:
            (self.context.register_parquet if fmt == "parquet" else self.context.register_csv)("t", path)

    def run(self, sql):
        batch = self.context.sql(sql).collect()[0]
        return tuple(column[0].as_py() for column in batch.columns)

    def peak(self):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Spark:
    def __init__(self):
        from pyspark.sql import SparkSession

        self.session = (
            SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.memory", "8g").config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
            .config("spark.sql.streaming.numRecentProgressUpdates", "10000").getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")
        self.tables = {}

    def open(self, path, fmt):
        if path not in self.tables:
            read = self.session.read
            self.tables[path] = {"parquet": read.parquet, "csv": lambda p: read.csv(p, header=True, inferSchema=True), "jsonl": lambda p: read.json(p)}[fmt](path)
            if fmt == "jsonl":
                self.tables[path] = self.tables[path].selectExpr("CAST(ts AS TIMESTAMP) AS ts", "key", "value")
        self.tables[path].createOrReplaceTempView("t")

    def run(self, sql):
        return tuple(self.session.sql(sql).collect()[0])

    def peak(self):
        """The most memory of the Java process that this one started."""
        status = pathlib.Path(f"/proc/{self.session.sparkContext._gateway.proc.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024

    def fresh(self, landing, pattern):
        """The seconds of each micro-batch."""
        stream = (
            self.session.readStream.schema("ts timestamp, key bigint, value double").option("header", True)
            .option("maxFilesPerTrigger", 1).option("pathGlobFilter", pattern).csv(landing)
        )
        stream.createOrReplaceTempView("landing")
        result = self.session.sql("SELECT window(ts, '10 seconds') AS w, key, count(*) AS n, max(value) AS top FROM landing GROUP BY window(ts, '10 seconds'), key")
        with tempfile.TemporaryDirectory() as checkpoint:
            query = result.writeStream.outputMode("update").format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            progress = [p for p in query.recentProgress if p["numInputRows"] > 0]
        return [p["durationMs"]["triggerExecution"] / 1000 for p in progress], progress[-1]["stateOperators"][0]["numRowsTotal"]


ENGINES = {"polars": Polars, "datafusion": DataFusion, "spark": Spark}


def child(engine, jobs):
    """Runs each job twice and prints a line for each: the time of the second run."""
    one = ENGINES[engine]()
    for job in json.loads(jobs):
        try:
            print(json.dumps(run_job(engine, one, job)), flush=True)
        except Exception as e:  # any failure of an engine is its result
            print(json.dumps({"failed": " ".join(str(e).split())[:200] or type(e).__name__}), flush=True)


def run_job(engine, one, job):
    if "landing" in job:
        seconds, groups = one.fresh(job["landing"], job["pattern"])
        return {"s": statistics.mean(seconds), "last": statistics.mean(seconds[-10:]), "peak": one.peak(), "row": [f"{len(seconds)} files", f"{groups} groups"]}
    sql = job["sql"]
    for pattern, word in WORDS[engine]:
        sql = re.sub(pattern, word, sql)
    one.open(job["path"], job["format"])
    for _ in range(2):
        start = time.perf_counter()
        row = one.run(sql)
        seconds = time.perf_counter() - start
    return {"s": seconds, "peak": one.peak(), "row": [str(v) for v in row]}


def measure(engine, jobs):
    """The results of jobs, in a process of their own."""
    process = subprocess.Popen([sys.executable, __file__, "--child", engine, json.dumps(jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate()
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    why = (err.strip().splitlines() or ["no output"])[-1][:200]
    return lines + [{"failed": why}] * (len(jobs) - len(lines))


def jobs_of(options, engine):
    for fmt in options.format.split(","):
        for name, data, sql in queries(fmt, options.only):
            yield {"name": f"{name}, {fmt}", "path": f"{options.dir}/{data}-{options.rows}.{fmt}", "format": fmt, "sql": sql}
    if engine == "spark" and options.only in "fresh":
        yield {"name": "fresh", "landing": options.landing or f"{options.dir}/landing-100-50000-csv", "pattern": options.pattern}


def machine():
    name = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text()) if os.path.exists("/proc/cpuinfo") else None
    return f"{time.strftime('%Y-%m-%d')}, {platform.system().lower()}/{platform.machine()}, {os.cpu_count()} cores, {name[1] if name else 'processor unknown'}"


def versions(engines):
    for engine in engines:
        try:
            yield f"{engine} {importlib.metadata.version({'spark': 'pyspark'}.get(engine, engine))}"
        except importlib.metadata.PackageNotFoundError:
            yield f"{engine} is not installed"


def write(options, engines, results):
    note = f"{options.rows} rows, 2 threads: {', '.join(versions(engines))}. Load of the machine: {os.getloadavg()[0]:.1f}."
    suite = {"machine": machine(), "note": note, "columns": ["s", "last 10 s", "MB"], "chart": "s"}
    pathlib.Path(options.json).write_text(json.dumps({"suites": {"peers": suite}, "results": results}, indent=2) + "\n")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", required=True, help="where the files are")
    parser.add_argument("--rows", default="10000000")
    parser.add_argument("--format", default=",".join(SUITES))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    parser.add_argument("--landing", help="directory of the landed files (default: that of bench/duckdb fresh)")
    parser.add_argument("--pattern", default="part-000[0-3]?.csv", help="names of the landed files (default: the first 40, for Spark's sake)")
    parser.add_argument("--json", help="write a report to this file")
    options = parser.parse_args()
    results = []
    print("| query | engine | s | MB | first row |\n|---|---|---:|---:|---|")
    for engine in options.engines.split(","):
        jobs = list(jobs_of(options, engine))
        groups = [jobs] if engine == "spark" else [[job] for job in jobs]
        for group in groups:
            for job, got in zip(group, measure(engine, group)):
                result = {"suite": "peers", "name": f"{job['name']}, {engine}", "runs": 1}
                if "failed" in got:
                    result["failed"] = got["failed"]
                    print(f"| {job['name']} | {engine} | {got['failed']} | | |", flush=True)
                else:
                    result["values"] = {"s": {"number": got["s"], "unit": "s"}, "MB": {"number": got["peak"] / 1e6, "unit": "MB-peak"}}
                    if "last" in got:
                        result["values"]["last 10 s"] = {"number": got["last"], "unit": "last10-s"}
                    print(f"| {job['name']} | {engine} | {got['s']:.3f} | {got['peak'] / 1e6:.0f} | {', '.join(got['row'])} |", flush=True)
                results.append(result)
    if options.json:
        write(options, options.engines.split(","), results)


if __name__ == "__main__":
    main()
