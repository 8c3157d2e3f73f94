"""Break handshakes of TLS and SASL: `python -m tests.robustness.handshakes --seconds 15`.

Method. One broker has the listeners PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL. Each connection sends the bytes of a
good conversation over a real or a broken handshake: ApiVersions, then once or several times a SASL handshake, tokens
and requests. Bytes are changed, left out, repeated, truncated, sent in pieces or together, and TLS records are split
and merged, before, during and after the handshakes. The broker has to close each connection whose client has ended.
A *finding* is an error in the log of the broker, a connection that stays open, or a client of another listener that is
not served.

The frames of a round follow from the seed and its number. The exit code is 1 if something was found.
"""

from __future__ import annotations

import argparse
import logging
import random
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from kproto.errors import KprotoError
from kproto_server.broker.broker import Broker
from kproto_server.security.oauth import unsecured_token
from tests.network.raw_client import RawClient
from tests.network.requests import topic_names
from tests.security.oauth_scripts import message

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CLOSE_LIMIT_S = 10.0
"""How long the broker may take to close a connection that the client has ended."""
HANDSHAKE_LIMIT_S = 0.2
"""How long a client waits for bytes of a handshake, which may not come: after it, the client ends the connection."""
ROUNDS_BETWEEN_CHECKS = 50
SESSION_MS = 20
"""How long a client may send requests until it has to authenticate again: some conversations take longer."""
GOOD_TOKENS = {
    "PLAIN": (b"\0alice\0secret",),
    "SCRAM-SHA-256": (b"n,,n=alice,r=abcdef", b"c=biws,r=abcdef,p=AAAA"),
    "SCRAM-SHA-512": (b"n,,n=alice,r=abcdef", b"c=biws,r=abcdef,p=" + b"A" * 88),
    "OAUTHBEARER": (),
}
RECORD_HEADER_BYTES = 5


class LoggedErrors(logging.Handler):
    """Keeps what the broker logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def frame(api_key: int, version: int, body: bytes) -> bytes:
    content = struct.pack(">hhih", api_key, version, 1, 1) + b"f" + body
    return struct.pack(">i", len(content)) + content


def conversation(choose: random.Random) -> list[bytes]:
    """Return the frames of a client that logs in and asks, and may do both again on the same connection (KIP-368)."""
    frames = [frame(18, 0, b"")] if choose.random() < 0.5 else []
    for _ in range(choose.choice((1, 1, 2, 5))):
        frames += [*login(choose), frame(16, 0, b""), frame(3, 1, struct.pack(">i", 0))]
    return frames


def login(choose: random.Random) -> list[bytes]:
    """Return the frames of one authentication, with a handshake of either version."""
    mechanism = choose.choice([*GOOD_TOKENS])
    tokens = GOOD_TOKENS[mechanism] or (message(unsecured_token("alice", issued_s=time.time())),)
    handshake_version = choose.choice((0, 1))
    name = mechanism.encode()
    frames = [frame(17, handshake_version, struct.pack(">h", len(name)) + name)]
    for token in tokens:
        size = struct.pack(">i", len(token))
        frames.append(size + token if handshake_version == 0 else frame(36, choose.choice((0, 1)), size + token))
    return frames


def damaged(data: bytes, choose: random.Random) -> bytes:
    """Return bytes with a few changes, or none."""
    kind = choose.choice(("none", "change", "truncate", "leave out", "repeat", "junk"))
    if not data or kind == "none":
        return data
    start = choose.randrange(len(data))
    end = min(len(data), start + choose.choice((1, 2, 4, 16, 64)))
    match kind:
        case "change":
            return data[:start] + choose.randbytes(end - start) + data[end:]
        case "truncate":
            return data[:start]
        case "leave out":
            return data[:start] + data[end:]
        case "repeat":
            return data[:end] + data[start:]
    return data[:start] + choose.randbytes(choose.choice((1, 100, 5000))) + data[start:]


def pieces(data: bytes, choose: random.Random) -> Iterator[bytes]:
    """Yield bytes in the pieces in which they are sent: all together, by TLS records, or anywhere."""
    if choose.random() < 0.5:
        yield data
        return
    while data:
        size = choose.choice((1, 2, RECORD_HEADER_BYTES, 17, 100, 1000, len(data)))
        yield data[:size]
        data = data[size:]


class Talk:
    """One connection, with or without TLS. The bytes on the wire can be damaged."""

    def __init__(self, address: str, context: ssl.SSLContext | None, choose: random.Random) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), CLOSE_LIMIT_S)
        self._choose = choose
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing) if context is not None else None
        self._damage_at = choose.choice(("never", "handshake", "frames", "records"))

    def send_wire(self, data: bytes) -> None:
        for piece in pieces(data, self._choose):
            self.socket.sendall(piece)

    def shake_hands(self) -> None:
        """Do the handshake of TLS, damaged or not.

        Raises:
            OSError: the broker, or OpenSSL here, does not go on.
        """
        assert self._tls is not None, "a connection with TLS"
        self.socket.settimeout(HANDSHAKE_LIMIT_S)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = self._outgoing.read()
                self.send_wire(damaged(data, self._choose) if self._damage_at == "handshake" else data)
                received = self.socket.recv(65536)
                if not received:
                    raise OSError("closed") from None
                self._incoming.write(received)
        self.send_wire(self._outgoing.read())
        self.socket.settimeout(CLOSE_LIMIT_S)

    def send_frames(self, frames: list[bytes]) -> None:
        """Send frames together or one by one, each damaged or not, in one TLS record or in several."""
        data = [damaged(one, self._choose) if self._damage_at == "frames" else one for one in frames]
        groups = [b"".join(data)] if self._choose.random() < 0.5 else data
        for group in groups:
            if self._tls is None:
                self.send_wire(group)
                continue
            for piece in pieces(group, self._choose):
                self._tls.write(piece)
            records = self._outgoing.read()
            self.send_wire(damaged(records, self._choose) if self._damage_at == "records" else records)

    def is_closed(self) -> bool:
        """End this direction; return whether the broker closes the connection in time."""
        self.socket.settimeout(CLOSE_LIMIT_S)
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


def one_round(number: int, addresses: dict[str, str], context: ssl.SSLContext, choose: random.Random) -> str | None:
    """Hold one conversation; return a finding."""
    listener = choose.choice(LISTENERS)
    has_tls = listener.endswith("SSL") == (choose.random() < 0.9)
    talk = Talk(addresses[listener], context if has_tls else None, choose)
    try:
        if choose.random() < 0.1:
            talk.send_wire(choose.randbytes(choose.choice((1, 4, 100, 20_000))))
        if has_tls:
            talk.shake_hands()
        talk.send_frames(conversation(choose))
    except OSError:  # ssl.SSLError is one
        pass
    found = None if talk.is_closed() else f"round {number}: a connection to {listener} stays open"
    talk.socket.close()
    return found


def run(seed: int, seconds: float) -> list[str]:
    """Break handshakes for some seconds; print and return what was found."""
    errors = LoggedErrors()
    logging.getLogger("kproto").addHandler(errors)
    findings: list[str] = []
    counts: Counter[str] = Counter()
    ends_s = time.monotonic() + seconds
    with Broker.running(
        tls="auto",
        sasl=[*GOOD_TOKENS],
        users={"alice": "secret"},
        listeners=[f"{name}://127.0.0.1:0" for name in LISTENERS],
        settings={"connection.failed.authentication.delay.ms": 0, "connections.max.reauth.ms": SESSION_MS},
    ) as broker:
        addresses = {name: broker.servers_of(name) for name in LISTENERS}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with RawClient(addresses["PLAINTEXT"]) as control:
            while time.monotonic() < ends_s and not findings:
                number = counts["connections"] = counts["connections"] + 1
                choose = random.Random(f"{seed} {number}")  # noqa: S311 - a round can be repeated
                found = one_round(number, addresses, context, choose)
                findings += [found] if found else []
                if number % ROUNDS_BETWEEN_CHECKS == 0:
                    try:
                        topic_names(control)
                    except (OSError, KprotoError, AssertionError) as error:
                        findings.append(f"round {number}: the control connection: {error!r}")
                findings += [f"round {number}: {line}" for line in errors.lines]
    logging.getLogger("kproto").removeHandler(errors)
    print(f"seed {seed}: {counts['connections']} connections, {len(findings)} findings", *findings, sep="\n")
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.handshakes", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    return 1 if run(arguments.seed, arguments.seconds) else 0


if __name__ == "__main__":
    sys.exit(main())
