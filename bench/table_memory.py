"""Memory and time of the table of committed offsets alone, and its longest pause.

Method: each subject is filled in a fresh process with one commit of all partitions for each group; the growth of
resident memory is the figure. Times are CPU times of the thread, which other processes do not affect: mean and maximum
of the commits of new groups, garbage collections included; then, for commits and lookups of randomly chosen groups, the
minimum of several rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace

from bench.group_shape import GroupShape
from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Note, Row
from bench.options import count
from bench.table_filler import SUBJECTS

BYTES = Metric(key="bytes_per_entry", title="bytes/entry", compared=True)
LONGEST = Metric(key="longest_commit_ms", title="longest commit ms", digits=2)
METRICS = (
    BYTES,
    LONGEST,
    Metric(key="first_commit_us", title="first commit us", digits=2),
    Metric(key="next_commit_us", title="next commit us", digits=2),
    Metric(key="lookup_us", title="lookup us", digits=2),
)
SHAPES = (GroupShape(1_000, 10, 100), GroupShape(1_000_000, 1, 16), GroupShape(4_000_000, 1, 1))
ENTRIES_MAX = {"tuples": 5_000_000}
"""More entries would take more memory than most machines have."""
BYTES_MAX = 64.0
LONGEST_MAX_MS = 10.0


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--fraction", type=count, default=1, metavar="N", help="only one Nth of the groups")


def run(options: Namespace, note: Note) -> list[Row]:
    rows = []
    for shape in SHAPES:
        figures = {}
        for name in options.only:
            part = GroupShape(max(1, shape.groups // options.fraction), shape.topics, shape.partitions)
            if part.entries > ENTRIES_MAX.get(name, part.entries):
                note(f"{shape}: {name} left out, it would take gigabytes")
            else:
                figures[name] = _filled(name, part)
        rows.append(Row(bench=BENCH.name, case=str(shape), figures=figures))
    return rows


def _filled(name: str, shape: GroupShape) -> dict[str, float]:
    argv = [sys.executable, "-m", "bench.table_filler", name, *map(str, shape)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{name} was not filled with {shape}: {done.stderr.strip()}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


BENCH = Bench(
    name="table",
    summary="memory of the table of committed offsets alone, and its longest pause",
    metrics=METRICS,
    peers=[KPROTO, *(name for name in SUBJECTS if name != KPROTO)],
    floors=[
        Limit(case=str(shape), metric=metric, at_most=at_most)
        for shape in SHAPES
        for metric, at_most in ((BYTES, BYTES_MAX), (LONGEST, LONGEST_MAX_MS))
    ],
    add_options=add_options,
    run=run,
)
