"""What all clients do: find leaders and coordinators, send requests, and wait."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kproto.codes import ErrorCode
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from tests.simulator.broker import TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto.message import Request
    from tests.simulator.script import Line

GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""
REQUEST_TIMEOUT_MS = 250
RETRY_MS = 20

MOVED = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Errors after which a client looks for the coordinator again."""


class Call(NamedTuple):
    """A request to a node. The client continues with the response, or with None if none came in time."""

    node_id: int
    request: Request
    version: int
    timeout_ms: int = REQUEST_TIMEOUT_MS
    drops: bool = False
    """Whether a request that was given up does not arrive any more."""
    background: bool = False
    """Whether the client goes on at once, with None; the request has a connection of its own."""
    delay_ms: int = 0
    """What it takes to arrive in addition to its usual latency."""


T = TypeVar("T")
Steps = Generator[Call | int, Any, T]
"""What a client does next: a call, or a wait of so many ms."""


class Surroundings(Protocol):
    """What a client knows of its world."""

    now_ms: int
    seed: int
    node_ids: tuple[int, ...]
    partition_count: int
    groups: Sequence[str]

    def version(self, api_key: int, wanted: int) -> int:
        """Return the version of an API to use, at most the wanted one."""
        ...

    def next_offset(self) -> int:
        """Return an offset that no client has committed yet."""
        ...


class Client:
    """One client. Its memory ends with the object; a restart makes another one."""

    def __init__(self, surroundings: Surroundings, line: Line, incarnation: int) -> None:
        self.surroundings = surroundings
        self.line = line
        self.name = line.text("name")
        self.incarnation = incarnation
        self.finishing = False
        """Whether the client should come to its end."""
        # A text: the seed of an object is its hash, which differs from process to process.
        self.chance = random.Random(f"{surroundings.seed} {self.name} {incarnation}")  # noqa: S311 - reproducible
        self._coordinators: dict[tuple[str, int], int] = {}
        self._leaders: dict[int, int] = {}
        self._bootstrap = self.chance.randrange(len(surroundings.node_ids))

    def main(self) -> Steps[None]:
        raise NotImplementedError

    def ask(
        self, node_id: int, request: Request, wanted: int, timeout_ms: int = REQUEST_TIMEOUT_MS, *, drops: bool = False
    ) -> Steps[Any]:
        """Send a request; return its response, or None."""
        version = self.surroundings.version(type(request)._api_key, wanted)
        response = yield Call(node_id, request, version, timeout_ms, drops)
        return response

    def ask_any(self, request: Request, wanted: int) -> Steps[Any]:
        """Send a request to any node, the next one after each failure."""
        node_ids = self.surroundings.node_ids
        response = yield from self.ask(node_ids[self._bootstrap % len(node_ids)], request, wanted)
        if response is None:
            self._bootstrap += 1
        return response

    def ask_coordinator(
        self,
        key: str,
        key_type: int,
        request: Request,
        wanted: int,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        *,
        drops: bool = False,
    ) -> Steps[Any]:
        """Send a request to the coordinator of a key; return its response, or None."""
        node_id = self._coordinators.get((key, key_type))
        if node_id is None:
            found = yield from self.ask_any(FindCoordinatorRequest(key=key, key_type=key_type), 2)
            if found is None or found.error_code:
                return None
            node_id = self._coordinators[key, key_type] = found.node_id
        response = yield from self.ask(node_id, request, wanted, timeout_ms, drops=drops)
        if response is None:
            self.forget_coordinator(key, key_type)
        return response

    def known_coordinator(self, key: str, key_type: int) -> int | None:
        """Return the coordinator of a key, if the client knows it."""
        return self._coordinators.get((key, key_type))

    def forget_coordinator(self, key: str, key_type: int) -> None:
        self._coordinators.pop((key, key_type), None)

    def ask_leader(self, partition: int, request: Request, wanted: int) -> Steps[Any]:
        """Send a request to the leader of a partition; return its response, or None."""
        if partition not in self._leaders:
            metadata = yield from self.ask_any(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 4)
            topics = () if metadata is None else metadata.topics
            self._leaders = {
                one.partition_index: one.leader_id
                for topic in topics
                for one in topic.partitions
                if one.leader_id in self.surroundings.node_ids
            }
        if partition not in self._leaders:
            return None
        response = yield from self.ask(self._leaders[partition], request, wanted)
        if response is None:
            self.forget_leader(partition)
        return response

    def forget_leader(self, partition: int) -> None:
        self._leaders.pop(partition, None)

    def random_partition(self) -> int:
        return self.chance.randrange(self.surroundings.partition_count)
