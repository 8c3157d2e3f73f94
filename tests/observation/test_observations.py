"""Observations count the requests of clients: by open connection, and in a snapshot by client id and software."""

from __future__ import annotations

import threading

import pytest

from kproto import registry
from kproto.declaration import fields_of
from kproto.message import Response
from kproto.messages import APIS
from kproto.messages.k01_fetch import FetchResponse
from kproto.messages.k08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kproto.messages.k12_heartbeat import HeartbeatResponse
from kproto.messages.k15_describe_groups import DescribedGroup, DescribeGroupsResponse
from kproto_server.observation.error_codes import error_codes
from kproto_server.observation.observe import CLIENT_IDS_MAX, OTHER_REASONS, OTHERS, REASONS_MAX, Observations
from kproto_server.observation.observed import ClientSeen, ClosedSeen, CommitsSeen, ErrorsSeen, RequestsSeen
from kproto_server.requests.context import ConnectionInfo

API_VERSIONS = 18
OFFSET_COMMIT = 8


@pytest.fixture
def observations() -> Observations:
    return Observations()


def connection(software: str = "", version: str = "") -> ConnectionInfo:
    return ConnectionInfo("/127.0.0.1", software_name=software, software_version=version)


def only_client(observations: Observations) -> ClientSeen:
    (client,) = observations.snapshot().clients
    return client


def commit_response(*error_codes: int) -> OffsetCommitResponse:
    partitions = tuple(
        OffsetCommitResponsePartition(partition_index=index, error_code=code) for index, code in enumerate(error_codes)
    )
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=partitions),))


def test_requests_are_counted_by_api_and_version(observations: Observations) -> None:
    info = connection()
    observations.request(info, "app", OFFSET_COMMIT, 3)
    observations.repeated(info, "app", OFFSET_COMMIT, 3, None, -1).count += 16
    observations.request(info, "app", OFFSET_COMMIT, 2)
    observations.request(info, "app", 3, 5)

    assert only_client(observations).requests == (
        RequestsSeen(3, 5, 1),
        RequestsSeen(OFFSET_COMMIT, 2, 1),
        RequestsSeen(OFFSET_COMMIT, 3, 17),
    )


def test_requests_before_the_software_is_known_count_for_that_software(observations: Observations) -> None:
    info = connection()
    observations.request(info, "app", API_VERSIONS, 3)
    info.software_name, info.software_version = "apache-kafka-java", "4.3.1"
    observations.request(info, "app", 3, 12)

    client = only_client(observations)
    assert (client.software_name, client.software_version) == ("apache-kafka-java", "4.3.1")
    assert [row.api_key for row in client.requests] == [3, API_VERSIONS]


def test_one_client_id_with_two_kinds_of_software_is_two_clients(observations: Observations) -> None:
    observations.request(connection("librdkafka", "2.5.0"), "app", 3, 12)
    observations.request(connection("apache-kafka-java", "4.3.1"), "app", 3, 13)

    assert [client.software_name for client in observations.snapshot().clients] == ["apache-kafka-java", "librdkafka"]


def test_open_and_closed_connections_of_one_software_are_one_client(observations: Observations) -> None:
    closed, still_open = connection("librdkafka", "2.5.0"), connection("librdkafka", "2.5.0")
    observations.request(closed, "app", OFFSET_COMMIT, 4)
    observations.commit_layout(closed, "app", 4, "v4 as released", 5000)
    observations.disconnected(closed)
    observations.request(still_open, "app", OFFSET_COMMIT, 4)
    observations.commit_layout(still_open, "app", 4, "v4 as released", 3000)

    client = only_client(observations)
    assert client.requests == (RequestsSeen(OFFSET_COMMIT, 4, 2),)
    assert client.commits == (CommitsSeen(4, "v4 as released", 2, 2),)
    assert client.largest_retention_ms == 5000


def test_a_client_negotiates_if_any_of_its_connections_sent_api_versions(observations: Observations) -> None:
    first, second = connection(), connection()
    observations.request(first, "app", API_VERSIONS, 0)
    observations.disconnected(first)
    observations.request(second, "app", OFFSET_COMMIT, 3)
    observations.request(second, "old", OFFSET_COMMIT, 2)

    assert {client.client_id: client.negotiates for client in observations.snapshot().clients} == {
        "app": True,
        "old": False,
    }


def test_a_client_whose_api_versions_closed_the_connection_negotiates(observations: Observations) -> None:
    observations.closed(connection(), "app", API_VERSIONS, 3, "not served")

    assert only_client(observations).negotiates


def test_a_connection_that_is_reported_as_closed_twice_counts_once(observations: Observations) -> None:
    info = connection()
    observations.request(info, "app", 3, 5)
    observations.disconnected(info)
    observations.disconnected(info)

    assert only_client(observations).requests == (RequestsSeen(3, 5, 1),)


def test_only_overrides_other_than_minus_one_count(observations: Observations) -> None:
    info = connection()
    observations.commit_layout(info, "app", 3, "v3", -1)
    assert observations.snapshot().largest_retention_ms is None

    observations.commit_layout(info, "app", 3, "v3", 0)
    client = only_client(observations)
    assert client.commits == (CommitsSeen(3, "v3", 2, 1),)
    assert client.largest_retention_ms == 0


def test_the_largest_override_is_recorded_by_client_and_overall(observations: Observations) -> None:
    info = connection()
    for client_id, retention_time_ms in (("a", 10), ("b", 70), ("a", 60), ("a", 20)):
        observations.commit_layout(info, client_id, 2, "v2", retention_time_ms)

    snapshot = observations.snapshot()
    assert [client.largest_retention_ms for client in snapshot.clients] == [60, 70]
    assert snapshot.largest_retention_ms == 70


def test_errors_are_counted_for_each_field_that_has_one(observations: Observations) -> None:
    info = connection()
    observations.errors(info, "app", OFFSET_COMMIT, 3, error_codes(commit_response(0, 3, 3, 12)))
    observations.errors(info, "app", OFFSET_COMMIT, 3, error_codes(commit_response(0, 0)))

    assert only_client(observations).errors == (ErrorsSeen(OFFSET_COMMIT, 3, 3, 2), ErrorsSeen(OFFSET_COMMIT, 3, 12, 1))


def test_frames_that_closed_the_connection_are_counted_with_the_reason(observations: Observations) -> None:
    info = connection()
    observations.closed(info, "", -1, -1, "a frame of 3 bytes")
    observations.closed(info, "", -1, -1, "a frame of 3 bytes")

    assert only_client(observations).closed == (ClosedSeen(-1, -1, "a frame of 3 bytes", 2),)


def test_the_number_of_client_ids_is_bounded(observations: Observations) -> None:
    for connections in range(3):
        info = connection()
        for number in range(CLIENT_IDS_MAX):
            observations.request(info, f"app-{connections}-{number}", 3, 5)
        observations.disconnected(info)

    clients = {client.client_id: client for client in observations.snapshot().clients}
    assert len(clients) == CLIENT_IDS_MAX + 1
    assert clients[OTHERS].requests == (RequestsSeen(3, 5, 2 * CLIENT_IDS_MAX),)


def test_the_number_of_reasons_is_bounded(observations: Observations) -> None:
    info = connection()
    for number in range(REASONS_MAX + 5):
        observations.closed(info, "app", 3, 5, f"reason {number}")

    closed = only_client(observations).closed
    assert len(closed) == REASONS_MAX + 1
    assert ClosedSeen(-1, -1, OTHER_REASONS, 5) in closed


def test_reset_removes_counts_but_open_connections_still_negotiate(observations: Observations) -> None:
    info = connection()
    observations.request(info, "app", API_VERSIONS, 3)
    observations.closed(connection(), "other", 3, 5, "gone")
    observations.reset()
    assert observations.snapshot().clients == ()

    observations.request(info, "app", 3, 5)
    client = only_client(observations)
    assert client.requests == (RequestsSeen(3, 5, 1),)
    assert client.negotiates


def test_a_snapshot_does_not_change(observations: Observations) -> None:
    info = connection()
    observations.request(info, "app", 3, 5)
    before = observations.snapshot()
    observations.request(info, "app", 3, 5)

    assert before.clients[0].requests == (RequestsSeen(3, 5, 1),)


def test_snapshots_from_another_thread_count_each_request_once(observations: Observations) -> None:
    connection_count = 300
    totals: list[int] = []

    def feed() -> None:
        for _ in range(connection_count):
            info = connection()
            observations.request(info, "app", 3, 5)
            observations.disconnected(info)

    feeder = threading.Thread(target=feed)
    feeder.start()
    while feeder.is_alive():
        totals += [row.count for client in observations.snapshot().clients for row in client.requests]
    feeder.join()
    totals.append(only_client(observations).requests[0].count)

    assert totals == sorted(totals)
    assert totals[-1] == connection_count


def test_a_connection_that_ends_does_not_wait_for_a_snapshot(observations: Observations) -> None:
    """The snapshot of 10,000 connections takes 100 ms."""
    infos = [connection(), connection()]
    for info in infos:
        observations.request(info, "app", 3, 5)
    ended: list[bool] = []

    class Ending(ConnectionInfo):
        @property
        def software_name(self) -> str:  # the snapshot reads it
            ending = threading.Thread(target=lambda: [*map(observations.disconnected, infos)], daemon=True)
            ending.start()
            ending.join(10)
            ended.append(not ending.is_alive())
            return ""

        @software_name.setter
        def software_name(self, value: str) -> None: ...

    observations.request(Ending("/127.0.0.1"), "app", 3, 5)
    assert only_client(observations).requests == (RequestsSeen(3, 5, 3),)
    assert ended[0]
    assert only_client(observations).requests == (RequestsSeen(3, 5, 3),)


def test_error_codes_are_found_at_every_depth_in_wire_order() -> None:
    group = DescribedGroup(error_code=16, group_id="g", group_state="", protocol_type="", protocol_data="", members=())
    assert error_codes(DescribeGroupsResponse(groups=(group, group.replace(error_code=0), group))) == [16, 16]
    assert error_codes(HeartbeatResponse(error_code=27)) == [27]
    assert error_codes(HeartbeatResponse(error_code=0)) == []
    assert error_codes(FetchResponse(error_code=70, responses=())) == [70]


@pytest.mark.parametrize("api_key", APIS)
def test_every_error_code_field_of_every_response_is_read(api_key: int) -> None:
    response, expected = filled(registry.response_class(api_key), 1)
    assert isinstance(response, Response)
    assert error_codes(response) == list(range(1, expected))


def filled(cls: type[object], number: int) -> tuple[object, int]:
    """Return a value with one element in each array and error codes from ``number`` on, and the next number."""
    values: dict[str, object] = {}
    for field in fields_of(cls):  # type: ignore[arg-type]  # only message classes come here
        struct = field.type.struct or (field.type.element.struct if field.type.element else None)
        if field.name.endswith("error_code"):
            values[field.name] = number
            number += 1
        elif struct is not None:
            inner, number = filled(struct, number)
            values[field.name] = inner if field.type.kind == "struct" else (inner,)
        else:
            values[field.name] = field.default
    return cls(**values), number
