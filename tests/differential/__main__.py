"""Put random requests to kproto and to a real Kafka: `python -m tests.differential FAMILY [RELEASE]`.

Needs Java and Maven. Prints what differs, with the talk that led to it; exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import sys

from tests.differential.families import FAMILIES, compare, kproto_as
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("release", nargs="?", default=NEWEST, help="x.y.z of a Kafka release")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30, help="of each history")
    parser.add_argument("--seed", type=int, default=1, help="the first history's")
    parser.add_argument("--lines", type=int, default=12, help="of talk that are shown before a difference")
    arguments = parser.parse_args()
    family, release = arguments.family, arguments.release
    seeds = range(arguments.seed, arguments.seed + arguments.histories)
    with (
        real_kafka(release, props={**FAMILIES[family].settings, **AS_DELIVERED}) as real,
        kproto_as(release, family) as tested,
    ):
        lines, found = compare(family, tested, real.bootstrap, release, seeds, arguments.steps)
    for one in found:
        print(
            f"seed {one.seed}:", *one.talk[-arguments.lines :], "differs (kproto | real):", one.difference, sep="\n  "
        )
    print(f"{arguments.histories} histories, {lines} requests and answers, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
