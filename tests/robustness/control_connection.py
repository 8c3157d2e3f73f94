"""A connection that commits and fetches all the time, and measures how much CPU time of the broker each request waits.

Method. The CPU clock of the broker's process is read before a request is sent and after its response has come. The
difference is what the broker did meanwhile, for this request and for others: unlike elapsed time, it does not depend on
how busy the machine is. While nothing else happens it is less than a millisecond. A wait of 100 ms means that other
connections held the broker for that long.

The broker has to be a process of its own: the clock counts all its threads.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, NamedTuple, Self

from kproto.message import Request
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto_server.releases.kafka_version import LATEST, KafkaVersion
from tests.coordinator.broker_state import commit_request
from tests.network.raw_client import RawClient
from tests.waiting import LIMIT_S, wait_until

NAME = "control"
"""The topic, the group and the client id of the control connection: others leave them alone."""
WAIT_MAX_CPU_S = 0.1
"""The longest wait that is fair."""
NEWEST_VERSIONS = {1: 4, 3: 1, 8: 2, 9: 1, 10: 0}
"""API key -> version of the requests, in releases that serve it; older releases: their newest version."""
START_ERRORS = frozenset((3, 5, 14, 15, 16))
"""UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE and three of the coordinator, while topics are being created."""


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, with all its threads."""
    return time.clock_gettime(~pid << 3 | 2)  # Linux: the clock that clock_getcpuclockid(3) returns


class Wait(NamedTuple):
    """One request of the control connection."""

    cpu_s: float = 0.0
    """CPU time of the broker between the request and its response."""
    elapsed_s: float = 0.0
    request: str = ""
    during: str = ""
    """What else was sent to the broker then, as the owner of the connection says."""

    def __str__(self) -> str:
        return f"{self.request} waited {self.cpu_s * 1000:.1f} ms of CPU ({self.elapsed_s * 1000:.0f} ms) {self.during}"


class ControlConnection:
    """A thread with one connection: OffsetCommit, OffsetFetch and Fetch in turn, until the end of the ``with`` block.

    Each response is checked: an error, an offset that was not committed, or the end of the connection is the `failure`.
    ``pause_s`` is between two requests: 0 keeps the broker busy.
    """

    def __init__(self, address: str, pid: int, *, release: str = LATEST, pause_s: float = 0.001) -> None:
        """``address``: HOST:PORT of the broker; ``pid``: its process."""
        self.during = ""
        """What is sent to the broker now; set by the owner at any time."""
        self.worst = Wait()
        """The longest wait so far."""
        self.request_count = 0
        self.failure: Exception | None = None
        """What ended the thread early."""
        self._address = address
        self._pid = pid
        self._pause_s = pause_s
        served = KafkaVersion.named(release).api_versions
        self._versions = {key: min(newest, served[key][1]) for key, newest in NEWEST_VERSIONS.items() if key in served}
        self._offset = 0
        self._is_stopping = threading.Event()
        self._has_started = threading.Event()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def __enter__(self) -> Self:
        """Return when the first requests have their responses."""
        self._thread.start()
        assert self._has_started.wait(LIMIT_S), "the control connection gets no responses"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End after the current request; may be called again."""
        self._is_stopping.set()
        self._thread.join(LIMIT_S)

    def wait_for_requests(self, count: int) -> None:
        """Wait until this many more requests have their responses, or the connection has failed."""
        wanted = self.request_count + count
        wait_until(lambda: self.failure is not None or self.request_count >= wanted, f"{count} requests")

    def take_worst(self) -> Wait:
        """Return the longest wait since the last call, after the request that waits now has its response."""
        wanted = self.request_count + 2
        deadline = time.monotonic() + LIMIT_S
        while self.request_count < wanted and self._thread.is_alive() and time.monotonic() < deadline:
            time.sleep(self._pause_s or 0.001)
        worst, self.worst = self.worst, Wait()
        return worst

    def check(self) -> None:
        """Fail if a response was wrong, or if a request waited too long."""
        if self.failure is not None:
            raise AssertionError(f"the control connection failed {self.during}") from self.failure
        assert self.worst.cpu_s <= WAIT_MAX_CPU_S, str(self.worst)

    def _run(self) -> None:
        try:
            with RawClient(self._address, NAME) as client:
                self._prepare(client)
                while not self._is_stopping.is_set():
                    self._commit(client)
                    self._fetch_offset(client)
                    self._fetch(client)
                    self._has_started.set()
        except Exception as error:  # noqa: BLE001 - the owner of the connection reports it
            if not self._is_stopping.is_set():
                self.failure = error
        finally:
            self._has_started.set()

    def _prepare(self, client: RawClient) -> None:
        """Create the topic, and have a coordinator for the group."""
        create = MetadataRequest(topics=(MetadataRequestTopic(name=NAME),))
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            errors = {client.ask(create, self._versions[3]).topics[0].error_code}
            if 10 in self._versions:
                errors.add(client.ask(FindCoordinatorRequest(key=NAME), self._versions[10]).error_code)
            if errors == {0}:
                return
            assert errors <= START_ERRORS | {0}, errors
            time.sleep(0.01)

    def _commit(self, client: RawClient) -> None:
        self._offset += 1
        response = self._ask(client, commit_request(NAME, {NAME: {0: self._offset}}), self._versions[8])
        _expect(response.topics[0].partitions[0].error_code, 0, "error of OffsetCommit")

    def _fetch_offset(self, client: RawClient) -> None:
        topics = (OffsetFetchRequestTopic(name=NAME, partition_indexes=(0,)),)
        response = self._ask(client, OffsetFetchRequest(group_id=NAME, topics=topics), self._versions[9])
        partition = response.topics[0].partitions[0]
        _expect(partition.error_code, 0, "error of OffsetFetch")
        _expect(partition.committed_offset, self._offset, "committed offset")

    def _fetch(self, client: RawClient) -> None:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic=NAME, partitions=(partition,)),)
        response = self._ask(client, FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), self._versions[1])
        _expect(response.responses[0].partitions[0].error_code, 0, "error of Fetch")

    def _ask(self, client: RawClient, request: Request, version: int) -> Any:
        """Send one request, measure its wait, and return its response."""
        during = self.during
        before_s, before_cpu_s = time.monotonic(), cpu_s(self._pid)
        response = client.ask(request, version)
        wait_cpu_s = cpu_s(self._pid) - before_cpu_s
        if wait_cpu_s > self.worst.cpu_s:
            name = type(request).__name__.removesuffix("Request")
            # What begins while the request waits is as likely the cause as what had begun before.
            doing = " then ".join(dict.fromkeys(what for what in (during, self.during) if what))
            self.worst = Wait(wait_cpu_s, time.monotonic() - before_s, name, doing)
        self.request_count += 1
        self._is_stopping.wait(self._pause_s)
        return response


def _expect(actual: object, expected: object, what: str) -> None:
    assert actual == expected, f"{what} of the control connection: {actual}, not {expected}"
