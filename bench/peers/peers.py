"""Runs the benchmark queries on other engines, over the files that `bench gen` made.

    python peers.py --dir DIR --rows 10000000 --format parquet --engines polars,datafusion,spark

Each engine is a process of its own with two threads; of two runs the second counts. An engine that is not
installed is left out, a query that it cannot run is named. The output is a table and, with --json, a report
like those of `bench run`. Nothing of this is needed to build or test Tidemill.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import time

QUERIES = pathlib.Path(__file__).parent.parent / "queries"

# Where an engine's dialect has other words for the DuckDB form of a query.
WORDS = {
    "polars": [],
    "datafusion": [(r"time_bucket\(INTERVAL '10 seconds', ts\)", "date_bin(INTERVAL '10 seconds', ts)"), (r"SELECT range AS k, range % 7 AS g FROM range\(1000\)", "SELECT value AS k, value % 7 AS g FROM range(0, 1000)")],
    "spark": [(r"time_bucket\(INTERVAL '10 seconds', ts\)", "window(ts, '10 seconds')"), (r"SELECT range AS k, range % 7", "SELECT id AS k, id % 7")],
}


def queries():
    for file in sorted(QUERIES.glob("*.sql")):
        text = file.read_text()
        check = re.search(r"-- check: (.*)", text)[1]
        data = re.search(r"-- data: (\w+)", text)[1]
        body = text.split("-- duckdb:\n")[-1]
        body = "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        yield file.stem, data, f"SELECT {check} FROM ({body.replace('{data}', 't')}) AS result"


def polars_engine(path, fmt):
    os.environ["POLARS_MAX_THREADS"] = "2"
    import polars

    scan = polars.scan_parquet(path) if fmt == "parquet" else polars.scan_csv(path, try_parse_dates=True)
    context = polars.SQLContext(t=scan)
    return lambda sql: context.execute(sql).collect().rows()[0]


def datafusion_engine(path, fmt):
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    (context.register_parquet if fmt == "parquet" else context.register_csv)("t", path)

    def run(sql):
        batch = context.sql(sql).collect()[0]
        return tuple(column[0].as_py() for column in batch.columns)

    return run


def spark_engine(path, fmt):
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "8g").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    reader = session.read.parquet(path) if fmt == "parquet" else session.read.csv(path, header=True, inferSchema=True)
    reader.createOrReplaceTempView("t")
    return lambda sql: tuple(session.sql(sql).collect()[0])


ENGINES = {"polars": polars_engine, "datafusion": datafusion_engine, "spark": spark_engine}


def child(engine, path, fmt, sql):
    """Runs a query twice and prints the time of the second run."""
    for pattern, word in WORDS[engine]:
        sql = re.sub(pattern, word, sql)
    run = ENGINES[engine](path, fmt)
    for _ in range(2):
        start = time.perf_counter()
        row = run(sql)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"s": seconds, "peak": peak, "row": [str(v) for v in row]}))


def measure(engine, path, fmt, sql):
    done = subprocess.run([sys.executable, __file__, "--child", engine, path, fmt, sql], capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", required=True, help="where bench gen put its files")
    parser.add_argument("--rows", default="10000000")
    parser.add_argument("--format", default="parquet", choices=["parquet", "csv"])
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--only", default="", help="only queries whose name contains this")
    parser.add_argument("--json", help="write a report to this file")
    options = parser.parse_args()
    results = []
    print("| query | engine | s | MB | first row |\n|---|---|---:|---:|---|")
    for name, data, sql in queries():
        if options.only not in name:
            continue
        path = f"{options.dir}/{data}-{options.rows}.{options.format}"
        for engine in options.engines.split(","):
            got = measure(engine, path, options.format, sql)
            result = {"suite": "peers", "name": f"{name}, {options.format}, {engine}", "runs": 1}
            if "failed" in got:
                result["failed"] = got["failed"]
                print(f"| {name} | {engine} | {got['failed']} | | |", flush=True)
            else:
                result["values"] = {"s": {"number": got["s"], "unit": "s"}, "MB": {"number": got["peak"] / 1e6, "unit": "MB-peak"}}
                print(f"| {name} | {engine} | {got['s']:.3f} | {got['peak'] / 1e6:.0f} | {', '.join(got['row'])} |", flush=True)
            results.append(result)
    if options.json:
        machine = f"{time.strftime('%Y-%m-%d')}, {platform.system()}/{platform.machine()}, Python {platform.python_version()}"
        pathlib.Path(options.json).write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
