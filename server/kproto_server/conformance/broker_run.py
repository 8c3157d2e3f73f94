"""Send the cases' requests to a broker, and bring its responses into a form that can be compared with another's.

The topics and the groups of a run begin with ``kproto-conform-`` and are deleted at its end.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any, Self

from kproto.codes import ErrorCode
from kproto.errors import DecodeError, FrameTooLarge, KprotoError
from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.registry import versions
from kproto_server.comparison import VARIES, comparable
from kproto_server.conformance.broker_case import Names

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType

    from kproto.message import Request
    from kproto_server.conformance.broker_case import BrokerCase

CLOSED = "connection closed"
ENDED = "connection closed, and the broker does not respond to ApiVersions any more"
NO_RESPONSE = "no response"
BEFORE_FLEXIBLE = 8
"""The last version of Metadata without tagged fields: the cases still run if a broker has them wrong."""
GROUPS_ASKED = 64
"""The topic with the offsets has 50 partitions."""
NOT_READY = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
INIT_PRODUCER_ID, TRANSACTION = 22, 1
OF_TRANSACTIONS = {22, 24, 25, 26}
"""API keys of requests to the coordinator of a transactional id."""
READY_S = 30.0
"""How long a new topic and the first coordinator may take."""


class BrokerNotUsable(KprotoError):
    """The broker under test can't be reached, or does not do what all cases build on; one line for the user."""


class BrokerUnderTest:
    """A broker that cases are sent to. It is the only one of its cluster.

    Entering makes two topics; leaving deletes them, with the groups of the cases. Each request has a connection of its
    own.

    Raises:
        BrokerNotUsable: on entering.
    """

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._address = (host, port)
        self._timeout_s = timeout_s
        self._prefix = f"kproto-conform-{secrets.token_hex(4)}"
        self._group = self._prefix
        self._groups: list[str] = []
        self._offered: dict[int, tuple[int, int]] = {}
        self._topics = (self._prefix, f"{self._prefix}-written")
        self._topic_ids = [bytes(16)] * len(self._topics)
        self._about_topics = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in self._topics))

    def __enter__(self) -> Self:
        try:
            offered = self._ask(ApiVersionsRequest(), 0)
            self._offered = {each.api_key: (each.min_version, each.max_version) for each in offered.api_keys}
            # The time of the cases' records is long past.
            configs = (CreatableTopicConfig(name="retention.ms", value="-1"),)
            topics = tuple(
                CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=configs)
                for name in self._topics
            )
            if 19 in self._offered:  # otherwise Metadata creates the topics
                self._ask(CreateTopicsRequest(topics=topics), self._newest(19, 4))
            self._wait_ready()
        except (OSError, DecodeError, FrameTooLarge) as error:
            self._delete()
            raise BrokerNotUsable(f"can't use {self._address[0]}:{self._address[1]}: {error}") from None
        except BrokerNotUsable:
            self._delete()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._delete()

    def responses(self, case: BrokerCase) -> dict[int, Any]:
        """Return the response to each version of a case, without what varies; version -1 for a case of bytes."""
        if case.request is None:
            return {-1: self._response_to(case.data)}
        low, high = self._offered.get(case.api_key, (0, -1))
        known = versions(case.api_key)
        found = {}
        for version in range(max(low, case.first_version, known.start), min(high + 1, known.stop)):
            names = self._names(f"{case.name}-{version}")
            if case.before is not None:
                with contextlib.suppress(OSError, DecodeError, FrameTooLarge):
                    self._ask(*case.before(names))
            found[version] = self._when_loaded(case, case.request(names, version), version)
        return found

    def _names(self, name: str) -> Names:
        self._group = f"{self._prefix}-{name}"
        self._groups.append(self._group)
        topic, written = zip(self._topics, self._topic_ids, strict=True)
        return Names(*topic, *written, f"{self._prefix}-missing", self._group)

    def _when_loaded(self, case: BrokerCase, request: Request, version: int) -> Any:
        """Return the response, without what varies, of a coordinator that has loaded its groups or transactions."""
        waited = NOT_READY if case.api_key in OF_TRANSACTIONS else {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        deadline = time.monotonic() + READY_S
        while True:
            response = self._comparable_response(request, version, VARIES | case.left_out)
            if not _has_error(response, waited) or time.monotonic() > deadline:
                return response
            time.sleep(0.1)

    def _comparable_response(self, request: Request, version: int, varies: Collection[str]) -> Any:
        try:
            return self._comparable(self._ask(request, version), varies)
        except TimeoutError:
            return NO_RESPONSE
        except (DecodeError, FrameTooLarge):
            return "not in the layout of its version"
        except OSError:
            return self._how_closed()

    def _response_to(self, data: bytes) -> Any:
        """Send bytes; return the response, decoded as ApiVersions v0: no other response to such bytes is allowed."""
        try:
            _, response = read_response(self._exchange(data), ApiVersionsRequest, 0)
        except TimeoutError:
            return NO_RESPONSE
        except OSError:
            return self._how_closed()
        except (DecodeError, FrameTooLarge):
            return "another response"
        return self._comparable(response)

    def _how_closed(self) -> str:
        try:
            self._ask(ApiVersionsRequest(), 0)
        except (OSError, DecodeError, FrameTooLarge):
            return ENDED
        return CLOSED

    def _ask(self, request: Request, version: int) -> Any:
        frame = request_frame(request, version, correlation_id=7, client_id="kproto-conform")
        return read_response(self._exchange(frame), type(request), version)[1]

    def _exchange(self, data: bytes) -> bytes:
        """Send bytes on a connection of their own; return the first frame."""
        reader = FrameReader()
        with socket.create_connection(self._address, self._timeout_s) as connection:
            connection.sendall(data)
            while True:
                received = connection.recv(1 << 16)
                if not received:
                    raise ConnectionError("the broker has closed the connection")
                reader.feed(received)
                for frame in reader.frames():
                    return frame

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            metadata = self._ask(self._about_topics, self._newest(3, BEFORE_FLEXIBLE))
            if len(metadata.brokers) > 1:
                raise BrokerNotUsable(f"its cluster has {len(metadata.brokers)} brokers: use a cluster of one")
            coordinator = self._ask(FindCoordinatorRequest(key=self._prefix), self._newest(10, 3))
            errors = [topic.error_code for topic in metadata.topics]
            errors += [one.error_code for topic in metadata.topics for one in topic.partitions]
            is_ready = not (any(errors) or coordinator.error_code) and self._coordinates_groups()
            if is_ready and self._coordinates_transactions():
                with contextlib.suppress(DecodeError):  # a case is about this response
                    found = self._ask(self._about_topics, self._newest(3, 12)).topics
                    ids = {topic.name: topic.topic_id for topic in found}
                    self._topic_ids = [ids[name] for name in self._topics]
                return
            time.sleep(0.1)
        raise BrokerNotUsable("a new topic has no leader, or a group or a transaction no coordinator")

    def _coordinates_transactions(self) -> bool:
        """Return whether a transactional id has a coordinator, if the broker has them; asking makes their topic."""
        if INIT_PRODUCER_ID not in self._offered:
            return True
        of_transactions = FindCoordinatorRequest(key=self._prefix, key_type=TRANSACTION)
        found = self._ask(of_transactions, self._newest(10, 3))
        return found.error_code not in NOT_READY

    def _coordinates_groups(self) -> bool:
        """Return whether the broker coordinates many groups: it loads the partitions of their topic one by one."""
        for number in range(GROUPS_ASKED):
            topics = (OffsetFetchRequestTopic(name=self._prefix, partition_indexes=(0,)),)
            request = OffsetFetchRequest(group_id=f"{self._prefix}-{number}", topics=topics)
            response = self._ask(request, self._newest(9, 5))
            errors = [one.error_code for topic in response.topics for one in topic.partitions]
            if NOT_READY & {response.error_code, *errors}:
                return False
        return True

    def _newest(self, api_key: int, at_most: int) -> int:
        if api_key not in self._offered:
            raise BrokerNotUsable(f"it does not offer API {api_key}, which the cases need")
        return min(self._offered[api_key][1], at_most)

    def _delete(self) -> None:
        with contextlib.suppress(OSError, KprotoError):
            self._ask(DeleteGroupsRequest(groups_names=tuple(self._groups)), self._newest(42, 1))
        with contextlib.suppress(OSError, KprotoError):
            request = DeleteTopicsRequest(topic_names=self._topics, timeout_ms=10_000)
            self._ask(request, self._newest(20, 5))

    def _comparable(self, value: Any, varies: Collection[str] = VARIES) -> Any:
        return comparable(
            value, lambda text: text.replace(self._group, "GROUP").replace(self._prefix, "PREFIX"), varies
        )


def _has_error(response: Any, codes: Collection[int]) -> bool:
    if isinstance(response, dict):
        return any(
            (name.endswith("error_code") and value in codes) or _has_error(value, codes)
            for name, value in response.items()
            if isinstance(value, int | dict | list)
        )
    return isinstance(response, list) and any(_has_error(each, codes) for each in response)
