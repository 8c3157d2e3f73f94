"""A case for a broker under test, and the names that its request is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.message import Request

GUIDE = "Kafka protocol guide"


class Names(NamedTuple):
    """What one request of a case is about."""

    topic: str
    """A topic with one partition and no records."""
    topic_id: bytes
    written: str
    """A topic with one partition to which cases write."""
    written_id: bytes
    missing: str
    """A topic that does not exist."""
    group: str
    """A group that no other request names; also a transactional id."""


class BrokerCase(NamedTuple):
    """A request that is sent in each version, or bytes that are sent once."""

    name: str
    """As ``--only`` takes it."""
    text: str
    """What is sent, in a sentence."""
    reference: str
    rule: str
    """Its number in `server/RULES.md`."""
    request: Callable[[Names, int], Request] | None = None
    """Makes the request of a version."""
    api_key: int = -1
    data: bytes = b""
    """What is sent instead of a request, with its size."""
    is_hostile: bool = False
    """Whether no client sends this frame, and a broker may end by it."""
    before: Callable[[Names], tuple[Request, int]] | None = None
    """Makes a request, with its version, that is sent first; its response does not count."""
    first_version: int = 0
    """The request cannot be written in an older version."""
    left_out: frozenset[str] = frozenset()
    """Fields of the response that vary from run to run."""

    @property
    def shown_reference(self) -> str:
        return f"{self.reference} (rule {self.rule})"
