"""OffsetCommit: decide, append, sync, apply, reply, and what a failed write leaves behind (OC-33 to OC-36)."""

from __future__ import annotations

import pytest

from kproto_server.deferred import DeferredResponse
from tests.coordinator.broker_state import ask, commit, commit_request, new_state
from tests.coordinator.change_logs import Appended, RecordingLog
from tests.server.handlers.commits import TOO_LONG, codes, offsets_of


def test_commit_is_one_batch_appended_synced_and_then_visible() -> None:
    """OC-33, OC-34, OS-25."""
    state = new_state()
    state.coordinator.log = log = RecordingLog(waits=True)
    response = ask(state, commit_request("g1", {"t": {0: 1, 2: 3}, "u": {0: 2}}), 5)
    assert log.appended == [Appended(42, "g1", [("t", 0, 1), ("t", 2, 3), ("u", 0, 2)], removes_group=False)]
    assert offsets_of(state, "g1") == {}
    assert isinstance(response, DeferredResponse)
    log.settle()
    assert offsets_of(state, "g1") == {"t": {0: 1, 2: 3}, "u": {0: 2}}


@pytest.mark.parametrize(("kafka_version", "expected"), [("3.9", 28), ("4.4", -1)])
def test_failed_write_changes_nothing(kafka_version: str, expected: int) -> None:
    """OC-35, OC-36, OS-24: the response has the mapped error, and the earlier offset remains."""
    state = new_state(kafka_version)
    commit(state, "g", {"t": {0: 1}})
    state.coordinator.log = RecordingLog(error=10)
    assert codes(ask(state, commit_request("g", {"t": {0: 2, 1: 3}}), 5)) == [("t", 0, expected), ("t", 1, expected)]
    assert offsets_of(state, "g") == {"t": {0: 1}}
    assert codes(ask(state, commit_request("new", {"t": {0: 2}}), 5)) == [("t", 0, expected)]
    assert state.coordinator.group("new") is None


def test_failed_write_is_no_excuse_for_other_errors() -> None:
    """OC-10 row 15: only what would have been written hears of it."""
    state = new_state("4.4")
    state.coordinator.log = RecordingLog(error=6)
    request = commit_request("g", {"nope": {0: 1}, "t": {0: (1, TOO_LONG), 1: 2}})
    assert codes(ask(state, request, 5)) == [("nope", 0, 3), ("t", 0, 12), ("t", 1, 16)]


def test_refused_commit_is_not_written() -> None:
    """OC-36."""
    state = new_state()
    state.coordinator.log = log = RecordingLog()
    ask(state, commit_request("g", {"t": {0: 1}}, generation_id_or_member_epoch=4, member_id="m"), 5)
    ask(state, commit_request("g", {"t": {0: (1, TOO_LONG)}}), 5)
    assert log.appended == []


def test_large_commit_gets_one_response() -> None:
    """OS-3: ten thousand partitions in one request."""
    state = new_state(topics={"t": 10_000})
    response = ask(state, commit_request("g", {"t": {index: index for index in range(10_000)}}), 5)
    assert codes(response) == [("t", index, 0) for index in range(10_000)]
    assert len(state.coordinator.offsets) == 10_000
