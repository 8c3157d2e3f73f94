"""Record what real brokers respond to the cases of `kproto conform broker`: RELEASE=HOST:PORT ...

Each address is a cluster of one broker that nothing else uses. The releases that are not named stay as recorded.
"""

from __future__ import annotations

import sys

from kproto_server.conformance import broker_expectations
from kproto_server.conformance.broker_cases import BROKER_CASES
from kproto_server.conformance.broker_run import BrokerUnderTest


def main() -> None:
    recorded = dict(broker_expectations.expectations()) if broker_expectations.PATH.exists() else {}
    for argument in sys.argv[1:]:
        release, _, address = argument.partition("=")
        host, _, port = address.rpartition(":")
        with BrokerUnderTest(host, int(port), 10.0) as broker:
            recorded[release] = {name: broker.responses(case) for name, case in BROKER_CASES.items()}
    broker_expectations.PATH.write_text(broker_expectations.lines(recorded), encoding="utf-8")


if __name__ == "__main__":
    main()
