"""The table of a connection's states, and its invariants under random traffic.

Method: Hypothesis sends requests of all kinds in random pieces, syncs the log, ends long polls and proceeds, in any
order. After each step the connection's queues must be as the table of invariants in `connection_state` says.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kproto.headers import request_frame
from kproto_server.connection.connection import Connection
from kproto_server.connection.connection_state import (
    BACKLOGGED,
    BLOCKED,
    CLOSED,
    CLOSING,
    DEFERRED,
    DELAYED,
    DRAINING,
    READY,
    TRANSITIONS,
    Event,
    State,
)
from kproto_server.connection.dispatcher import Dispatcher
from kproto_server.network.transport import INTEREST
from kproto_server.observation.observe import Observations
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, commit_request, new_state
from tests.coordinator.change_logs import RecordingLog
from tests.requests.connections import HTTP, frames, ids, list_groups, long_poll

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[int], bytes]

QUEUES = {
    READY: (False, False, False),
    DELAYED: (None, False, True),
    DEFERRED: (False, True, False),
    BLOCKED: (None, True, False),
    BACKLOGGED: (True, False, False),
    DRAINING: (None, True, False),
    CLOSING: (None, False, False),
}
"""Whether backlog, deferred responses and a delayed operation exist; None: both are possible."""


def commit(number: int) -> bytes:
    return request_frame(commit_request("g", {"t": {0: number}}), 5, correlation_id=number, client_id="c")


def broken_commit(number: int) -> bytes:
    """A commit whose body is truncated: the broker closes the connection for it."""
    body = commit(number)[4:-6]
    return len(body).to_bytes(4, "big") + body


REQUESTS: dict[str, Make] = {"commit": commit, "list_groups": list_groups, "long_poll": long_poll}
LAST: dict[str, Make] = {"broken commit": broken_commit, "frame too large": lambda _: HTTP}


def assert_invariants(connection: Connection) -> None:
    found = (bool(connection.backlog), bool(connection.pending), connection.delayed is not None)
    for expected, is_there in zip(QUEUES[connection.state], found, strict=True):
        assert expected is None or expected == is_there, (connection.state, found)


def test_every_state_can_be_reached_and_left() -> None:
    assert set(TRANSITIONS) == set(State)
    reached, previous = {READY}, set[State]()
    while reached != previous:
        previous = set(reached)
        reached |= {state for before in previous for state in TRANSITIONS[before].values()}
    assert reached == set(State)
    assert all(transitions[Event.ABANDON] is CLOSED for transitions in TRANSITIONS.values())


def test_a_closed_connection_stays_closed_and_a_failed_one_handles_no_request() -> None:
    assert set(TRANSITIONS[CLOSED].values()) == {CLOSED}
    for state in (DRAINING, CLOSING):
        assert set(TRANSITIONS[state].values()) <= {DRAINING, CLOSING, CLOSED}


def test_the_transport_knows_what_to_watch_in_each_state() -> None:
    assert set(INTEREST) | {DELAYED, CLOSING, CLOSED} == set(State)


@pytest.mark.parametrize("caches_commits", [True, False])
@settings(max_examples=50)
@given(
    kinds=st.lists(st.sampled_from(sorted(REQUESTS)), max_size=40),
    last=st.sampled_from([None, *LAST]),
    steps=st.lists(st.just(0) | st.integers(1, 300), min_size=1, max_size=50).filter(any),
)
def test_queues_are_as_the_state_says_and_each_request_has_its_response_in_order(
    kinds: list[str], last: str | None, steps: list[int], caches_commits: bool
) -> None:
    """A step reads some bytes, or 0: it reads nothing. The steps are repeated until everything is read."""
    state = new_state()
    log = RecordingLog(waits=True)
    state.coordinator.log = log
    dispatcher = Dispatcher(state, Observations(), caches_commits=caches_commits)
    connection = Connection(dispatcher, state.cluster.nodes[1], ConnectionInfo("/127.0.0.1"))
    unread = b"".join(REQUESTS[kind](number) for number, kind in enumerate(kinds, 1))
    if last is not None:
        unread += LAST[last](len(kinds) + 1)
    found: list[int] = []

    def take(responses: bytes) -> None:
        found.extend(ids(frames(responses)))
        assert_invariants(connection)

    def run() -> None:
        """Do what the transport does when there is nothing to read."""
        if connection.delayed is not None:
            take(connection.resume(NOW_MS))
        else:
            log.settle()
            dispatcher.take_runnable()
            take(connection.proceed(NOW_MS))

    for size in cycle(steps):
        if not unread or connection.state is CLOSING:
            break
        if size:
            take(connection.receive(unread[:size], NOW_MS))
            unread = unread[size:]
        else:
            run()
    while connection.state not in (READY, CLOSING):
        run()

    assert found == list(range(1, len(kinds) + 1))
    assert connection.state == (READY if last is None else CLOSING)
    connection.abandon()
    assert connection.state.name == "CLOSED"
