"""A connection delays requests, limits the size of its responses and survives defects of the broker."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from kproto.headers import read_response, request_frame
from kproto.messages.k01_fetch import FetchResponse
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server import handlers
from kproto_server.connection.connection import RESPONSES_SIZE_MAX_BYTES, Connection
from kproto_server.deferred import CloseConnection, DelayedOperation
from kproto_server.requests.context import ConnectionInfo
from tests.coordinator.broker_state import NOW_MS, commit_request
from tests.requests.connections import (
    HTTP,
    LIST_GROUPS,
    MAX_WAIT_MS,
    closed,
    frames,
    ids,
    list_groups,
    long_poll,
    metadata,
    new_connection,
    receive,
)

if TYPE_CHECKING:
    from kproto.message import Request


# Delayed operations.


def test_a_delayed_fetch_blocks_later_requests_and_its_response_keeps_the_order() -> None:
    """BA-8, BA-71."""
    connection = new_connection()

    assert ids(receive(connection, list_groups(1) + long_poll(2) + list_groups(3) + metadata(4))) == [1]
    assert connection.delayed is not None
    assert connection.deadline_ms == NOW_MS + MAX_WAIT_MS
    assert receive(connection, list_groups(5)) == [], "requests that arrive later wait too"

    responses = frames(connection.resume(NOW_MS + MAX_WAIT_MS))

    assert ids(responses) == [2, 3, 4, 5]
    _, response = read_response(responses[0], FetchResponse, 4)
    assert response.responses[0].partitions[0].error_code == 0
    assert connection.delayed is None


def test_a_second_long_poll_waits_from_the_end_of_the_first() -> None:
    """The connection reads the second request only then (BA-8)."""
    connection = new_connection()
    receive(connection, long_poll(1) + long_poll(2))

    assert ids(frames(connection.resume(NOW_MS + MAX_WAIT_MS))) == [1]
    assert connection.delayed is not None
    assert connection.deadline_ms == NOW_MS + 2 * MAX_WAIT_MS


def test_invalid_bytes_after_a_delayed_request_close_after_its_response() -> None:
    """The connection does not read the bytes before that (BA-8)."""
    connection = new_connection()

    assert receive(connection, long_poll(1) + HTTP) == []
    assert connection.close_reason is None
    assert ids(frames(connection.resume(NOW_MS + MAX_WAIT_MS))) == [1]
    assert connection.close_reason


# Limits.


def test_responses_wait_until_earlier_responses_are_taken() -> None:
    """One read can contain thousands of requests for all topics, whose responses together have no size limit."""
    connection = new_connection(topics=500)
    sent = b"".join(metadata(i) for i in range(400))

    responses = receive(connection, sent)

    largest = max(map(len, responses)) + 4
    assert RESPONSES_SIZE_MAX_BYTES <= sum(len(a) + 4 for a in responses) < RESPONSES_SIZE_MAX_BYTES + largest
    assert connection.backlog
    while connection.backlog:
        more = frames(connection.proceed(NOW_MS))
        assert more, "each call returns further responses"
        responses += more
    assert ids(responses) == list(range(400))


def test_invalid_bytes_after_a_backlog_close_after_its_responses() -> None:
    connection = new_connection(topics=500)
    responses = receive(connection, b"".join(metadata(i) for i in range(400)) + HTTP)

    while connection.close_reason is None:
        responses += frames(connection.proceed(NOW_MS))

    assert ids(responses) == list(range(400))


# Defects of the broker.


def with_handler(monkeypatch: pytest.MonkeyPatch, handle: Any) -> None:
    """Replace the handler of ListGroups."""
    real = handlers.handler
    monkeypatch.setattr(handlers, "handler", lambda api_key: handle if api_key == LIST_GROUPS else real(api_key))


def defective(*_: object) -> Any:
    raise ZeroDivisionError("a defect")


def wait_for_a_defect(request: Request, context: Any) -> Any:
    return DelayedOperation(context.now_ms + 1, lambda: defective(request, context))


def test_a_handler_that_fails_closes_its_connection_alone_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """BA-13."""
    with_handler(monkeypatch, defective)
    connection = new_connection()
    other = Connection(connection.dispatcher, connection.node, ConnectionInfo("/127.0.0.1"))

    with caplog.at_level(logging.ERROR, "kproto"):
        assert ids(receive(connection, metadata(1) + list_groups(2) + metadata(3))) == [1]

    assert connection.close_reason == "the broker failed on this request; its log says how"
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert record.getMessage() == "API key 16 version 0 from 'c'"
    assert ids(receive(other, metadata(1))) == [1]


def test_a_delayed_operation_that_fails_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The event loop, which serves all connections, gets no exception (BA-13)."""
    with_handler(monkeypatch, wait_for_a_defect)
    connection = new_connection()
    receive(connection, list_groups(1) + metadata(2))

    with caplog.at_level(logging.ERROR, "kproto"):
        assert connection.resume(NOW_MS + 1) == b""

    assert connection.close_reason == "the broker failed on this request; its log says how"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_response_that_cannot_be_encoded_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with_handler(monkeypatch, lambda request, context: MetadataResponse(brokers=(), topics=()))
    connection = new_connection()

    assert receive(connection, list_groups(1)) == []
    assert connection.close_reason == "the broker failed on this request; its log says how"
    assert len(caplog.records) == 1


def test_a_defect_of_the_commit_cache_closes_its_connection_after_the_responses_before_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The connection handles the exceptions of the commit cache (BA-13, D13)."""
    monkeypatch.setattr("kproto_server.commit_cache.template.RequestTemplate.counter", defective)
    connection = new_connection()
    commits = [request_frame(commit_request("g", {"t": {0: i}}), 5, correlation_id=i) for i in range(4)]

    assert ids(receive(connection, b"".join(commits))) == [0, 1]
    assert connection.close_reason == "the broker failed on this request; its log says how"
    assert len(caplog.records) == 1


def test_a_handler_may_close_without_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """The observations record a defect of the client; the broker logs no error (BA-6)."""

    def refuse(request: Request, context: Any) -> Any:
        raise CloseConnection("not like this")

    with_handler(monkeypatch, refuse)
    connection = new_connection()

    assert ids(receive(connection, metadata(1) + list_groups(2))) == [1]
    assert connection.close_reason == closed(connection).reason == "not like this"


def test_each_request_is_observed_with_its_version_and_error() -> None:
    connection = new_connection()
    unknown = MetadataRequest(topics=(MetadataRequestTopic(name="no-such"),), allow_auto_topic_creation=False)
    receive(connection, request_frame(unknown, 4, correlation_id=1, client_id="c"))
    receive(connection, request_frame(FindCoordinatorRequest(key="g"), 1, correlation_id=2, client_id="c"))

    (client,) = connection.dispatcher.observations.snapshot().clients

    assert [(seen.api_key, seen.api_version, seen.count) for seen in client.requests] == [(3, 4, 1), (10, 1, 1)]
    assert [(seen.api_key, seen.error_code) for seen in client.errors] == [(3, 3)]
