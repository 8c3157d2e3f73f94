"""Send random requests to kproto and to a real Kafka: `python -m tests.differential FAMILY [RELEASE]`.

Needs Java and Maven. Prints each difference with the requests before it; exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys

from tests.differential.families import FAMILIES, compare, kproto_as
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("release", nargs="?", default=NEWEST, help="Kafka release, x.y.z")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--steps", type=int, default=30, help="per history")
    parser.add_argument("--seed", type=int, default=1, help="of the first history")
    parser.add_argument("--lines", type=int, default=12, help="lines of the transcript before a difference")
    arguments = parser.parse_args()
    family, release = arguments.family, arguments.release
    seeds = range(arguments.seed, arguments.seed + arguments.histories)
    with (
        real_kafka(release, props={**FAMILIES[family].settings_of(release), **AS_DELIVERED}) as real,
        kproto_as(release, family) as tested,
    ):
        line_count, found = compare(family, tested, real.bootstrap, release, seeds, arguments.steps)
    for each in found:
        transcript = each.transcript[-arguments.lines :]
        print(f"seed {each.seed}:", *transcript, "difference (kproto | real):", each.difference, sep="\n  ")
    print(f"{arguments.histories} histories, {line_count} requests and responses, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
