"""Run the cases of KIP-842 and KIP-333 against a real Kafka: `python -m tests.kproto_client RELEASE [PART_OF_A_NAME]`.

With the address of a broker, host:port, instead of a release, run them against this one. A release needs Java and
Maven. Prints one line per case; exits with 1 if a case fails.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Mapping

from tests.kproto_client.added_partition_cases import CASES_WITH_CONSUMER_PROTOCOL
from tests.kproto_client.cases import CASES
from tests.kproto_client.kafka_fixture import Case, KafkaFixture
from tests.oracle.cluster import NEWEST, real_kafka


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kproto_client", description=__doc__)
    parser.add_argument("release", nargs="?", default=NEWEST, help="Kafka release, x.y.z, or an address")
    parser.add_argument("part", nargs="?", default="", help="run only the cases whose name contains this text")
    arguments = parser.parse_args()
    if ":" in arguments.release:
        return run(KafkaFixture(arguments.release), CASES, arguments.part)
    further = CASES_WITH_CONSUMER_PROTOCOL if arguments.release.startswith("4") else {}
    with real_kafka(arguments.release) as cluster:
        return run(KafkaFixture(cluster.bootstrap), {**CASES, **further}, arguments.part)


def run(kafka: KafkaFixture, cases: Mapping[str, Case], part: str) -> int:
    failed = 0
    for name, (case, parameters) in cases.items():
        if part not in name:
            continue
        started = time.monotonic()
        try:
            case(kafka, *parameters)
        except Exception:  # noqa: BLE001 - print the failure and continue with the next case
            failed += 1
            traceback.print_exc()
            print(f"FAILED  {name}", flush=True)
        else:
            print(f"{time.monotonic() - started:6.2f} s  {name}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
