"""Make the listening sockets, before any slow import, so that clients can connect early (D14)."""

from __future__ import annotations

import socket

from kproto.errors import KprotoError

BACKLOG = 1024
"""Connections that can wait for accept. With Kafka's default of 50 a burst of clients has to retry its SYN."""


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that is bound and does not listen; port 0 is a free port. The caller closes it.

    A stopped broker keeps its address this way: clients are refused, and the system gives the port to no other socket.
    A process that asks for this address can have it on Linux all the same; the first of the two that listens keeps it.

    Raises:
        OSError: the address is in use, does not belong to this machine, or is no host name.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.setblocking(False)
    except OverflowError:
        sock.close()
        raise OSError("ports end at 65535") from None
    except (TypeError, UnicodeError):  # IDNA refuses it
        sock.close()
        raise OSError("it is no host name") from None
    except BaseException:
        sock.close()
        raise
    return sock


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is a free port. The caller closes it.

    Raises:
        OSError: the address is in use or does not belong to this machine.
    """
    sock = reserve(host, port)
    try:
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


class CannotListen(KprotoError):
    """A broker cannot listen on an address; the text is one line for the user."""


def open_sockets(host: str, ports: tuple[int, ...], started: int | None = None) -> list[socket.socket]:
    """Return one socket for each port: the first ``started`` (all by default) listen, the others are only bound.

    The caller closes them.

    Raises:
        CannotListen: an address is in use; the text says what to do. No socket stays open.
    """
    sockets: list[socket.socket] = []
    try:
        for number, port in enumerate(ports):
            open_socket = listen if started is None or number < started else reserve
            sockets.append(open_socket(host, port))
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise CannotListen(
            f"can't listen on {host}:{port}: {error.strerror or error}; choose another --host or --port (0: a free one)"
        ) from None
    return sockets
