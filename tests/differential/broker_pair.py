"""The same requests to two brokers, and the comparison of their responses.

Theory of operation
-------------------
A request is built once per broker, since it may name values that the broker assigned: member ids, topic ids, session
ids. Such values have names, the same for both brokers, and responses are compared with the names in their place.

A response may be deferred until other members send requests. So after each request, both brokers must have responded on
the same connections: while one broker has responded and the other has not, the pair waits.
"""

from __future__ import annotations

import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kproto.declaration import Struct, fields_of
from kproto.headers import read_response
from kproto.message import Request
from kproto.messages.k11_join_group import JoinGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from tests.network.raw_client import RawClient

SLOWER_BROKER_LIMIT_S = 20.0
"""How much later than the other a broker may respond."""
PROPAGATION_LIMIT_S = 5.0
"""How long after a change the brokers' responses may differ."""
BUSY_LIMIT_S = 3.0
"""How long a broker may be busy with the request before."""
BUSY_PAUSE_S = 0.005
DEFERRED = (JoinGroupRequest, SyncGroupRequest)
"""Requests whose responses may wait for an event; all others have one at once, on a busy machine somewhat later. No
family sends a Fetch that waits."""
QUIET_S = 0.12
"""After this time without a response, the pending responses count as deferred."""
UNNAMED_MEMBER_ID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The suffix that brokers append to a client id or an instance id to make a member id."""
CLOSED = "closed the connection"
NO_RESPONSE = "no response"

BuildRequest = Callable[["ComparedBroker"], Request]


class SentRequest(NamedTuple):
    """A request, as messages show it."""

    api: str
    version: int
    note: str


class Difference(Exception):
    """The responses of the brokers differ; `parts` has the path and both values of each difference."""

    def __init__(self, request: SentRequest, parts: list[tuple[str, Any, Any]]) -> None:
        super().__init__(request, parts)
        self.request = request
        self.parts = parts

    def __str__(self) -> str:
        lines = "\n".join(f"    {path}: {_short(tested)} | {_short(real)}" for path, tested, real in self.parts[:6])
        return f"{self.request.api} v{self.request.version} {self.request.note}\n{lines}"


class ComparedBroker:
    """One of the two brokers, with its connections by slot number."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.connections: dict[int, RawClient] = {}
        self.pending: dict[int, tuple[type[Request], int]] = {}
        """The request class and version of each connection that waits for a response."""
        self.producers: dict[int, str] = {}
        """The names of producer ids, which replace them in responses."""
        self._values: dict[str, Any] = {}
        self._names: dict[Any, str] = {}

    def reset(self) -> None:
        """Close the connections and forget all named values."""
        for connection in self.connections.values():
            connection.socket.close()
        for attribute in (self.connections, self.pending, self.producers, self._values, self._names):
            attribute.clear()

    def connection(self, slot: int) -> RawClient:
        if slot not in self.connections:
            self.connections[slot] = RawClient(self.address, client_id=f"c{slot}")
        return self.connections[slot]

    def note(self, name: str, value: Any, *, is_shown: bool = True) -> None:
        """Give a value a name. With `is_shown`, the name replaces the value in responses."""
        self._values[name] = value
        if is_shown:
            self._names[value] = name

    def value(self, name: str) -> Any:
        """Return the broker's value of a name, or the name itself if there is none."""
        return self._values.get(name, name)

    def has_name(self, value: Any) -> bool:
        return value in self._names

    def replace_value(self, value: Any) -> Any:
        """Return the name of a value, or the value itself if it has none."""
        if isinstance(value, (str, bytes)) and value in self._names:
            return f"<{self._names[value]}>"
        return UNNAMED_MEMBER_ID.sub("-?", value) if isinstance(value, str) else value

    def send(self, slot: int, request: Request, version: int) -> None:
        self.connection(slot).send((request, version))
        self.pending[slot] = type(request), version

    def read(self, slot: int) -> Any:
        """Return the pending response of a connection."""
        kind, version = self.pending.pop(slot)
        try:
            return read_response(self.connection(slot).read_frame(), kind, version)[1]
        except ConnectionError:
            self.connections.pop(slot).socket.close()
            return CLOSED


class Responses(NamedTuple):
    """The responses of both brokers to one request."""

    tested: Any
    real: Any


class BrokerPair:
    """Both brokers.

    Args:
        learn: called with each response, to name the values that the broker assigned.
        normalize: may change the fields of a struct before the comparison.
    """

    def __init__(
        self,
        tested: ComparedBroker,
        real: ComparedBroker,
        learn: Callable[[ComparedBroker, int, Any], None],
        normalize: Callable[[Struct, dict[str, Any]], None],
    ) -> None:
        self.brokers = (tested, real)
        self.transcript: list[str] = []
        """One line per request and response."""
        self._learn = learn
        self._normalize = normalize
        self._sent: dict[int, SentRequest] = {}

    def is_pending(self, slot: int) -> bool:
        return any(slot in broker.pending for broker in self.brokers)

    def send(self, slot: int, build: BuildRequest, version: int, note: str = "") -> dict[int, Responses]:
        """Send a request on one connection; return the responses that arrive on any connection.

        Raises:
            Difference: the responses differ, or only one broker has responded.
        """
        for broker in self.brokers:
            request = build(broker)
            broker.send(slot, request, version)
        self._note_sent(slot, request, version, note)
        found = dict(self._read_responses())
        for responded_slot, responses in sorted(found.items()):
            self._compare(responded_slot, responses)
        return found

    def send_until_idle(
        self, slot: int, build: BuildRequest, version: int, is_busy: Callable[[Any], bool]
    ) -> Responses:
        """Send a request to each broker, again while the broker is busy; compare the last responses.

        Raises:
            Difference: the last responses differ.
        """
        found = []
        for broker in self.brokers:
            limit = time.monotonic() + BUSY_LIMIT_S
            request = build(broker)
            while True:
                broker.send(slot, request, version)
                response = broker.read(slot)
                if not is_busy(response) or time.monotonic() > limit:
                    break
                time.sleep(BUSY_PAUSE_S)
            found.append(response)
        self._note_sent(slot, request, version, "")
        responses = Responses(*found)
        self._compare(slot, responses)
        return responses

    def send_until_equal(self, slot: int, build: BuildRequest, version: int) -> None:
        """Repeat a request that changes nothing until the responses are equal: real brokers propagate changes.

        Raises:
            Difference: the responses still differ after `PROPAGATION_LIMIT_S`.
        """
        limit = time.monotonic() + PROPAGATION_LIMIT_S
        while True:
            try:
                self.send(slot, build, version)
            except Difference:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.05)
            else:
                return

    def _note_sent(self, slot: int, request: Request, version: int, note: str) -> None:
        """Note the request as the last broker gets it."""
        sent = self._sent[slot] = SentRequest(type(request).__name__.removesuffix("Request"), version, note)
        shown = _short(self.normalized(self.brokers[-1], request))
        self.transcript.append(f"{slot}: {sent.api} v{version} {note} {shown}")

    def _read_responses(self) -> Iterator[tuple[int, Responses]]:
        received: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        limit = time.monotonic() + SLOWER_BROKER_LIMIT_S
        quiet = time.monotonic() + QUIET_S
        while time.monotonic() < limit and (
            self._pending_differ() or self._awaits_response() or (self._any_pending() and time.monotonic() < quiet)
        ):
            for broker, slot in self._ready():
                received[self.brokers.index(broker)][slot] = broker.read(slot)
        for slot in received[0].keys() | received[1].keys():
            responses = Responses(*(by_slot.get(slot, NO_RESPONSE) for by_slot in received))
            if NO_RESPONSE in responses:
                raise Difference(self._sent[slot], [("", responses.tested, responses.real)])
            yield slot, responses

    def _pending_differ(self) -> bool:
        return self.brokers[0].pending.keys() != self.brokers[1].pending.keys()

    def _awaits_response(self) -> bool:
        """Return whether a request is pending whose response does not wait for an event."""
        return any(kind not in DEFERRED for kind, _ in self.brokers[0].pending.values())

    def _any_pending(self) -> bool:
        return bool(self.brokers[0].pending)

    def _ready(self) -> list[tuple[ComparedBroker, int]]:
        """Return the connections that wait for a response and can be read."""
        watched = {broker.connection(slot).socket: (broker, slot) for broker in self.brokers for slot in broker.pending}
        return [watched[found] for found in select.select(list(watched), [], [], 0.02)[0]]

    def _compare(self, slot: int, responses: Responses) -> None:
        for broker, response in zip(self.brokers, responses, strict=True):
            self._learn(broker, slot, response)
        tested, real = (
            self.normalized(broker, response) for broker, response in zip(self.brokers, responses, strict=True)
        )
        self.transcript.append(f"{slot}: -> {_short(real)}")
        parts = list(differences(tested, real))
        if parts:
            raise Difference(self._sent[slot], parts)

    def normalized(self, broker: ComparedBroker, value: Any) -> Any:
        """Return a value as dictionaries and sorted lists, with names in place of the broker's own values."""
        if isinstance(value, Struct):
            fields = {
                field.name: self.normalized(broker, getattr(value, field.name)) for field in fields_of(type(value))
            }
            if fields.get("producer_id") in broker.producers:
                fields["producer_id"] = broker.producers[fields["producer_id"]]
            self._normalize(value, fields)
            return fields
        if isinstance(value, tuple):
            return sorted((self.normalized(broker, item) for item in value), key=repr)
        return broker.replace_value(value)


def differences(tested: Any, real: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each difference of two normalized values."""
    if isinstance(tested, Mapping) and isinstance(real, Mapping) and tested.keys() == real.keys():
        for key in tested:
            yield from differences(tested[key], real[key], f"{path}.{key}")
    elif isinstance(tested, list) and isinstance(real, list) and len(tested) == len(real):
        for one, other in zip(tested, real, strict=True):
            yield from differences(one, other, path + "[]")
    elif tested != real:
        yield path, tested, real


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_short(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_short, value)) + "]"
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}... of {len(text)}"
