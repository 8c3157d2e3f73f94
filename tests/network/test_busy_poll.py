"""Looking some more times before a sleep: when, and how often."""

from __future__ import annotations

import os

import pytest

from kproto_server.network.busy_poll import POLLS, BusyPoll, useful_polls

READY = [(7, 1)]


class Sockets:
    """Something is ready at these looks, counted from 0; notes for how long each look may take."""

    def __init__(self, *ready_at: int) -> None:
        self._ready_at = ready_at
        self.waits: list[float | None] = []

    def poll(self, timeout_s: float | None) -> list[tuple[int, int]]:
        self.waits.append(timeout_s)
        return READY if len(self.waits) - 1 in self._ready_at else []


def test_nobody_looks_before_something_has_come() -> None:
    sockets = Sockets()
    busy_poll = BusyPoll(sockets.poll, 3)
    assert busy_poll.wait(1.5) == busy_poll.wait(None) == []
    assert sockets.waits == [1.5, None]


def test_what_comes_soon_after_is_found_without_a_sleep() -> None:
    sockets = Sockets(0, 2, 5)
    busy_poll = BusyPoll(sockets.poll, 3)
    assert [busy_poll.wait(None) for _ in range(3)] == [READY] * 3
    assert sockets.waits == [None, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_a_sleep_comes_after_so_many_looks_and_then_another_at_once() -> None:
    sockets = Sockets(0)
    busy_poll = BusyPoll(sockets.poll, 3)
    assert [busy_poll.wait(2.0) for _ in range(3)] == [READY, [], []]
    assert sockets.waits == [2.0, 0.0, 0.0, 0.0, 2.0, 2.0]


def test_who_may_not_wait_looks_once() -> None:
    sockets = Sockets(0)
    busy_poll = BusyPoll(sockets.poll, 3)
    assert [busy_poll.wait(0.0) for _ in range(2)] == [READY, []]
    assert sockets.waits == [0.0, 0.0]


@pytest.mark.parametrize(("cpus", "looks"), [({0}, 0), ({0, 3}, POLLS)])
def test_with_one_processor_nobody_looks(cpus: set[int], looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cpus, raising=False)
    assert useful_polls() == looks
