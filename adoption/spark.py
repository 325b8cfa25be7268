#!/usr/bin/env python3
"""Runs the SQL of `nonesuch adoption report` on Spark.

    spark.py SNAPSHOTS OUT            write the tables as Parquet to OUT
    spark.py SNAPSHOTS --compare DIR  compare the tables with those in DIR, the directory `tables` of a report

SNAPSHOTS is a directory, or any path that Spark can read. The SQL is read from the directory `sql` beside this file,
unchanged. Without a cluster, Spark runs in this process. Exit status: 0 if the tables are written or equal, 1 if they
differ, 2 if the input is invalid.

Spark checks only the names and types of columns and repeated domains; `nonesuch adoption report` checks all values.
"""

import argparse
import pathlib
import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, DateType, IntegerType, StringType, StructField, StructType

SQL = pathlib.Path(__file__).resolve().parent / "sql"
# Maximum relative difference of two floating-point numbers.
TOLERANCE = 1e-12

TEXT, INTEGER = StringType(), IntegerType()
COLUMNS = StructType([
    StructField(name, kind)
    for name, kind in [
        ("source", TEXT), ("date", DateType()), ("domain", TEXT), ("dnskey_algorithms", TEXT),
        ("ds_algorithms", TEXT), ("ds_digests", TEXT), ("operator", TEXT), ("denial", TEXT),
        ("nsec3_iterations", INTEGER), ("nsec3_salt", TEXT), ("nsec3_opt_out", BooleanType()), ("rank", INTEGER),
    ]
])


def run(spark, path):
    return spark.sql((SQL / path).read_text())


def register(spark, path):
    run(spark, path).createOrReplaceTempView(pathlib.Path(path).stem)


def read_snapshots(spark, path):
    """Returns the rows, or ends the program if columns are missing or have other types."""
    # As the report, without other files of the directory.
    reader = spark.read.option("pathGlobFilter", "*.parquet")
    found = {field.name: field.dataType for field in reader.parquet(path).schema}
    faults = [
        f"{field.name}: expected {field.dataType.simpleString()}, found "
        + (found[field.name].simpleString() if field.name in found else "nothing")
        for field in COLUMNS
        if found.get(field.name) != field.dataType
    ]
    if faults:
        print(f"{path}: wrong columns: " + "; ".join(faults), file=sys.stderr)
        sys.exit(2)
    return reader.schema(COLUMNS).parquet(path)


def tables(spark, snapshots):
    """Yields the name and the rows of each table, in the order of their names."""
    read_snapshots(spark, snapshots).createOrReplaceTempView("snapshots")
    repeated = run(spark, "checks/duplicates.sql").collect()
    if repeated:
        print(f"{len(repeated)} snapshots have repeated domains, such as {repeated[0]}", file=sys.stderr)
        sys.exit(2)
    for view in ["algorithms", "classified"]:
        register(spark, f"views/{view}.sql")
    run(spark, "counts.sql").cache().createOrReplaceTempView("counts")
    yield "counts", spark.table("counts")
    for view in ["algorithm_members", "top_operators"]:
        register(spark, f"views/{view}.sql")
    for path in sorted((SQL / "results").glob("*.sql")):
        yield path.stem, run(spark, f"results/{path.name}")


def is_equal(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= TOLERANCE * max(abs(ours), abs(theirs))
    return ours == theirs


def sorted_rows(frame):
    """Returns the rows as tuples, in an order that does not depend on floating-point numbers."""
    rows = [tuple(row) for row in frame.collect()]
    return sorted(rows, key=lambda row: [(cell is None, str(cell)) for cell in row if not isinstance(cell, float)])


def differences(name, spark_table, report_table):
    """Returns texts about the first differences of two tables."""
    if spark_table.columns != report_table.columns:
        return [f"{name}: columns {spark_table.columns} and {report_table.columns}"]
    spark_rows, report_rows = sorted_rows(spark_table), sorted_rows(report_table)
    if len(spark_rows) != len(report_rows):
        return [f"{name}: {len(spark_rows)} rows of Spark, {len(report_rows)} of the report"]
    pairs = zip(spark_rows, report_rows)
    return [
        f"{name}: Spark {ours}, report {theirs}"
        for ours, theirs in pairs
        if not all(map(is_equal, ours, theirs))
    ][:3]


def compare(spark, snapshots, directory):
    found = []
    names = set()
    for name, table in tables(spark, snapshots):
        names.add(name)
        report_table = spark.read.parquet(str(directory / f"{name}.parquet"))
        faults = differences(name, table, report_table)
        print(f"{name}: {report_table.count()} rows, " + ("different" if faults else "equal"))
        found += faults
    unread = {path.stem for path in directory.glob("*.parquet")} - names
    found += [f"{name}: Spark has no such table" for name in sorted(unread)]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


def write(spark, snapshots, out):
    for name, table in tables(spark, snapshots):
        table.write.mode("overwrite").parquet(f"{out}/{name}.parquet")
        print(f"{name} written")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshots", metavar="SNAPSHOTS")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("out", metavar="OUT", nargs="?")
    target.add_argument("--compare", metavar="DIR", type=pathlib.Path)
    arguments = parser.parse_args()
    spark = SparkSession.builder.appName("nonesuch adoption").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        if arguments.compare:
            return compare(spark, arguments.snapshots, arguments.compare)
        return write(spark, arguments.snapshots, arguments.out)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
