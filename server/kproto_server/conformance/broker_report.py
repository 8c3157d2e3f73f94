"""Run cases against a broker, and compare its responses with those of a release: a report of verdicts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kproto_server.conformance.broker_cases import API_VERSIONS, BROKER_CASES
from kproto_server.conformance.broker_expectations import differences, expectations, nearest_release
from kproto_server.conformance.broker_run import BrokerUnderTest
from kproto_server.conformance.cases import ClientCase
from kproto_server.conformance.reports import ClientReport
from kproto_server.conformance.verdict import Grade, Seen, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.conformance.broker_case import BrokerCase


def run_on_broker(
    cases: Sequence[BrokerCase], host: str, port: int, *, release: str | None, timeout_s: float
) -> ClientReport:
    """Send all cases to a broker; return a verdict for each.

    ``release``: one of `expectations`; None: the one whose ApiVersions response is most like the broker's.

    Raises:
        BrokerNotUsable: the broker cannot be reached, or lacks what all cases build on.
    """
    verdicts = []
    with BrokerUnderTest(host, port, timeout_s) as broker:
        if release is None:
            release = nearest_release(broker.responses(BROKER_CASES[API_VERSIONS]))
        for case in cases:
            start = time.monotonic()
            responses = broker.responses(case)
            expected = expectations()[release].get(case.name, {})
            both = len(expected.keys() & responses.keys())
            found = differences(expected, responses)
            reason = f"{len(found)} of {both} responses differ from {release}" if found else ""
            grade = Grade.FAIL if found else Grade.PASS
            if not both:
                grade, reason = Grade.NOT_OFFERED, f"the broker and {release} share no version of this request"
            seen = Seen(both, seconds=time.monotonic() - start, requests=found)
            shown = ClientCase(case.name, case.text, case.shown_reference)
            verdicts.append(Verdict(shown, grade, reason, seen))
    return ClientReport(f"{host}:{port} as Kafka {release}", (), verdicts, "broker")
