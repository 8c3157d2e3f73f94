"""Put random requests to kproto and to a real Kafka: `python -m tests.differential groups|records [RELEASE]`.

Needs Java and Maven. Prints what differs, with the talk that led to it; exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import sys

from tests.cli.commands import kproto_started, line_of
from tests.differential.families import FAMILIES, compare
from tests.interop.ours import LISTENING
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka
from tests.oracle.releases import number


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("release", nargs="?", default=NEWEST, help="x.y.z of a Kafka release")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30, help="of each history")
    parser.add_argument("--seed", type=int, default=1, help="the first history's")
    parser.add_argument("--lines", type=int, default=12, help="of talk that are shown before a difference")
    arguments = parser.parse_args()
    settings = FAMILIES[arguments.family].settings
    flags = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    profile = ".".join(map(str, number(arguments.release)[: 3 if number(arguments.release) < (1,) else 2]))
    with (
        real_kafka(arguments.release, props={**settings, **AS_DELIVERED}) as real,
        kproto_started("serve", "--port", "0", "--profile", profile, *flags) as process,
    ):
        tested = line_of(process).removeprefix(LISTENING).split()[0]
        seeds = range(arguments.seed, arguments.seed + arguments.histories)
        lines, found = compare(arguments.family, tested, real.bootstrap, arguments.release, seeds, arguments.steps)
    for one in found:
        print(
            f"seed {one.seed}:", *one.talk[-arguments.lines :], "differs (kproto | real):", one.difference, sep="\n  "
        )
    print(f"{arguments.histories} histories, {lines} requests and answers, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
