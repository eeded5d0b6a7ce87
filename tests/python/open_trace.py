#!/usr/bin/env python3
"""Opens a trace with pandas, Polars and DuckDB and checks that all see the same.

usage: open_trace.py FILE

Prints one line per reader. Exit status: 0 all agree, 1 something differs, 2 wrong usage.
"""

import json
import sys

import duckdb
import pandas
import polars
import pyarrow.parquet

# A name for each type that columns have, and what each reader calls it.
INT64, UINT64, INT32, UINT32, BOOL = "int64", "uint64", "int32", "uint32", "bool"
TEXT, BYTES, WORD = "text", "bytes", "word"
TEXTS, BYTES_LIST, NUMBERS = "list of text", "list of bytes", "list of int64"

ARROW = {
    INT64: {"int64"},
    UINT64: {"uint64"},
    INT32: {"int32"},
    UINT32: {"uint32"},
    BOOL: {"bool"},
    TEXT: {"string"},
    BYTES: {"binary"},
    WORD: {"dictionary<values=string, indices=int8, ordered=0>"},
    TEXTS: {"list<item: string>", "list<element: string>"},
    BYTES_LIST: {"list<item: binary>", "list<element: binary>"},
    NUMBERS: {"list<item: int64>", "list<element: int64>"},
}
POLARS = {
    INT64: {"Int64"},
    UINT64: {"UInt64"},
    INT32: {"Int32"},
    UINT32: {"UInt32"},
    BOOL: {"Boolean"},
    TEXT: {"String"},
    BYTES: {"Binary"},
    WORD: {"Categorical", "String"},
    TEXTS: {"List(String)"},
    BYTES_LIST: {"List(Binary)"},
    NUMBERS: {"List(Int64)"},
}
DUCKDB = {
    INT64: {"BIGINT"},
    UINT64: {"UBIGINT"},
    INT32: {"INTEGER"},
    UINT32: {"UINTEGER"},
    BOOL: {"BOOLEAN"},
    TEXT: {"VARCHAR"},
    BYTES: {"BLOB"},
    WORD: {"VARCHAR"},
    TEXTS: {"VARCHAR[]"},
    BYTES_LIST: {"BLOB[]"},
    NUMBERS: {"BIGINT[]"},
}

# All of these must be there; further columns are checked for the same type in all readers only.
COLUMNS = {
    "time_ns": INT64,
    "kind": WORD,
    "cpu": INT32,
    "pid": UINT32,
    "start_ns": INT64,
    "tid": UINT32,
    "mm": UINT64,
    "rss_anon": INT64,
    "vms": INT64,
    "bound": INT64,
    "clone_flags": UINT64,
    "comm": TEXT,
    "comm_raw": BYTES,
    "argv": TEXTS,
    "argv_raw": BYTES_LIST,
    "argv_truncated": BOOL,
    "lost_kinds": TEXTS,
    "lost_counts": NUMBERS,
}


class Disagreement(Exception):
    """What one reader sees isn't what it should."""


def check_types(reader, names, found):
    """Checks the types that a reader reports: by `names` where known, else against any type."""
    for column, expected in COLUMNS.items():
        if column not in found:
            raise Disagreement(f"{reader}: there is no column {column}")
        if found[column] not in names[expected]:
            raise Disagreement(f"{reader}: {column} is {found[column]}, not {expected}")
    known = set().union(*names.values())
    for column, of in found.items():
        if of not in known:
            raise Disagreement(f"{reader}: {column} has the unexpected type {of}")
    return {column: {n for n in names if of in names[n]} for column, of in found.items()}


def summary(rows, kinds, rss, arguments):
    """What all readers must agree on, whatever their own types are."""
    return {
        "rows": int(rows),
        "kinds": {str(kind): int(count) for kind, count in sorted(kinds)},
        "sum of rss_anon": int(rss or 0),
        "arguments": int(arguments or 0),
    }


def with_pandas(path):
    """Types as pyarrow has them, values as pandas has them."""
    schema = pyarrow.parquet.read_schema(path)
    types = check_types("pandas", ARROW, {field.name: str(field.type) for field in schema})
    table = pandas.read_parquet(path, engine="pyarrow")
    if list(table.columns) != schema.names:
        raise Disagreement("pandas: other columns than pyarrow")
    kinds = [(k, n) for k, n in table["kind"].value_counts().items() if n]
    arguments = sum(len(argv) for argv in table["argv"].dropna())
    return types, summary(len(table), kinds, table["rss_anon"].sum(), arguments)


def with_polars(path):
    """Types and values as Polars has them, read lazily as users of large files do."""
    lazy = polars.scan_parquet(path)
    types = {
        name: "Categorical" if isinstance(of, (polars.Categorical, polars.Enum)) else str(of)
        for name, of in lazy.collect_schema().items()
    }
    types = check_types("Polars", POLARS, types)
    table = lazy.collect()
    kinds = table.group_by(polars.col("kind").cast(polars.String)).len().rows()
    arguments = table["argv"].list.len().sum()
    return types, summary(table.height, kinds, table["rss_anon"].sum(), arguments)


def with_duckdb(path):
    """Types and values as SQL has them."""
    database = duckdb.connect()
    trace = database.read_parquet(path)
    types = check_types("DuckDB", DUCKDB, dict(zip(trace.columns, map(str, trace.types))))
    kinds = trace.aggregate("kind, count(*)").fetchall()
    totals = trace.aggregate("count(*), sum(rss_anon), sum(len(argv))").fetchall()
    rows, rss, arguments = totals[0]
    return types, summary(rows, kinds, rss, arguments)


def check_metadata(path):
    """Metadata keys are plain text or JSON, and say how many rows of each kind there are."""
    metadata = pyarrow.parquet.read_metadata(path).metadata or {}
    if not metadata.get(b"rtrace.schema_version", b"").startswith(b"1."):
        raise Disagreement("metadata: no rtrace.schema_version 1.x")
    return json.loads(metadata[b"rtrace.events"])


def main():
    """Runs all readers; the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = sys.argv[1]
    try:
        results = {}
        for name, module, read in [
            ("pandas", pandas, with_pandas),
            ("Polars", polars, with_polars),
            ("DuckDB", duckdb, with_duckdb),
        ]:
            types, found = results[name] = read(path)
            rows, kinds = found["rows"], len(found["kinds"])
            version = module.__version__
            print(f"{name} {version}: {rows} rows of {kinds} kinds, {len(types)} columns")
        first_types, first = results["pandas"]
        for name, (types, found) in results.items():
            if found != first:
                raise Disagreement(f"{name} sees {found}, pandas {first}")
            if types.keys() != first_types.keys():
                raise Disagreement(f"{name} sees other columns than pandas")
            # A reader may have one name for two of our types, so these are sets.
            different = [c for c in types if not types[c] & first_types[c]]
            if different:
                raise Disagreement(f"{name} sees other types than pandas in {different}")
        if check_metadata(path) != first["kinds"]:
            raise Disagreement("rtrace.events in the metadata isn't what is in the file")
    except Disagreement as problem:
        print(f"open_trace.py: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
