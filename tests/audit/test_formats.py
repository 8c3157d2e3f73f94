"""Each format of the request log is read: the recorded logs of real brokers, and lines that are none.

Method. What a reader returns of each recorded log is compared with what its program sent, and with the text itself.
"""

from __future__ import annotations

import pytest

from kproto_server.audit.log_lines import COMPLETED, LoggedRequest, logged_request
from kproto_server.audit.request_log import CONNECTIONS_MAX, WAITING_MAX
from kproto_server.audit.sources import Sources
from kproto_server.observation.observed import CommitsSeen, Snapshot
from tests.audit.recorded import CLIENTS, LEVELS, TEXT_FORMATS, log_of

RETENTION_MS = 2 * 24 * 60 * 60 * 1000
OFFSET_COMMIT, JOIN_GROUP = 8, 11
NOT_COORDINATOR, MEMBER_ID_REQUIRED = 16, 79
HAS_SOFTWARE = ["2.7.2", "2.8.2", "3.9.2", "4.4.0"]

TEXT = (
    "[2026-11-23 21:00:00,000] DEBUG Completed request:RequestHeader(apiKey={api}, apiVersion={version}, "
    "clientId={client}, correlationId=4) -- {body},response:{{}} from connection 10.0.0.1:9092-10.0.0.2:{port}-0;"
    "totalTime:0.5,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT (kafka.request.logger)\n"
)


def line(
    api: str = "METADATA", version: int = 4, client: str = "app", body: str = "{topics=[]}", port: int = 40000
) -> bytes:
    return TEXT.format(api=api, version=version, client=client, body=body, port=port).encode()


def read(*lines: bytes) -> Sources:
    sources = Sources()
    for each in lines:
        sources.log.read(each)
    return sources


def recorded(release: str) -> tuple[Sources, Snapshot]:
    log = read(*log_of(release).read_bytes().splitlines(keepends=True))
    return log, log.end()


def requests(release: str) -> list[LoggedRequest]:
    lines = log_of(release).read_text().splitlines()
    found = [logged_request(each) for each in lines if COMPLETED.decode() in each]
    return [request for request in found if request is not None]


class TestRecordedLogs:
    @pytest.mark.parametrize("release", LEVELS)
    def test_each_request_of_a_recorded_log_is_read(self, release: str) -> None:
        log, _ = recorded(release)
        assert log.log.unreadable_count == 0
        completed = log_of(release).read_bytes().count(COMPLETED)
        assert log.request_count + log.broker_request_count == completed == log.log.completed_count > 30
        assert log.log.other_line_count == log.log.line_count - completed > 0
        assert log.log.has_text is (release in TEXT_FORMATS)

    @pytest.mark.parametrize("release", LEVELS)
    def test_requests_of_brokers_and_controllers_are_left_out(self, release: str) -> None:
        log, seen = recorded(release)
        assert {client.client_id for client in seen.clients} == {*CLIENTS, "oracle"}
        assert log.broker_request_count >= 2

    @pytest.mark.parametrize("release", LEVELS)
    def test_retention_overrides_are_read(self, release: str) -> None:
        _, seen = recorded(release)
        archive = next(client for client in seen.clients if client.client_id == "archive")
        layouts = {2: "v2", 3: "v3", 4: "v4 as released"}
        sent = [row.api_version for row in archive.requests if row.api_key == OFFSET_COMMIT]
        assert archive.commits == tuple(CommitsSeen(version, layouts[version], 1, 1) for version in sent) != ()
        assert archive.largest_retention_ms == seen.largest_retention_ms == RETENTION_MS
        assert not archive.negotiates

    @pytest.mark.parametrize("release", LEVELS)
    def test_software_of_clients_is_read_from_2_4_on(self, release: str) -> None:
        _, seen = recorded(release)
        software = {client.client_id: client.software_name for client in seen.clients}
        known = release in HAS_SOFTWARE
        assert software["warehouse"] == ("kafka-python" if known else "")
        assert software["billing"] == ("confluent-kafka-python" if known else "")
        assert software["archive"] == ""

    @pytest.mark.parametrize("release", HAS_SOFTWARE)
    def test_errors_of_responses_are_read(self, release: str) -> None:
        _, seen = recorded(release)
        errors = {(client.client_id, row.api_key, row.error_code) for client in seen.clients for row in client.errors}
        # The excerpt has the first of several JoinGroups.
        assert errors & {("warehouse", JOIN_GROUP, code) for code in (NOT_COORDINATOR, MEMBER_ID_REQUIRED)}

    @pytest.mark.parametrize("release", LEVELS)
    def test_a_cut_line_is_counted_and_does_not_stop_the_audit(self, release: str) -> None:
        whole = next(each for each in log_of(release).read_bytes().splitlines() if COMPLETED in each)
        log = read(*(whole[:size] for size in range(len(whole)) if COMPLETED in whole[:size]))
        assert log.log.unreadable_count > 0
        assert log.log.unreadable_count + log.log.completed_count == log.log.line_count

    @pytest.mark.parametrize("release", HAS_SOFTWARE)
    def test_clients_that_began_before_the_log_negotiate_if_their_software_is_known(self, release: str) -> None:
        later = [each for each in log_of(release).read_bytes().splitlines() if b"API_VERSIONS" not in each]
        assert {client.client_id: client.negotiates for client in read(*later).end().clients} == {
            "oracle": False,
            **{name: name != "archive" for name in CLIENTS},
        }

    def test_a_forwarded_request_counts_once(self) -> None:
        forwarded = [request for request in requests("4.4.0") if request.is_forwarded]
        assert [(request.client_id, request.api_key) for request in forwarded] == [("administration", 19)]
        _, seen = recorded("4.4.0")
        admin = next(client for client in seen.clients if client.client_id == "administration")
        assert [row.count for row in admin.requests if row.api_key == 19] == [1]


class TestLines:
    def test_lines_without_a_request_are_counted(self) -> None:
        log = read(b"\n", b"[2026] INFO started (kafka.server.KafkaServer)\n", line())
        assert (log.log.line_count, log.log.other_line_count, log.request_count) == (3, 2, 1)

    @pytest.mark.parametrize(
        "text",
        [
            b"Completed request:",
            b"Completed request:{",
            b'Completed request:{"requestHeader":1}',
            b'Completed request:{"requestHeader":{"requestApiKey":null}}',
            b'Completed request:{"a":' + b"[" * 100_000,
            b"Completed request:Name: Other; Version: 1; CorrelationId: 1; ClientId: a; B from connection c;totalTime:",
            line("NO_SUCH_API"),
        ],
        ids=range(7),
    )
    def test_requests_that_cannot_be_read_are_counted(self, text: bytes) -> None:
        log = read(text)
        assert (log.log.unreadable_count, log.request_count) == (1, 0)

    def test_a_client_without_client_id_has_an_empty_one(self) -> None:
        (client,) = read(line(client="null")).end().clients
        assert client.client_id == ""

    def test_former_names_of_apis_are_known(self) -> None:
        request = logged_request(line("ELECT_PREFERRED_LEADERS").decode())
        assert request is not None
        assert request.api_key == 43

    def test_only_a_retention_of_an_offset_commit_counts(self) -> None:
        body = "{group_id=a,generation_id=1,member_id=,retention_time=5000,topics=[]}"
        (client,) = read(line("OFFSET_COMMIT", 3, body=body), line(body=body)).end().clients
        assert client.commits == (CommitsSeen(3, "v3", 1, 1),)


class TestBrokers:
    def test_a_followers_connection_is_left_out_with_its_api_versions(self) -> None:
        log = read(
            line("API_VERSIONS", 0, "broker-1-fetcher-0"), line("FETCH", 8, body="{replica_id=1,max_wait_time=5}")
        )
        assert (log.request_count, log.broker_request_count) == (0, 2)

    def test_a_follower_that_begins_with_offset_for_leader_epoch_is_left_out(self) -> None:
        """As on 2.0.1, whose followers negotiate by inter.broker.protocol.version."""
        epochs = line("OFFSET_FOR_LEADER_EPOCH", 1, "broker-1-fetcher-0", "{topics=[]}")
        log = read(epochs, line("FETCH", 8, body="{replica_id=1,max_wait_time=5}"), epochs)
        assert (log.end().clients, log.broker_request_count) == ((), 3)

    def test_a_consumers_offset_for_leader_epoch_counts(self) -> None:
        log = read(line(), line("OFFSET_FOR_LEADER_EPOCH", 1, body="{topics=[]}"))
        assert (log.request_count, log.broker_request_count) == (2, 0)

    def test_a_consumers_fetch_counts(self) -> None:
        log = read(line("API_VERSIONS", 0), line("FETCH", 8, body="{replica_id=-1,max_wait_time=5}"))
        assert (log.request_count, log.broker_request_count) == (2, 0)

    def test_a_clients_connection_stays_one_after_a_request_as_brokers_send_it(self) -> None:
        """Admin.abortTransaction sends WriteTxnMarkers."""
        log = read(line(), line("WRITE_TXN_MARKERS", 0), line())
        assert (log.request_count, log.broker_request_count) == (2, 1)

    def test_connections_with_api_versions_alone_count_at_the_end(self) -> None:
        log = read(line("API_VERSIONS", 0))
        assert log.request_count == 0
        (client,) = log.end().clients
        assert (log.request_count, client.negotiates) == (1, True)


class TestLimits:
    def test_the_number_of_connections_is_limited(self) -> None:
        lines = [line("API_VERSIONS", 0, port=port) for port in range(CONNECTIONS_MAX + 10)]
        log = read(*lines)
        assert log.request_count == 10
        (client,) = log.end().clients
        assert [row.count for row in client.requests] == [len(lines)]

    def test_the_number_of_waiting_requests_is_limited(self) -> None:
        log = read(*[line("API_VERSIONS", 0)] * (WAITING_MAX + 3))
        assert log.request_count == 3
        log.end()
        assert log.request_count == WAITING_MAX + 3
