"""Run the cases of KIP-842 and KIP-333 against a real Kafka: `python -m tests.kproto_client RELEASE [PART_OF_A_NAME]`.

Needs Java and Maven. Prints a line for each case; exits with 1 if one fails.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.kproto_client.cases import CASES
from tests.kproto_client.kafka_side import KafkaSide
from tests.oracle.cluster import NEWEST, real_kafka


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kproto_client", description=__doc__)
    parser.add_argument("release", nargs="?", default=NEWEST, help="x.y.z of a Kafka release")
    parser.add_argument("part", nargs="?", default="", help="run only the cases whose name has this in it")
    arguments = parser.parse_args()
    with real_kafka(arguments.release) as cluster:
        return run(KafkaSide(cluster.bootstrap), arguments.part)


def run(kafka: KafkaSide, part: str) -> int:
    failed = 0
    for name, (case, parameters) in CASES.items():
        if part not in name:
            continue
        begun = time.monotonic()
        try:
            case(kafka, *parameters)
        except Exception:  # noqa: BLE001 - each case's failure is told, and the next one runs
            failed += 1
            traceback.print_exc()
            print(f"FAILED  {name}", flush=True)
        else:
            print(f"{time.monotonic() - begun:6.2f} s  {name}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
