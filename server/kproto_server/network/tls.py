"""TLS of a client's connection: a socket whose `recv` decrypts and whose `send` encrypts.

Theory of operation. `TlsSocket` stands where a plain socket stands in a transport, and has those of its methods that a
transport calls; so secured connections are read, delayed, limited and closed by the same code. OpenSSL never sees the
socket: it reads and writes two buffers in memory, and the bytes between them and the socket are moved here. So a bad
network (`links`) stands below TLS, and any division of the bytes can be tried without a socket.

The handshake happens in `recv`, which has no data for the transport until it has ended. What a client must take before
anything else can be sent, from the handshake or an update of keys, has to fit the socket's buffer: a client that does
not read loses its connection.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.network.half_open import HalfOpenTransport
from kproto_server.network.poller import HANGUP, READ
from kproto_server.network.transport import NOTHING
from kproto_server.security.principals import NoMatchingRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.connection.connection import Connection
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.transport import ClientSocket, Transport

ENCRYPTED_AT_ONCE_BYTES = 65536
"""Bytes that are encrypted before the socket is tried again."""
UNSENT_MAX_BYTES = 2 * ENCRYPTED_AT_ONCE_BYTES
"""Encrypted bytes that may wait while more is received: a part of a `send`, and a few messages of TLS itself."""
RECORD_MAX_BYTES = 16384
"""The data of one record of TLS: OpenSSL returns not more at once."""
RECORD_TYPES = range(0x14, 0x18)
"""The first byte of a record of TLS; that of a request without it is 0, as it is the first one of its size."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""`ssl.enabled.protocols`."""
SESSION_TICKETS = 1
"""Tickets of TLS 1.3 that a client gets to resume its session, as from Java. OpenSSL would send two, which costs 5 % of
the handshakes per second."""
READS_END = frozenset({READ, HANGUP}) - {NOTHING}
"""What a transport watches for when it would notice a FIN."""
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
"""`ssl.client.auth`."""


def server_context(
    certificate_file: str,
    key_file: str,
    *,
    has_weak_key: bool,
    client_ca_file: str,
    client_auth: str,
    protocols: Iterable[str],
) -> ssl.SSLContext:
    """Return the context of a broker's connections.

    ``has_weak_key``: OpenSSL would refuse the key; ``client_ca_file``: the CA of the clients' certificates;
    ``client_auth``: a value of `ssl.client.auth`; ``protocols``: values of `ssl.enabled.protocols`.

    Raises:
        UsageError: a file cannot be read or used, or no version of TLS is enabled.
    """
    versions = sorted(VERSIONS[name] for name in protocols if name in VERSIONS)
    if not versions:
        raise UsageError(f"ssl.enabled.protocols has none of {', '.join(VERSIONS)}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = SESSION_TICKETS
    context.set_ciphers("DEFAULT:@SECLEVEL=0" if has_weak_key else "DEFAULT")
    try:
        context.load_cert_chain(certificate_file, key_file)
        # OpenSSL completes the chain that it sends from the CAs of clients. A scanner warns of a CA in it.
        wants_certificates = CLIENT_AUTH[client_auth] is not ssl.CERT_NONE
        (context if wants_certificates else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).load_verify_locations(
            client_ca_file
        )
    except ssl.SSLError as error:
        raise UsageError(f"TLS: {certificate_file!r} and {key_file!r}: {error.reason}") from None
    except OSError as error:
        raise UsageError(f"TLS: can't read {error.filename or certificate_file!r}: {error.strerror}") from None
    context.verify_mode = CLIENT_AUTH[client_auth]
    return context


class TlsSocket:
    """One client's socket with TLS on top. Owns the socket; not blocking, as the socket."""

    __slots__ = (
        "_encrypted_size", "_incoming", "_on_failure", "_on_handshake", "_outgoing", "_raw", "_ssl", "_unsent",
        "has_ended", "is_open",
    )  # fmt: skip

    def __init__(
        self,
        context: ssl.SSLContext,
        raw: ClientSocket,
        on_failure: Callable[[str], object],
        on_handshake: Callable[[str, str, bytes | None], object] | None = None,
    ) -> None:
        """``on_failure``: called with the reason when the client does something that TLS does not allow.
        ``on_handshake``: called at its end with the version of TLS, the cipher as OpenSSL names it, and the certificate
        of the client in DER (None: it has none); may raise `NoMatchingRule`.
        """
        self._raw = raw
        self._on_failure = on_failure
        self._on_handshake = on_handshake
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_open: bool = False
        """Whether the handshake has ended."""
        self.has_ended: bool = False
        """Whether the client has said that it ends (close_notify): `recv` returns b"" from now on."""
        self._unsent = b""
        """Encrypted bytes that the kernel has not taken."""
        self._encrypted_size = 0
        """How many of the next bytes of `send` they are."""

    def recv(self, size: int) -> bytes:
        """Return the data in what has arrived; b"" at the end of the connection.

        Raises:
            BlockingIOError: nothing has arrived that has data.
            OSError: the connection is broken, or the client has violated TLS.
        """
        encrypted = b"" if self.has_ended else self._raw.recv(size)
        if not encrypted:
            return b""
        self._incoming.write(encrypted)
        pieces: list[bytes] = []
        try:
            if not self.is_open:
                self._ssl.do_handshake()
                self.is_open = True
                self._note_handshake()
            # Only while there is something to decrypt: the exception that ends a read of nothing costs as much again.
            # A read returns all data of a record, so OpenSSL itself keeps none.
            while self._incoming.pending and not self.has_ended:
                piece = self._ssl.read(RECORD_MAX_BYTES)
                pieces.append(piece)
                self.has_ended = not piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.has_ended = True
        except ssl.SSLError as error:
            with suppress(OSError):
                self._flush()  # an alert says why
            self._on_failure(_reason(error, encrypted, self.is_open))
            raise
        if not self._flush() and (not self._encrypted_size or len(self._unsent) > UNSENT_MAX_BYTES):
            raise OSError("the client does not read what TLS sends")
        if pieces or self.has_ended:
            return b"".join(pieces)
        raise BlockingIOError

    def _note_handshake(self) -> None:
        if self._on_handshake is None:
            return
        cipher = self._ssl.cipher()
        assert cipher is not None, "the handshake has ended"
        try:
            self._on_handshake(self._ssl.version() or "", cipher[0], self._ssl.getpeercert(binary_form=True))
        except NoMatchingRule as error:
            self._flush()  # the handshake itself has succeeded
            self._on_failure(str(error))
            raise OSError(str(error)) from None

    def send(self, data: bytes | memoryview) -> int:
        """Return how many bytes the kernel has taken. The next call begins with those behind them.

        Raises:
            OSError: the connection is broken.
        """
        if not self._flush():
            return 0
        sent, self._encrypted_size = self._encrypted_size, 0
        view = memoryview(data)
        while sent < len(view):
            size = self._ssl.write(view[sent : sent + ENCRYPTED_AT_ONCE_BYTES])
            if not self._flush():
                self._encrypted_size = size
                break
            sent += size
        return sent

    def _flush(self) -> bool:
        """Send encrypted bytes; return whether the kernel has taken all."""
        if not self._unsent and not self._outgoing.pending:
            return True
        data = self._unsent + self._outgoing.read()
        try:
            sent = self._raw.send(data)
        except BlockingIOError:
            sent = 0
        self._unsent = data[sent:]
        return not self._unsent

    def replace_raw(self, raw: ClientSocket) -> ClientSocket:
        """Go on over another socket, and return the former one, which belongs to the caller now."""
        former, self._raw = self._raw, raw
        return former

    def fileno(self) -> int:
        return self._raw.fileno()

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        self._raw.setsockopt(level, option, value)

    def close(self) -> None:
        """Send the client the end of TLS, if the kernel takes it at once, and close the socket."""
        if self.is_open:
            with suppress(OSError):
                self._ssl.unwrap()
        with suppress(OSError):
            self._flush()
        self._raw.close()


class TlsTransport(HalfOpenTransport):
    """The transport of a connection with TLS; it is half-open until the handshake has ended, too.

    A client can end TLS and leave the socket open, until the broker does the same. If the end has come with the data of
    a read, nothing more arrives: the transport reads the end itself, when it would read a FIN.
    """

    __slots__ = ("_tls",)

    def __init__(
        self,
        loop: EventLoop,
        sock: TlsSocket,
        connection: Connection,
        on_closed: Callable[[Transport], None],
        idle_max_ms: int,
    ) -> None:
        self._tls = sock
        super().__init__(loop, sock, connection, on_closed, idle_max_ms)

    @property
    def is_half_open(self) -> bool:
        """Whether the handshake has not ended, or the client is not authenticated."""
        return not self._tls.is_open or super().is_half_open

    @property
    def has_costly_read(self) -> bool:
        """Whether the handshake has not ended: it takes 0.2 ms, which many clients may ask for at once."""
        return not self._tls.is_open

    def on_ready(self, mask: int, now_ms: int) -> None:
        was_open = self._tls.is_open
        HalfOpenTransport.on_ready(self, mask, now_ms)
        if not was_open:
            dispatcher = self._connection.dispatcher
            dispatcher.note_time(dispatcher.monotonic_s())
        self._queue_end()

    def _watch(self, interest: int) -> None:
        super()._watch(interest)
        self._queue_end()

    def _queue_end(self) -> None:
        """Have the end of the client read, after the responses of this iteration are sent."""
        if self._tls.has_ended and self.fd >= 0 and self._interest in READS_END:
            self._loop.post(self._read_end)

    def _read_end(self) -> None:
        if self.fd >= 0 and self._interest in READS_END:
            self.on_ready(self._interest, self._loop.clock.now_ms())

    def replace_socket(self, sock: socket.socket) -> socket.socket:
        former = self._tls.replace_raw(sock)
        assert isinstance(former, socket.socket), "TLS stands on a plain socket"
        self._exchange_socket(self._tls)
        return former


def _reason(error: ssl.SSLError, data: bytes, is_open: bool) -> str:
    """Return why a connection ends, for the log and the report."""
    if not is_open and data[0] not in RECORD_TYPES:
        what = "HTTP" if error.reason in ("HTTP_REQUEST", "HTTPS_PROXY_REQUEST") else "a request without TLS"
        return f"{what} on a listener with TLS"
    return f"TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
