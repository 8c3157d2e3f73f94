"""The cluster behind the proxy: connect to its brokers, and find out its release."""

from __future__ import annotations

import os
import socket
import ssl
from typing import TYPE_CHECKING, TypeVar

import trio

from kproto.codes import ErrorCode
from kproto.errors import KprotoError, ProtocolError, UsageError
from kproto.framing import FrameReader
from kproto.headers import read_response, request_frame
from kproto.message import Response
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from kproto_server.configuration.listeners import bracketed
from kproto_server.proxy.sockets import READ_MIN_BYTES, begin_tls, receive, send
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names
from kproto_server.security.sasl import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.message import Request
    from kproto_server.proxy.rewriting import Address

R = TypeVar("R", bound=Response)

CONNECT_LIMIT_S = 10.0
"""Clients wait 10 s (Java's socket.connection.setup.timeout.ms) to 30 s (librdkafka's)."""
RESPONSE_LIMIT_S = 10.0
RESPONSE_SIZE_MAX_BYTES = 1 << 20
"""Bytes of a response of ApiVersions; Kafka's has 700."""


class CannotReach(KprotoError):
    """A broker cannot be reached, or does not respond; the text is one line for the user."""


async def connect(address: Address, tls: ssl.SSLContext | None = None) -> socket.socket:
    """Return a connected socket that does not block; the caller closes it.

    Args:
        tls: None: the cluster's listeners have no TLS.

    Raises:
        CannotReach: nothing listens there, the host has no address, its certificate is refused, or all this takes
            longer than `CONNECT_LIMIT_S`.

    Cancellation: the connection is closed.
    """
    host, port = address
    reason = f"no connection within {CONNECT_LIMIT_S:g} s"
    with trio.move_on_after(CONNECT_LIMIT_S):
        try:
            stream = await trio.open_tcp_stream(host, port)
        except UnicodeError:  # of IDNA 2008, which refuses more than the resolver
            reason = "it is no host name"
        except OSError as error:
            cause = error.__cause__  # of several addresses, the reasons are in a group
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            shown = cause if isinstance(cause, OSError) else error
            # The text of trio's own errors names the address once more; those of the resolver have negative numbers.
            number = shown.errno or 0
            reason = os.strerror(number) if number > 0 else shown.strerror or str(shown)
        else:
            sock = socket.socket(fileno=stream.socket.detach())
            sock.setblocking(False)
            prepare(sock)
            if tls is None:
                return sock
            try:
                return await begin_tls(sock, tls, host)
            except ssl.SSLCertVerificationError as refused:
                reason = f"its certificate is refused: {refused.verify_message}"
            except OSError as error:
                reason = f"no TLS: {getattr(error, 'reason', None) or error.strerror or 'it closed the connection'}"
    raise CannotReach(f"can't connect to {shown_address(address)}: {reason}")


def prepare(sock: socket.socket) -> None:
    """Set the options of a connection: small pieces are sent at once, and a machine that is gone is noticed."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # trio sets it to 16 KiB
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 1 << 20)


def tls_context(ca_file: str, certificate_file: str | None = None, key_file: str | None = None) -> ssl.SSLContext:
    """Return a context that trusts the CA certificates of a PEM file, and checks the names of brokers.

    Args:
        certificate_file: has the certificate for brokers that ask for one, in PEM; None: there is none.
        key_file: has the private key of the certificate, in PEM; None: it is in the same file.

    Raises:
        UsageError: a file can't be read or used.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise UsageError(f"--upstream-tls-ca: no CA certificate in PEM format in {ca_file!r}") from None
    except OSError as error:
        raise UsageError(f"--upstream-tls-ca: can't read {ca_file!r}: {error.strerror}") from None
    if certificate_file is not None:
        _load_certificate(context, certificate_file, key_file)
    return context


def _load_certificate(context: ssl.SSLContext, certificate_file: str, key_file: str | None) -> None:
    for option, path in (("certificate", certificate_file), ("key", key_file)):
        try:
            if path is not None:
                open(path, "rb").close()
        except OSError as error:
            raise UsageError(f"--upstream-tls-{option}: can't read {path!r}: {error.strerror}") from None

    def no_password() -> str:  # OpenSSL would ask on the terminal
        raise UsageError(f"--upstream-tls-key: the key in {key_file or certificate_file!r} has a password: remove it")

    try:
        context.load_cert_chain(certificate_file, key_file, no_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "the private key is that of another certificate"
        elif key_file is None:
            reason = f"no certificate with its private key in PEM format in {certificate_file!r}"
        else:
            reason = f"no certificate in PEM format in {certificate_file!r}, or no private key in {key_file!r}"
        raise UsageError(f"--upstream-tls-certificate: {reason}") from None


def shown_address(address: Address) -> str:
    """Return HOST:PORT."""
    return f"{bracketed(address[0])}:{address[1]}"


async def served_versions(address: Address, tls: ssl.SSLContext | None = None) -> dict[int, tuple[int, int]]:
    """Return the API versions that a broker serves, by API key.

    Raises:
        CannotReach: it cannot be reached, or does not respond to ApiVersions, as Kafka before 0.10 or one with TLS.

    Cancellation: the connection is closed.
    """
    sock = await connect(address, tls)
    try:
        response = await _asked(sock, ApiVersionsRequest(), ApiVersionsResponse, 0)
    finally:
        sock.close()
    if response is not None:
        return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    raise CannotReach(
        f"{shown_address(address)} does not respond to ApiVersions: give the release of a Kafka before 0.10 by "
        "--kafka-version, and the CA of a listener with TLS by --upstream-tls-ca"
    )


async def mechanisms_of(address: Address, version: int, tls: ssl.SSLContext | None = None) -> tuple[str, ...]:
    """Return the mechanisms of SASL that a broker has enabled; none: its listener has no SASL, or it does not respond.

    The proxy chooses PLAIN, and ends the connection before it sends a password. A broker that has PLAIN logs nothing;
    one that does not have it logs a failed authentication, as there is no other request for its mechanisms.

    Args:
        version: of SaslHandshake.

    Raises:
        CannotReach: it cannot be reached.

    Cancellation: the connection is closed.
    """
    sock = await connect(address, tls)
    try:
        response = await _asked(sock, SaslHandshakeRequest(mechanism=PLAIN), SaslHandshakeResponse, version)
    finally:
        sock.close()
    if response is None or response.error_code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_SASL_MECHANISM):
        return ()
    return response.mechanisms


async def _asked(sock: socket.socket, request: Request, api: type[R], version: int) -> R | None:
    """Send a request; return its response, None if there is none within `RESPONSE_LIMIT_S`.

    Cancellation: the request may have been sent.
    """
    reader = FrameReader(RESPONSE_SIZE_MAX_BYTES)
    try:
        with trio.move_on_after(RESPONSE_LIMIT_S):
            await send(sock, [request_frame(request, version, correlation_id=1, client_id="kproto-proxy")])
            while data := await receive(sock, READ_MIN_BYTES):
                reader.feed(data)
                for frame in reader.frames():
                    return read_response(frame, api, version)[1]
    except ProtocolError:
        pass
    return None


def release_of(served: Mapping[int, tuple[int, int]]) -> KafkaVersion:
    """Return the Kafka version whose API versions are the most similar; of several, the newest."""
    names = [name + mode for name in reversed(kafka_version_names()) for mode in ("", "-zookeeper")]
    versions = [KafkaVersion.named()]
    for name in names:
        try:
            versions.append(KafkaVersion.named(name))
        except ValueError:  # the release has one mode
            continue
    return min(versions, key=lambda version: _differences(served, version))


def _differences(served: Mapping[int, tuple[int, int]], version: KafkaVersion) -> int:
    return sum(
        served.get(key) != version.api_versions.get(key)
        for key in served.keys() | version.api_versions.keys()
        if not version.is_internal(key)
    )
