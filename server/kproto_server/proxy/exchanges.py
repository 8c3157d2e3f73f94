"""The requests and responses of one proxied connection, without its sockets: they are counted, and addresses replaced.

Theory of operation. `Requests` reads the header of each request and appends a `Pending` to those that wait for their
response; `Responses` takes it off again: a broker responds in the order of the requests. The correlation ids only
confirm that. Where they differ, a request had no response, or the frames are tokens of SASL, which have no header.

A request passes byte for byte. The proxy decodes the bodies of OffsetCommit v2 to v4 (retention_time), of
ApiVersions from v3 on (the client's software) and of SASL (`logins`), and the beginning of Produce up to acks, because
acks=0 has no response.
A response passes byte for byte, unless it has an address of a broker. Its error codes are counted as a broker of kproto
counts them. A large one is left to the relay: to decode the metadata of 100,000 partitions takes half a second.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.codes import ErrorCode
from kproto.errors import ProtocolError
from kproto.headers import ResponseHeader, read_request_header
from kproto.message_codec import message_codec
from kproto.messages import APIS
from kproto.offset_commit_v4 import decode_v4
from kproto.runtime import FAILURES, read_uvarint
from kproto_server.observation.error_codes import error_codes
from kproto_server.observation.observe import NO_API, shortened
from kproto_server.proxy.cutting import COLLECTED_MAX, ELEMENTS_MAX, SIZE_BYTES, Cutter
from kproto_server.proxy.faults import FaultedRequest, faulted
from kproto_server.proxy.logins import SeenLogin
from kproto_server.proxy.rewriting import BROKER_ARRAYS, rewritten
from kproto_server.proxy.upstream import release_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from kproto.headers import ReceivedHeader
    from kproto_server.observation.observe import Observations
    from kproto_server.observation.request_log import Entry
    from kproto_server.proxy.faults import ProxyRules
    from kproto_server.proxy.keeping import KeptRequests
    from kproto_server.proxy.rewriting import AddressOf
    from kproto_server.requests.context import ConnectionInfo

    Work = Callable[[], Any]
    """Decodes or encodes a response; any thread may call it."""

logger = logging.getLogger("kproto")

PRODUCE, METADATA, OFFSET_COMMIT, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 3, 8, 17, 18, 36
REFUSALS = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ErrorCode.SASL_AUTHENTICATION_FAILED)
"""Errors of SaslHandshake and of SaslAuthenticate that count as failed authentications."""
ADVERTISED_ONLY = range(3)
"""Versions of Produce that 4.x advertises and does not serve (BA-25)."""
RETENTION_VERSIONS = (2, 3, 4)
TWO_LAYOUTS = 4
HAS_SOFTWARE = 3
"""The first version of ApiVersions with the client's software."""

BEGINNING_BYTES = 128 * 1024
"""Bytes of a request that are collected: enough for a header with a client id of 32 KiB and a transactional id of 32
KiB."""
CORRELATION_END = 8
"""Position behind the correlation id of a response."""
LARGE_BYTES = 256 * 1024
"""A larger response takes more than 15 ms, unless most of it is records."""
WITH_RECORDS = (1, 78)
"""The API keys of Fetch and ShareFetch."""


class Pending(NamedTuple):
    """A request that waits for its response."""

    correlation_id: int | None
    """None: the frame has no header."""
    api_key: int
    api_version: int
    client_id: str
    is_read: bool
    """Whether kproto knows the layout of the response."""
    software: tuple[str, str] | None = None
    """The client's software and its version, if the request has them; the broker may refuse them."""
    entry: Entry | None = None
    """Its entry in the log of requests; None: it is not kept."""
    faulted: FaultedRequest | None = None
    """What takes its response instead of the client; None: the client gets it."""

    @property
    def is_token(self) -> bool:
        """Whether it has a token of SASL."""
        return self.api_key == SASL_AUTHENTICATE or (self.correlation_id is None and self.api_key == NO_API)


class Exchanges:
    """What both directions of a connection share."""

    def __init__(
        self,
        observations: Observations,
        info: ConnectionInfo,
        served: Mapping[int, tuple[int, int]],
        address_of: AddressOf | None,
        rules: ProxyRules | None = None,
        kept: KeptRequests | None = None,
    ) -> None:
        """Count from the first byte of a connection on.

        Args:
            served: the API versions of the cluster; empty: not known.
            address_of: None: responses keep the addresses of brokers.
            rules: fault rules; None: there are none.
            kept: gets all requests; None: none are kept.
        """
        self.observations: Observations = observations
        self.info: ConnectionInfo = info
        self.served: Mapping[int, tuple[int, int]] = served
        self.address_of: AddressOf | None = address_of
        self.rules: ProxyRules | None = rules
        self.kept: KeptRequests | None = kept
        self.pending: deque[Pending] = deque()
        self.client_id: str = ""
        """That of the latest request."""
        self.login: SeenLogin | None = None
        """The latest authentication by SASL."""
        self.former_login: SeenLogin | None = None
        """The latest one whose mechanism the broker has accepted."""
        self.requests: Requests = Requests(self)
        self.responses: Responses = Responses(self)

    def requested(self, header: ReceivedHeader, frame: bytes) -> None:
        """Take notice of a request, of which at least the beginning is known."""

    def offered(self, served: dict[int, tuple[int, int]]) -> None:
        """Take notice of the API versions in a response."""

    def broker_closed(self) -> str | None:
        """Note that the broker has closed the connection; return the reason if a request shows it, and count it."""
        if not self.pending:
            return None
        refused = self.pending[0]
        if self.login is not None and not self.login.is_complete and refused.is_token:
            self.login.failed(refused.client_id)
            return "it refused an authentication"
        if self._is_served(refused.api_key, refused.api_version):
            return None  # a broker that ends closes its connections, too
        name = APIS.get(refused.api_key)
        if name is None:
            reason = f"no API of the cluster has key {refused.api_key}"
            row = NO_API, NO_API
        else:
            reason = f"{name} v{refused.api_version} is not served by the cluster"
            row = refused.api_key, refused.api_version
        self.observations.closed(self.info, refused.client_id, *row, reason)
        return reason

    def _is_served(self, api_key: int, api_version: int) -> bool:
        """Return whether the cluster serves a version, as far as that is known."""
        low, high = self.served.get(api_key, (0, -1))
        if not low <= api_version <= high:
            return not self.served
        is_refused_by_some = api_key == PRODUCE and api_version in ADVERTISED_ONLY
        return not is_refused_by_some or release_of(self.served).serves(api_key, api_version)


class Requests(Cutter[FaultedRequest]):
    """From the client to the broker."""

    __slots__ = ("_exchanges", "_has_tokens")

    def __init__(self, exchanges: Exchanges) -> None:
        super().__init__()
        self._exchanges = exchanges
        self._has_tokens = False
        """Whether tokens of SASL without a header may follow: those of SaslHandshake v0, until the next request."""

    def collects(self, beginning: bytearray, end: int) -> int:
        key, version = int.from_bytes(beginning[4:6], "big"), int.from_bytes(beginning[6:8], "big")
        rules = self._exchanges.rules
        if (
            (key == OFFSET_COMMIT and version in RETENTION_VERSIONS)
            or (key == API_VERSIONS and version >= HAS_SOFTWARE)
            or (rules is not None and rules.about(key, version))
        ):
            return min(end, COLLECTED_MAX)
        return min(end, BEGINNING_BYTES)

    def begin(self, beginning: bytes) -> None:
        self._read(beginning[SIZE_BYTES:], is_whole=False)

    def whole(self, frame: bytes) -> bytes | FaultedRequest:
        read = frame[SIZE_BYTES : SIZE_BYTES + self.collects(bytearray(frame[:CORRELATION_END]), len(frame))]
        header = self._read(read, is_whole=len(read) == len(frame) - SIZE_BYTES)
        rules = self._exchanges.rules
        if header is None or rules is None or rules.is_idle:
            return frame
        return self._with_fault(frame, header, rules)

    def _with_fault(self, frame: bytes, header: ReceivedHeader, rules: ProxyRules) -> bytes | FaultedRequest:
        """Return what fault rules make of a request that was counted."""
        exchanges = self._exchanges
        found = faulted(frame, header, rules, exchanges.info)
        if not isinstance(found, FaultedRequest):
            return frame if found is None else found
        if found.has_response:
            pending = exchanges.pending.pop()._replace(faulted=found)
            exchanges.pending.append(pending)
            found.on_framed = lambda response: self._exchanges.responses.keep(pending, response)
        else:
            pending = Pending(header.correlation_id, header.api_key, header.api_version, exchanges.client_id, False)
            exchanges.pending.append(pending._replace(faulted=found))
        return found

    def _read(self, frame: bytes, *, is_whole: bool) -> ReceivedHeader | None:
        """Count a request, of which at least the beginning is known, and note that its response is pending; return the
        header if it has one."""
        exchanges = self._exchanges
        try:
            header = read_request_header(frame)
        except ProtocolError:
            self._note_unread(frame)
            return None
        key, version, correlation_id, client_id = header.api_key, header.api_version, *header[2:4]
        is_known = version in registry.versions(key)
        if self._has_tokens and not is_known:
            self._note_unread(frame)
            return None
        self._has_tokens = key == SASL_HANDSHAKE and version == 0
        client_id = exchanges.client_id = client_id or ""
        exchanges.observations.request(exchanges.info, client_id, key, version)
        exchanges.requested(header, frame)
        entry = None if exchanges.kept is None else exchanges.kept.add(exchanges.info, frame, is_whole=is_whole)
        software = None
        try:
            if key == PRODUCE and not acks(frame, header):  # newer versions begin alike so far
                return header
            if is_known:
                software = self._read_body(frame, header, client_id)
        except (ProtocolError, *FAILURES):
            pass  # the broker closes the connection
        exchanges.pending.append(Pending(correlation_id, key, version, client_id, is_known, software, entry))
        return header

    def _read_body(self, frame: bytes, header: ReceivedHeader, client_id: str) -> tuple[str, str] | None:
        """Count a retention override; return the software and its version of a request that has them."""
        key, version, position = header.api_key, header.api_version, header.body_position
        if key == OFFSET_COMMIT and version in RETENTION_VERSIONS:
            layout: str
            if version == TWO_LAYOUTS:
                commit, _, layout = decode_v4(frame, position, ELEMENTS_MAX)
            else:
                commit, _ = registry.codec(key, version).decode_request(frame, position, ELEMENTS_MAX)
                layout = f"v{version}"
            exchanges = self._exchanges
            exchanges.observations.commit_layout(exchanges.info, client_id, version, layout, commit.retention_time_ms)
        elif key == API_VERSIONS and version >= HAS_SOFTWARE:
            request, _ = registry.codec(key, version).decode_request(frame, position, ELEMENTS_MAX)
            return shortened(request.client_software_name), shortened(request.client_software_version)
        elif key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            request, _ = registry.codec(key, version).decode_request(frame, position, ELEMENTS_MAX)
            self._read_login(request)
        return None

    def _read_login(self, request: Any) -> None:
        """Note the mechanism that a client chooses, or its token."""
        exchanges = self._exchanges
        if request._api_key == SASL_HANDSHAKE:
            login = SeenLogin(exchanges.observations, exchanges.info, shortened(request.mechanism))
            exchanges.login = login
            if exchanges.info.seen_login is None:
                exchanges.info.seen_login = login
        elif exchanges.login is not None:
            exchanges.login.sent(request.auth_bytes)

    def _note_unread(self, frame: bytes) -> None:
        """Note a frame without a readable header: a token of SASL, or an API that kproto does not know."""
        if self._has_tokens or len(frame) < CORRELATION_END:
            if self._has_tokens and self._exchanges.login is not None:
                self._exchanges.login.sent(frame)
            self._exchanges.pending.append(Pending(None, NO_API, NO_API, self._exchanges.client_id, False))
            return
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        self._exchanges.pending.append(Pending(correlation_id, key, version, self._exchanges.client_id, False))


def acks(frame: bytes, header: ReceivedHeader) -> int:
    """Return the acks of a Produce request: 0, 1 or -1.

    Raises:
        IndexError: the frame ends before them.
        Malformed: the size of the transactional id is longer than a size can be.
    """
    position = header.body_position
    if header.api_version >= 9:  # compact: the size is that plus one
        size, position = read_uvarint(frame, position)
        position += max(0, size - 1)
    elif header.api_version >= 3:
        position += 2 + max(0, int.from_bytes(frame[position : position + 2], "big", signed=True))
    if position + 2 > len(frame):
        raise IndexError("the frame ends before the acks")
    return int.from_bytes(frame[position : position + 2], "big", signed=True)


def done(steps: Generator[Work, Any, bytes]) -> bytes:
    """Do the work of steps at once; return their result."""
    try:
        work = next(steps)
        while True:
            try:
                result = work()
            except ProtocolError as error:
                work = steps.throw(error)
            else:
                work = steps.send(result)
    except StopIteration as end:
        read: bytes = end.value
        return read


class UnreadResponse(NamedTuple):
    """A response that takes long to read; `Responses.read` does it."""

    frame: bytes
    request: Pending


class Responses(Cutter[UnreadResponse]):
    """From the broker to the client."""

    __slots__ = ("_exchanges", "_unread", "leaves_large")

    def __init__(self, exchanges: Exchanges) -> None:
        super().__init__()
        self._exchanges = exchanges
        self.leaves_large: bool = False
        """Whether `feed` returns responses above `LARGE_BYTES` unread; the caller calls `read` for each."""
        self._unread = 0
        """How many of them are not read yet."""

    @property
    def is_passing(self) -> bool:
        """Whether a part of a response has not gone to the client."""
        return super().is_passing or self._unread > 0

    def collects(self, beginning: bytearray, end: int) -> int:
        pending = self._exchanges.pending
        if end > COLLECTED_MAX or (pending and not pending[0].is_read):
            return min(end, CORRELATION_END)
        return end

    def begin(self, beginning: bytes) -> None:
        request = self._take(beginning)
        self._note_token(request, beginning)
        if request is not None:
            self.keep(request, beginning, is_whole=False)
        if request is not None and request.faulted is not None:
            request.faulted.received(None)
        if request is not None and request.is_read:
            self._warn(request, f"it is larger than {COLLECTED_MAX:,} bytes")

    def whole(self, frame: bytes) -> bytes | UnreadResponse:
        request = self._take(frame)
        if request is None:
            return frame
        self._note_token(request, frame)
        unread = UnreadResponse(frame, request)
        is_large = len(frame) > LARGE_BYTES and request.is_read and request.api_key not in WITH_RECORDS
        if is_large and self.leaves_large:
            self._unread += 1
            return unread
        return done(self._steps(unread))

    def read(self, unread: UnreadResponse) -> Generator[Work, Any, bytes]:
        """Read a response that `feed` has returned unread; return what the client gets. Yields work, and takes its
        result; a `ProtocolError` of it is thrown in."""
        try:
            return (yield from self._steps(unread))
        finally:
            self._unread -= 1

    def _steps(self, unread: UnreadResponse) -> Generator[Work, Any, bytes]:
        frame, request = unread
        changed = yield from self._changed(frame, request)
        if request.faulted is not None:
            request.faulted.received(changed)
            return b""
        self.keep(request, changed)
        return changed

    def keep(self, request: Pending, frame: bytes, *, is_whole: bool = True) -> None:
        """Have the log of requests keep a response, or its beginning."""
        if request.entry is not None and self._exchanges.kept is not None:
            self._exchanges.kept.responded(request.entry, frame[SIZE_BYTES:], is_whole=is_whole)

    def _changed(self, frame: bytes, request: Pending) -> Generator[Work, Any, bytes]:
        """Return a response as the client gets it, with the proxy's addresses."""
        if not request.is_read:
            self._warn(request, "kproto does not know the version")
            return frame
        try:
            return (yield from self._read(frame, request))
        except ProtocolError as error:
            self._warn(request, str(error))
            return frame

    def _note_token(self, request: Pending | None, beginning: bytes) -> None:
        """Take notice of a broker's token without a header, of which at least the beginning is known."""
        login = self._exchanges.login
        if request is not None and request.correlation_id is None and login is not None:
            login.received(beginning[SIZE_BYTES:])

    def _take(self, frame: bytes) -> Pending | None:
        """Return the request of a response, and forget those before it; None: no request has its correlation id."""
        pending = self._exchanges.pending
        if not pending:
            return None
        found = int.from_bytes(frame[SIZE_BYTES:CORRELATION_END], "big", signed=True)
        if pending[0].correlation_id == found:
            return pending.popleft()
        for index, request in enumerate(pending):
            if request.correlation_id == found:
                for _ in range(index):
                    pending.popleft()
                return pending.popleft()
        return None if pending[0].is_read else pending.popleft()

    def _read(self, frame: bytes, request: Pending) -> Generator[Work, Any, bytes]:
        """Count the error codes of a response; return it with the proxy's addresses.

        Raises:
            ProtocolError: it does not have its declared layout.
        """
        exchanges, key, version = self._exchanges, request.api_key, request.api_version
        if key == API_VERSIONS:
            if frame[CORRELATION_END : CORRELATION_END + 2] != b"\0\0":
                low, high = exchanges.served.get(key, (0, -1))
                if not low <= version <= high:
                    return frame  # it is a v0 then: the client takes another version, which is no error
            elif request.software is not None:
                exchanges.info.software_name, exchanges.info.software_version = request.software
        codec = registry.codec(key, version)
        _, position = message_codec(ResponseHeader, codec.response_header_version).decode(frame, SIZE_BYTES)
        response, _ = yield lambda: codec.decode_response(frame, position)
        if key == METADATA and exchanges.rules is not None:
            exchanges.rules.learn(response)
        if key == API_VERSIONS:
            exchanges.offered({row.api_key: (row.min_version, row.max_version) for row in response.api_keys})
        if key in (SASL_HANDSHAKE, SASL_AUTHENTICATE) and exchanges.login is not None:
            self._read_login(response, exchanges.login, request.client_id)
        if request.faulted is None and (codes := error_codes(response)):
            exchanges.observations.errors(exchanges.info, request.client_id, key, version, codes)
        changed = response if exchanges.address_of is None else rewritten(response, exchanges.address_of)
        if changed is response:
            return frame
        encoded: bytes = yield lambda: codec.encode_response(changed)
        body = frame[SIZE_BYTES:position] + encoded
        return len(body).to_bytes(SIZE_BYTES, "big") + body

    def _read_login(self, response: Any, login: SeenLogin, client_id: str) -> None:
        """Note what the broker says of a mechanism or of a token."""
        exchanges = self._exchanges
        if response.error_code in REFUSALS:
            login.failed(client_id)
        elif response._api_key == SASL_AUTHENTICATE and not response.error_code:
            login.received(response.auth_bytes)
        elif response.error_code:  # the former login holds
            exchanges.login = exchanges.former_login
        else:
            exchanges.former_login = exchanges.info.seen_login = login

    def _warn(self, request: Pending, reason: str) -> None:
        """Say that a response keeps addresses which the proxy was to replace."""
        if request.api_key in BROKER_ARRAYS and self._exchanges.address_of is not None:
            logger.warning(
                "the response to %s v%d passes with the addresses of brokers: %s",
                APIS[request.api_key],
                request.api_version,
                reason,
            )
