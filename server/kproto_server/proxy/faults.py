"""The fault rules of a proxy: which requests they are about, and what happens to one that a rule acts on.

Theory of operation. `Requests` asks `ProxyRules` about each request while there are rules. A request that a rule acts
on becomes a `FaultedRequest` instead of the bytes to send on. Its action is that of a broker (`kproto_server.faults`):
where a broker has its handler handle a request, the proxy sends it to the cluster, and the result is a delayed
operation that ends with the cluster's response. `Relay` sends the request, waits, and sends what the action makes of
the response. It passes on no later request of the connection meanwhile, as a broker handles none.

A Fetch of a fetch session does not name the partitions of its session, which only the client and the broker know. While
a rule has to know them, clients get no session from the cluster: a full Fetch passes on without one, and one of a
session from before gets FETCH_SESSION_ID_NOT_FOUND, as from a broker that has evicted it. The client then sends a full
one. Members of share groups cannot do without their session: an error of a ShareFetch stands in the response itself.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.codes import ErrorCode
from kproto.errors import ProtocolError, UsageError
from kproto.headers import ResponseHeader, response_frame
from kproto.message import Response
from kproto.message_codec import message_codec
from kproto.messages import APIS
from kproto.offset_commit_v4 import decode_v4
from kproto_server.configuration.dynamic_settings import DynamicSettings
from kproto_server.configuration.settings import Settings
from kproto_server.deferred import NO_RESPONSE, Completion, DelayedOperation, Piece, Shaped
from kproto_server.faults.actions import Faulty, act
from kproto_server.faults.items import error_response
from kproto_server.faults.rule import API_VERSIONS, checked, selection_of
from kproto_server.faults.rules import Asked, Rules
from kproto_server.observation.error_codes import error_codes
from kproto_server.proxy.cutting import ELEMENTS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto.headers import ReceivedHeader
    from kproto.message import Request
    from kproto_server.deferred import Result
    from kproto_server.faults.changes import Leaders
    from kproto_server.faults.checked_rule import Checked
    from kproto_server.faults.rules import Rule
    from kproto_server.observation.observe import Observations
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.context import ConnectionInfo

SIZE_BYTES = 4
PRODUCE, FETCH, OFFSET_COMMIT, SHARE_FETCH = 0, 1, 8, 78
TWO_LAYOUTS = 4
NO_SESSION = -1
"""The session epoch of a Fetch without a session."""
TOPIC_NAMES_MAX = 100_000
"""Topics whose names are kept by id; the cluster names them again when a client asks."""

NEEDS_NODES = "the proxy does not know the nodes of the cluster"
MEANINGLESS: dict[str, str] = {
    "node_id": NEEDS_NODES,
    "leader": NEEDS_NODES,
    "coordinator": NEEDS_NODES,
    "stale": NEEDS_NODES,
    "network": "use delay_ms and chunk_bytes, or the network's own tools",
    "forward_commits": "the cluster handles the commits",
    "conditional_commits": "the cluster handles the commits",
}
"""Names of a rule, or of an item of a file, that a proxy refuses, and why."""


class Circumstances(NamedTuple):
    """What rules need to know of a request beside what it names (`kproto_server.faults.rules.Circumstances`)."""

    connection: ConnectionInfo
    client_id: str
    api_key: int
    api_version: int
    kafka_version: KafkaVersion
    settings: DynamicSettings


class ProxyRules(Rules):
    """The rules of one proxy."""

    def __init__(
        self, kafka_version: KafkaVersion, now_ms: Callable[[], int], make_random: Callable[[int], Callable[[], float]]
    ) -> None:
        """``kafka_version``: the cluster's. ``make_random``: as of `Rules`."""
        super().__init__(now_ms, make_random)
        self.kafka_version: KafkaVersion = kafka_version
        self.settings: DynamicSettings = DynamicSettings(Settings(), lambda: None)
        """Kafka's defaults: a frozen heartbeat has the heartbeat interval of these."""
        self.now_ms: Callable[[], int] = now_ms
        self._topic_names: dict[bytes, str] = {}
        self._about: dict[tuple[int, int], list[Rule]] = {}
        self.is_idle: bool = True
        """Whether no rule may act on any request."""

    def about(self, api_key: int, api_version: int) -> list[Rule]:
        """Return the rules that may act on a request of a version, the oldest first."""
        if self.is_idle:
            return []
        found = self._about.get((api_key, api_version))
        if found is None:
            found = [rule for rule in self.active if rule.rule.conditions.may_meet(api_key, api_version)]
            if api_key in APIS and api_version in registry.versions(api_key):
                self._about[api_key, api_version] = found
        return found

    def learn(self, response: Any) -> None:
        """Note the topic ids of a Metadata response."""
        names = self._topic_names
        for topic in response.topics:
            if topic.name:
                names[topic.topic_id] = topic.name
        for topic_id in [*islice(names, max(0, len(names) - TOPIC_NAMES_MAX))]:
            del names[topic_id]

    def name_of_topic(self, topic_id: bytes) -> str | None:
        """Return the name of a topic with an id; None: no Metadata response has had it."""
        return self._topic_names.get(topic_id)

    @property
    def topic_names(self) -> Mapping[bytes, str]:
        """The names of topics by id."""
        return self._topic_names

    def _checked(self, given: Mapping[str, Any]) -> Checked:
        return checked_rule(given, self.kafka_version)

    def _leaders(self) -> Leaders:
        raise AssertionError("`checked_rule` refuses the rules that need leaders")

    def _install(self) -> None:
        self._about.clear()
        self.is_idle = not self.active


def checked_rule(given: Mapping[str, Any], kafka_version: KafkaVersion) -> Checked:
    """Return a rule in the form in which it is applied.

    Raises:
        UsageError: as of `kproto_server.faults.rule.checked`, or the rule has no meaning in a proxy.
    """
    for name, reason in MEANINGLESS.items():
        if name in given:
            raise UsageError(f"{name} has no meaning in a proxy: {reason}")
    return checked(given, kafka_version, ())


class FaultedRequest:
    """A request that a rule acts on, or that gets a response of the proxy's own."""

    def __init__(self, frame: bytes, header: ReceivedHeader, request: Request, about: Circumstances) -> None:
        """``frame``: with its size."""
        self._frame = frame
        self._header = header
        self._request = request
        self._about = about
        self._completion = Completion()
        self._received: Result | None = None
        self._begin: Callable[[], Result] = lambda: NO_RESPONSE
        self.on_framed: Callable[[bytes], object] = len
        """Called with the response of the client, with its size, before an action shapes it."""
        self.to_send: bytes | None = None
        """What the cluster gets next; the relay sets it to None."""
        self.is_sent: bool = False
        """Whether the cluster has got it, and has not responded."""

    def acted_on(self, rule: Rule, rules: ProxyRules) -> FaultedRequest:
        """Have a rule act on it."""
        faulty = Faulty(
            rule,
            selection_of(rule.rule.conditions, rules.name_of_topic),
            self._request,
            None if self._about.api_key == SHARE_FETCH else self._request,
            self._about,
            {},
            self._forward,
            rules.now_ms,
        )
        self._begin = lambda: act(faulty)
        return self

    def responded_with(self, error: ErrorCode) -> FaultedRequest:
        """Have the client get this error, and the cluster nothing."""
        self._begin = lambda: error_response(error, self._request, self._about.api_key, self._about.api_version)
        return self

    @property
    def has_response(self) -> bool:
        """Whether the cluster responds to it."""
        return self._about.api_key != PRODUCE or bool(self._request.acks)  # type: ignore[attr-defined]

    def begin(self) -> Result:
        """Return what the client gets, or what to wait for."""
        return self._begin()

    def received(self, frame: bytes | None) -> None:
        """Take the response of the cluster, with its size; None: it passes to the client as it arrives."""
        self.is_sent = False
        if frame is None:
            self._received = NO_RESPONSE
        else:
            try:
                codec = registry.codec(self._about.api_key, self._about.api_version)
                _, position = message_codec(ResponseHeader, codec.response_header_version).decode(frame, SIZE_BYTES)
                self._received, _ = codec.decode_response(frame, position)
            except ProtocolError:
                self._received = frame
        self._completion.complete()

    def piece(self, result: Result, observations: Observations) -> Piece:
        """Return what the client gets of a result that needs no wait; count its error codes."""
        if isinstance(result, Piece):
            return result
        if isinstance(result, bytes):
            return Piece(result)
        if not isinstance(result, (Shaped, Response)):
            return Piece(b"")
        response = result.response if isinstance(result, Shaped) else result
        about = self._about
        codes = error_codes(response)
        is_step = about.api_key == API_VERSIONS and codes == [ErrorCode.UNSUPPORTED_VERSION]  # which a client expects
        if codes and not is_step:
            observations.errors(about.connection, about.client_id, about.api_key, about.api_version, codes)
        frame = self._framed(response)
        self.on_framed(frame)
        return result.shape(frame) if isinstance(result, Shaped) else Piece(frame)

    def _framed(self, response: Any) -> bytes:
        about = self._about
        codec = registry.codec(about.api_key, about.api_version)
        body = codec.encode_response(response)
        return response_frame(self._header.correlation_id, codec.response_header_version, body)

    def _forward(self, request: Request) -> Result:
        """Have the cluster handle a request: this one, or a part of it."""
        if request is self._request:
            self.to_send = self._frame
        else:
            self.to_send = reencoded(self._frame, self._header, request)
        if not self.has_response:
            return NO_RESPONSE
        self.is_sent = True

        def respond() -> Result:
            return NO_RESPONSE if self._received is None else self._received

        return DelayedOperation(None, respond, self._completion)


def reencoded(frame: bytes, header: ReceivedHeader, request: Request) -> bytes:
    """Return the frame of another request with the header of a frame."""
    body = frame[SIZE_BYTES : SIZE_BYTES + header.body_position] + request.encode(header.api_version)
    return len(body).to_bytes(SIZE_BYTES, "big") + body


def faulted(
    frame: bytes, header: ReceivedHeader, rules: ProxyRules, info: ConnectionInfo
) -> FaultedRequest | bytes | None:
    """Return what rules make of a request: one that they act on, or another frame; None: it passes as it is.

    ``frame``: with its size.
    """
    key, version = header.api_key, header.api_version
    active = rules.about(key, version)
    if not active or version not in registry.versions(key):
        return None
    try:
        request = _decoded(frame, header)
    except ProtocolError:  # the broker closes the connection
        return None
    about = Circumstances(info, header.client_id or "", key, version, rules.kafka_version, rules.settings)
    changed: bytes | None = None
    if key == FETCH and any(rule.rule.conditions.names or rule.rule.action.kind == "error" for rule in active):
        if request.session_id:
            return FaultedRequest(frame, header, request, about).responded_with(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != NO_SESSION:
            request = request.replace(session_epoch=NO_SESSION)
            frame = changed = reencoded(frame, header, request)
    rule = rules.first(active, Asked(request, about, None, rules.name_of_topic))
    if rule is None:
        return changed
    return FaultedRequest(frame, header, request, about).acted_on(rule, rules)


def _decoded(frame: bytes, header: ReceivedHeader) -> Any:
    key, position = header.api_key, SIZE_BYTES + header.body_position
    if key == OFFSET_COMMIT and header.api_version == TWO_LAYOUTS:
        return decode_v4(frame, position, ELEMENTS_MAX)[0]
    return registry.codec(key, header.api_version).decode_request(frame, position, ELEMENTS_MAX)[0]
