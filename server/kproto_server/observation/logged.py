"""A request as the log has it: who sent what and when, and what it was answered, decoded when asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kproto import registry
from kproto.codes import ErrorCode
from kproto.errors import ProtocolError
from kproto.headers import read_request_header
from kproto.messages import APIS
from kproto.offset_commit_v4 import decode_v4
from kproto_server.observation.error_codes import error_codes

if TYPE_CHECKING:
    from kproto.message import Request, Response
    from kproto_server.observation.request_log import Entry

OFFSET_COMMIT, FIND_COORDINATOR, API_VERSIONS = 8, 10, 18
GROUP_KEY = 0
"""FindCoordinator's key type of groups."""
NO_HEADER = -1


class NotKept(Exception):
    """A body that was too large for the log (`FRAME_KEPT_MAX_BYTES`): only who sent it, when and what is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request of one client, and its answer."""

    number: int
    """The first one since the broker started is 1."""
    time_ms: int
    """Broker time when it came."""
    answered_ms: int | None
    """Broker time of its answer; None: none was given, or it still waits."""
    node_id: int
    """The broker that it was sent to."""
    client_id: str
    client_host: str
    software_name: str
    """From ApiVersions v3 and later; empty if the client never told."""
    software_version: str
    api_key: int
    """-1: it is not even a request."""
    api_version: int
    correlation_id: int
    frame: bytes = field(repr=False)
    """Header and body as they came, without the size; of a very large one only the beginning."""
    answer_frame: bytes | None = field(repr=False)
    is_whole: bool = field(repr=False, default=True)
    has_whole_answer: bool = field(repr=False, default=True)

    @property
    def api(self) -> str:
        """Kafka's name of the API."""
        return APIS.get(self.api_key, f"API key {self.api_key}")

    @property
    def request(self) -> Request:
        """The request, decoded.

        Raises:
            NotKept: it was too large.
            ProtocolError: it is none that is known, or does not have its layout; it was not answered then.
        """
        if not self.is_whole:
            raise NotKept(f"{self.api} request {self.number}")
        position = read_request_header(self.frame).body_position
        decoded: Any
        if self.api_key == OFFSET_COMMIT and self.api_version == 4:
            decoded, _, _ = decode_v4(self.frame, position)
        else:
            decoded, _ = registry.codec(self.api_key, self.api_version).decode_request(self.frame, position)
        return decoded  # type: ignore[no-any-return]  # of its API's class

    @property
    def response(self) -> Response | None:
        """The answer, decoded; None: there is none.

        Raises:
            NotKept: it was too large.
            ProtocolError: an 0.8 has answered a version that there never was.
        """
        answer = self.answer_frame
        if answer is None:
            return None
        if not self.has_whole_answer:
            raise NotKept(f"the answer to {self.api} request {self.number}")
        version = self.api_version
        if self.api_key == API_VERSIONS and answer[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            version = 0  # the one answer to a version that is not served (BA-21)
        codec = registry.codec(self.api_key, version)
        position = 4 if codec.response_header_version == 0 else 5
        decoded, _ = codec.decode_response(answer, position)
        return decoded  # type: ignore[no-any-return]  # of its API's class

    @property
    def error_codes(self) -> tuple[int, ...]:
        """All error codes of the answer that are not 0, in the order of the wire; of one that can't be read none."""
        try:
            response = self.response
        except (ProtocolError, NotKept):
            return ()
        return () if response is None else tuple(error_codes(response))

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The groups that the request names."""
        try:
            return tuple(_group_ids(self.request))
        except (ProtocolError, NotKept):
            return ()


def logged(entry: Entry) -> LoggedRequest:
    """Return what there is to know of a request without decoding its body."""
    connection = entry.connection
    try:
        header = read_request_header(entry.frame)
        key, version, correlation_id, client_id = header[:4]
    except ProtocolError:
        key, version, correlation_id, client_id = NO_HEADER, NO_HEADER, NO_HEADER, ""
    return LoggedRequest(
        number=entry.number,
        time_ms=entry.time_ms,
        answered_ms=entry.answered_ms,
        node_id=entry.node_id,
        client_id=client_id or "",
        client_host=connection.client_host,
        software_name=connection.software_name,
        software_version=connection.software_version,
        api_key=key,
        api_version=version,
        correlation_id=correlation_id,
        frame=entry.frame,
        answer_frame=entry.answer,
        is_whole=entry.is_whole,
        has_whole_answer=entry.has_whole_answer,
    )


def _group_ids(request: Any) -> list[str]:
    """The groups of a request, by the names that the fields of all APIs have for them."""
    if type(request)._api_key == FIND_COORDINATOR:
        keys = [*request.coordinator_keys, *([request.key] if request.key else [])]
        return keys if request.key_type == GROUP_KEY else []
    found = [getattr(request, "group_id", None)]
    for name in ("groups", "groups_names", "group_ids"):
        found += [getattr(one, "group_id", one) for one in getattr(request, name, ())]
    return [group_id for group_id in found if isinstance(group_id, str) and group_id]
