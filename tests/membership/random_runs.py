"""Random scripts, run against a real broker and then against kproto.

The time that passes between the requests to the real broker passes with kproto, too, so that sessions and intervals end
between the same requests, however busy the machine is. The real broker has handled a request at some time between the
request and the response, which matters if it takes long: kproto runs with the times of the requests and, if the
responses differ, with those of the responses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from kproto_server.state import BrokerState
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import Step, Transport, differences
from tests.membership.socket_transport import RESPONSE_LIMIT_S, SocketTransport

AT_ONCE = 4
"""Scripts at the same time; much of their time is waiting."""

Run = Callable[[Transport], Sequence[Step]]
"""Runs a script, and returns its transcript."""


class _Recorded(NamedTuple):
    steps: Sequence[Step]
    times_ms: tuple[Mapping[str, Sequence[int]], ...]
    """Times of the requests, and of the responses."""


def compare(
    runs: Mapping[str, Run],
    address: str,
    new_state: Callable[[], BrokerState],
    is_allowed: Callable[[Step, Step], bool] = lambda ours, theirs: False,
) -> int:
    """Print how kproto differs from a real broker; return how many transcripts differ.

    Args:
        new_state: returns the state of a kproto broker, on a virtual clock.
        is_allowed: returns whether both steps are correct, of which the first is kproto's (DEVIATIONS).
    """
    different = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, theirs in zip(runs, pool.map(lambda run: _on_broker(address, run), runs.values()), strict=True):
            found = [
                _differences(runs[name](InMemoryTransport(new_state(), times_ms)), theirs.steps, is_allowed)
                for times_ms in theirs.times_ms
            ]
            if all(found):
                different += 1
                print(name, *found[0], sep="\n", flush=True)
    return different


def _on_broker(address: str, run: Run) -> _Recorded:
    transport = SocketTransport(address, RESPONSE_LIMIT_S)
    try:
        return _Recorded(run(transport), (transport.sent_ms, transport.received_ms))
    finally:
        transport.close()


def _differences(ours: Sequence[Step], theirs: Sequence[Step], is_allowed: Callable[[Step, Step], bool]) -> list[str]:
    first = next((both for both in zip(ours, theirs, strict=False) if both[0] != both[1]), None)
    return [] if first is not None and is_allowed(*first) else differences(ours, theirs)
