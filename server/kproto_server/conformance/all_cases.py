"""Run a client in many cases, several at once: first without a fault, whose time the others are compared with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kproto.errors import KprotoError
from kproto_server.conformance.cases import NO_FAULT
from kproto_server.conformance.client_run import run_case
from kproto_server.conformance.reports import ClientReport
from kproto_server.conformance.verdict import Grade, verdict_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.conformance.cases import ClientCase
    from kproto_server.conformance.verdict import Verdict


class ClientDoesNotCopy(KprotoError):
    """The client does not copy the records even if nothing is wrong; the text is one line for the user."""


def run_cases(
    cases: Sequence[ClientCase],
    command: Sequence[str],
    *,
    jobs: int,
    timeout_s: float,
    on_verdict: Callable[[Verdict, int], object] = lambda _verdict, _left: None,
) -> ClientReport:
    """Run a client in all cases, ``jobs`` at once; return the verdicts in the order of the cases.

    ``on_verdict`` is called with each verdict, in that order, and with the number of cases that are left.

    Raises:
        ClientNotStarted: the command cannot be executed.
        ClientDoesNotCopy: without a fault, it does not do what all cases build on.
    """
    first = run_case(NO_FAULT, command, timeout_s=timeout_s)
    without_fault = verdict_on(NO_FAULT, first.seen, first.seen.seconds)
    if without_fault.grade is not Grade.PASS:
        raise ClientDoesNotCopy(
            f"without any fault: {without_fault.reason}. It has to copy KPROTO_TOPIC to KPROTO_OUTPUT_TOPIC in the "
            "group KPROTO_GROUP, to commit, and to run until SIGTERM"
        )

    def verdict_of(case: ClientCase) -> Verdict:
        if case is NO_FAULT:
            return without_fault
        return verdict_on(case, run_case(case, command, timeout_s=timeout_s).seen, first.seen.seconds)

    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(jobs) as pool:
        for verdict in pool.map(verdict_of, cases):
            verdicts.append(verdict)
            on_verdict(verdict, len(cases) - len(verdicts))
    return ClientReport(first.client or command[0], command, verdicts)
