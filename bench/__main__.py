"""``python -m bench NAME [--json] [--check]`` runs one bench; without a name, it lists them."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from bench import (
    audit,
    backpressure,
    client,
    codec,
    commit,
    groups,
    memory,
    proxy,
    rebalance,
    restart,
    secure,
    shares,
    spark,
    start,
    table_memory,
    throughput,
    torture,
    transactions,
)
from bench.model import Bench, BenchError
from bench.options import some_of
from bench.table import as_json, as_line, as_table, check_floors

BENCHES = (
    audit.BENCH,
    backpressure.BENCH,
    client.BENCH,
    codec.BENCH,
    commit.BENCH,
    groups.BENCH,
    memory.BENCH,
    proxy.BENCH,
    rebalance.BENCH,
    restart.BENCH,
    secure.BENCH,
    shares.BENCH,
    spark.BENCH,
    start.BENCH,
    table_memory.BENCH,
    throughput.BENCH,
    torture.BENCH,
    transactions.BENCH,
)


class OneLineParser(ArgumentParser):
    """Reports a wrong argument in one line and exits with status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"bench: {message}\n")


def parser() -> OneLineParser:
    top = OneLineParser(prog="python -m bench", description="Measure kproto beside its peers.", allow_abbrev=False)
    choose: Any = top.add_subparsers(dest="name", metavar="NAME", parser_class=OneLineParser)
    for bench in BENCHES:
        sub = choose.add_parser(bench.name, help=bench.summary, description=bench.summary, allow_abbrev=False)
        sub.add_argument("--json", action="store_true", help="one JSON object per row; everything else goes to stderr")
        sub.add_argument("--check", action="store_true", help="exit status 1 unless all floors held")
        only = partial(some_of, names=bench.peers)
        sub.add_argument(
            "--only",
            type=only,
            default=bench.peers,
            metavar="NAME,...",
            help=f"the subjects to measure: {', '.join(bench.peers)}",
        )
        bench.add_options(sub)
        sub.set_defaults(bench=bench)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.name is None:
        for known in BENCHES:
            print(f"{known.name:12} {known.summary}")
        return 0
    bench: Bench = options.bench
    notes = sys.stderr if options.json else sys.stdout
    try:
        rows = bench.run(options, lambda line: print(line, file=notes, flush=True))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if options.json:
        for row in rows:
            print(as_json(row))
    else:
        print(as_table(rows, bench.metrics))
    results = check_floors(bench.floors, rows, options.only)
    for result in results:
        print(as_line(result), file=notes)
    return int(options.check and not all(result.held for result in results))


if __name__ == "__main__":
    # An exit runs the clean-up of servers and directories.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
