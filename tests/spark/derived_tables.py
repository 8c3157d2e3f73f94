"""Check derived tables against the jobs on the embedded engine."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pyarrow.parquet as pq

from kproto.spark import derived
from kproto.spark.commands import JOBS
from kproto.spark.derived import file_of
from kproto.spark.engine import is_embedded
from kproto.spark.input import Input
from tests.spark.duck import assert_rows


def assert_derived(source: Input, options: Namespace, root: Path) -> None:
    """Check that each table is one file with the result of its job; the input is of the embedded engine."""
    assert is_embedded()
    for job, table in derived.DERIVED.items():
        assert [path.name for path in (root / table.name).iterdir()] == [f"{table.name}.parquet"]
        assert_rows(JOBS[job].run(source, options), table, pq.read_table(file_of(root, table)))
