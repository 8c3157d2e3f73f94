"""Read and write non-blocking sockets, with and without TLS: those of brokers, and those of clients.

A client's socket with TLS is a `TlsSocket`, as in a broker of kproto. A read with TLS takes whole records from the
kernel and leaves no decrypted bytes in OpenSSL. So the kernel reports a socket with more data as readable, as it does
without TLS.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import socket

    from kproto_server.network.tls import TlsSocket

READ_MIN_BYTES = 64 * 1024
"""The least bytes of a read: more than a TLS record has, which is 16 KiB."""


async def receive(sock: socket.socket | TlsSocket, size: int) -> bytes:
    """Return what has arrived, about ``size`` bytes; empty at the end of the connection, also after a reset.

    It always waits for the event loop once, so that a fast connection leaves time for others.

    Cancellation: no bytes are lost: they are still in the socket.
    """
    assert size >= READ_MIN_BYTES, "a record of TLS fits"
    while True:
        await trio.lowlevel.wait_readable(sock)
        try:
            return sock.recv(size) if not isinstance(sock, ssl.SSLSocket) else _records(sock, size)
        except (BlockingIOError, ssl.SSLWantReadError):
            continue
        except ssl.SSLWantWriteError:  # an update of keys
            await trio.lowlevel.wait_writable(sock)
        except OSError:
            return b""


def _records(sock: ssl.SSLSocket, size: int) -> bytes:
    """Return the data of several records of TLS."""
    pieces = [sock.recv(READ_MIN_BYTES)]
    received = len(pieces[0])
    try:
        while 0 < received < size and pieces[-1]:
            pieces.append(sock.recv(READ_MIN_BYTES))
            received += len(pieces[-1])
    except OSError:  # nothing more has arrived; an error repeats at the next read
        pass
    return b"".join(pieces)


async def send(sock: socket.socket | TlsSocket, pieces: list[bytes]) -> bool:
    """Send all pieces; return False if the other end is gone.

    Cancellation: a part of the pieces may have been sent.
    """
    if not pieces:
        return True
    view = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
    while view:
        try:
            sent = sock.send(view)
            view = view[sent:]
            if not sent:
                await trio.lowlevel.wait_writable(sock)
        except (BlockingIOError, ssl.SSLWantWriteError):
            await trio.lowlevel.wait_writable(sock)
        except ssl.SSLWantReadError:
            await trio.lowlevel.wait_readable(sock)
        except OSError:
            return False
    return True


async def accept_tls(sock: TlsSocket) -> bytes:
    """Return the first data of a client, once its handshake has ended; empty if the client is gone.

    Cancellation: the handshake is not finished; the caller closes the socket.
    """
    while not sock.is_open:
        await trio.lowlevel.wait_readable(sock)
        try:
            return sock.recv(READ_MIN_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return b""
    return await receive(sock, READ_MIN_BYTES)


async def begin_tls(sock: socket.socket, context: ssl.SSLContext, host: str) -> ssl.SSLSocket:
    """Return a socket with TLS instead of a connected one, which belongs to it.

    Raises:
        OSError: the other end has no TLS, or its certificate is refused (`ssl.SSLError`).

    Cancellation: the socket is closed, as it is after an error.
    """
    secured = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                await trio.lowlevel.wait_readable(secured)
            except ssl.SSLWantWriteError:
                await trio.lowlevel.wait_writable(secured)
            else:
                return secured
    except BaseException:
        secured.close()
        raise
