"""Simulate clients, faults and the broker from many seeds: `python -m tests.simulator --seeds 1000 --from 1`.

Prints the seeds whose histories break an invariant; exits with 1 if there are any. `--shrink` makes their scripts
short, `--script FILE` runs a script again (`-`: from standard input), `--history` prints all requests and responses.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.simulator.bugs import BUGS
from tests.simulator.generator import migrations_of, script_of
from tests.simulator.run import Outcome, run, run_seed, shrink
from tests.simulator.script import Script

PROGRESS_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=1, dest="first", help="the first seed")
    parser.add_argument("--migrations", action="store_true", help="only groups that change their protocol")
    parser.add_argument("--shrink", action="store_true", help="print the shortest script that fails")
    parser.add_argument("--script", help="a file with a script to run instead")
    parser.add_argument("--history", action="store_true", help="print the history")
    parser.add_argument("--bug", choices=BUGS, help="plant a bug in the broker")
    arguments = parser.parse_args()
    if arguments.bug is not None:
        with BUGS[arguments.bug]():
            return _run(arguments)
    return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.script is not None:
        text = sys.stdin.read() if arguments.script == "-" else Path(arguments.script).read_text()
        return int(_report(run(Script.parse(text)), arguments))
    failed, exchange_count, crash_count = 0, 0, 0
    began_s = reported_s = time.monotonic()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    for number, seed in enumerate(seeds, 1):
        outcome = run_seed(seed, migrations_of if arguments.migrations else script_of)
        exchange_count += len(outcome.history.exchanges)
        crash_count += len(outcome.history.stamps("crash"))
        failed += _report(outcome, arguments)
        now_s = time.monotonic()
        if now_s - reported_s > PROGRESS_S and sys.stderr.isatty():
            reported_s = now_s
            print(f"\r{number} of {arguments.seeds} seeds, {failed} failed", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - began_s
    print(
        f"{arguments.seeds} seeds, {exchange_count} requests, {crash_count} crashes, {failed} failed; "
        f"{seconds:.0f} s, {1000 * seconds / max(1, arguments.seeds):.0f} ms for each"
    )
    return int(failed > 0)


def _report(outcome: Outcome, arguments: argparse.Namespace) -> bool:
    """Print what a script has broken, if anything."""
    if arguments.history:
        print(*outcome.history.lines(), sep="\n")
    if not outcome.violations:
        return False
    print(f"seed {outcome.script.broker.number('seed')}:", *outcome.violations, sep="\n  ", flush=True)
    if arguments.shrink:
        print(shrink(outcome.script, outcome.violations[0].rule), flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
