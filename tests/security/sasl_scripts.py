"""What clients send to a listener with SASL, right and wrong, and the transcript of what they get.

A script is a list of steps: each sends a frame and takes the next one, or the end of the connection. Frames are written
by hand, so a transcript is evidence of the bytes, not of a codec. The user is alice, her password "secret".
"""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable

from tests.waiting import LIMIT_S

PASSWORD = "secret"  # noqa: S105 - of a test
Step = Callable[["Client"], None]
CLOSED = "closed"
LONG_BYTES = 400
"""Longer responses are kept by their first bytes: those of ApiVersions."""


class Client:
    """One connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), LIMIT_S)
        self._correlation_id = 0
        self.first_bare = self.server_first = b""

    def send(self, api_key: int, version: int, body: bytes, *, flexible: bool = False) -> None:
        self._correlation_id += 1
        header = struct.pack(">hhih", api_key, version, self._correlation_id, 1) + b"t"
        self.send_frame(header + (b"\0" if flexible else b"") + body)

    def send_frame(self, frame: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except ConnectionError:
            return  # the next read says so

    def read(self) -> bytes | None:
        """Return the next frame; None: the connection has ended."""
        size = self._read_bytes(4)
        return None if size is None else self._read_bytes(int.from_bytes(size, "big"))

    def _read_bytes(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not piece:
                return None
            data += piece
        return data

    def close(self) -> None:
        self._socket.close()


def transcript(address: str, steps: list[Step]) -> list[str]:
    """Return what each step gets, in hexadecimal; up to the end of the connection."""
    client, found = Client(address), []
    host, _, port = address.rpartition(":")
    own = len(host).to_bytes(2, "big") + host.encode() + struct.pack(">i", int(port))
    for step in steps:
        step(client)
        frame = client.read()
        if frame is None:
            found.append(CLOSED)
            break
        if b"r=" in frame and b",s=" in frame:
            client.server_first = frame[frame.index(b"r=") : re.search(rb",i=\d+", frame).end()]  # type: ignore[union-attr]
            found.append("server first: nonce, salt and iterations")
        elif b"v=" in frame:
            found.append("server final: the broker knows the password")
        else:
            known = frame.replace(own, b"address")
            found.append(known.hex() if len(known) <= LONG_BYTES else f"{known[:8].hex()} and more")
    client.close()
    return found


def handshake(mechanism: str, version: int = 1) -> Step:
    encoded = mechanism.encode()
    return lambda client: client.send(17, version, struct.pack(">h", len(encoded)) + encoded)


def authenticate(token: bytes, version: int = 0) -> Step:
    if version == 2:
        return lambda client: client.send(36, 2, bytes((len(token) + 1,)) + token + b"\0", flexible=True)
    return lambda client: client.send(36, version, struct.pack(">i", len(token)) + token)


def raw(token: bytes) -> Step:
    return lambda client: client.send_frame(token)


def api_versions(client: Client) -> None:
    client.send(18, 0, b"")


def newer_api_versions(client: Client) -> None:
    """Ask for the versions in a version that no release has."""
    client.send(18, 99, b"", flexible=True)


def api_versions_of_unnamed_software(client: Client) -> None:
    client.send(18, 3, b"\1\1\0", flexible=True)


def metadata(client: Client) -> None:
    client.send(3, 1, struct.pack(">i", 0))


def metadata_of_topics(client: Client) -> None:
    names = b"".join(struct.pack(">h", len(name)) + name for name in (b"orders", b"payments"))
    client.send(3, 1, struct.pack(">i", 2) + names)


def metadata_of_no_topic(client: Client) -> None:
    """Ask for a topic without a name, and without an id: a name may be null in this version, but not in responses."""
    client.send(3, 10, b"\2" + bytes(16) + b"\0\0\1\0\0\0", flexible=True)


def list_groups(client: Client) -> None:
    client.send(16, 0, b"")


def client_first(user: str = "alice", header: str = "n,,") -> Step:
    def step(client: Client) -> None:
        client.first_bare = f"n={user},r=abc".encode()
        token = header.encode() + client.first_bare
        client.send(36, 0, struct.pack(">i", len(token)) + token)

    return step


def client_final(password: str = PASSWORD, binding: str = "biws", nonce: str = "", junk: str = "") -> Step:
    """The proof of SCRAM-SHA-256. ``nonce``: another one; ``junk``: instead of the proof."""

    def step(client: Client) -> None:
        first = client.server_first.decode()
        if not first:
            token = b"c=biws,r=abc,p=AAAA"
        else:
            parts = dict(part.split("=", 1) for part in first.split(","))
            salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(parts["s"]), int(parts["i"]))
            key = hmac.digest(salted, b"Client Key", "sha256")
            without_proof = f"c={binding},r={nonce or parts['r']}"
            message = client.first_bare + b"," + client.server_first + b"," + without_proof.encode()
            signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
            proof = junk or b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
            token = f"{without_proof},p={proof}".encode()
        client.send(36, 0, struct.pack(">i", len(token)) + token)

    return step


GOOD = b"\0alice\0secret"
SCRAM = "SCRAM-SHA-256"
SCRIPTS: dict[str, list[Step]] = {
    "ApiVersions twice": [api_versions, api_versions],
    "ApiVersions of a newer client": [newer_api_versions, newer_api_versions, api_versions, handshake("PLAIN")],
    "ApiVersions of a newer client, and no other": [newer_api_versions, handshake("PLAIN"), authenticate(GOOD)],
    "ApiVersions of unnamed software": [api_versions_of_unnamed_software, api_versions, api_versions],
    "Metadata first": [metadata],
    "SaslAuthenticate first": [authenticate(GOOD)],
    "a token first": [raw(GOOD)],
    "an unknown mechanism": [handshake("FOO"), list_groups],
    "a mechanism in small letters": [handshake("plain"), list_groups],
    "Metadata after the handshake": [handshake("PLAIN"), metadata, list_groups],
    "Metadata of topics after the handshake": [handshake("PLAIN"), metadata_of_topics, list_groups],
    "Metadata of no topic after the handshake": [handshake("PLAIN"), metadata_of_no_topic, list_groups],
    "ListGroups after the handshake": [handshake("PLAIN"), list_groups, list_groups],
    "ApiVersions after the handshake": [handshake("PLAIN"), api_versions, list_groups],
    "ApiVersions of a newer client after the handshake": [handshake("PLAIN"), newer_api_versions, list_groups],
    "the handshake twice": [handshake("PLAIN"), handshake("PLAIN"), list_groups],
    "PLAIN, v0": [handshake("PLAIN"), authenticate(GOOD), metadata],
    "PLAIN, v1": [handshake("PLAIN"), authenticate(GOOD, 1), metadata],
    "PLAIN, v2": [handshake("PLAIN"), authenticate(GOOD, 2), metadata],
    "PLAIN after ApiVersions": [api_versions, handshake("PLAIN"), authenticate(GOOD), list_groups],
    "ApiVersions after authentication": [handshake("PLAIN"), authenticate(GOOD), api_versions, api_versions],
    "authentication again": [handshake("PLAIN"), authenticate(GOOD), handshake("PLAIN"), authenticate(GOOD)],
    "PLAIN, a wrong password": [handshake("PLAIN"), authenticate(b"\0alice\0wrong"), list_groups],
    "PLAIN, an unknown user": [handshake("PLAIN"), authenticate(b"\0unknown\0secret"), list_groups],
    "PLAIN, two tokens": [handshake("PLAIN"), authenticate(b"alice\0secret"), list_groups],
    "PLAIN, four tokens": [handshake("PLAIN"), authenticate(GOOD + b"\0"), list_groups],
    "PLAIN, six tokens": [handshake("PLAIN"), authenticate(GOOD + b"\0a\0b\0c"), list_groups],
    "PLAIN, no user": [handshake("PLAIN"), authenticate(b"\0\0secret"), list_groups],
    "PLAIN, no password": [handshake("PLAIN"), authenticate(b"\0alice\0"), list_groups],
    "PLAIN, the own authorization id": [handshake("PLAIN"), authenticate(b"alice" + GOOD), list_groups],
    "PLAIN, another authorization id": [handshake("PLAIN"), authenticate(b"bob" + GOOD), list_groups],
    "PLAIN, no UTF-8": [handshake("PLAIN"), authenticate(b"\0al\xffice\0secret"), list_groups],
    "PLAIN, nothing": [handshake("PLAIN"), authenticate(b""), list_groups],
    "PLAIN without headers": [handshake("PLAIN", 0), raw(GOOD), list_groups],
    "PLAIN without headers, a wrong password": [handshake("PLAIN", 0), raw(b"\0alice\0wrong")],
    "SCRAM": [handshake(SCRAM), client_first(), client_final(), list_groups],
    "SCRAM, a wrong password": [handshake(SCRAM), client_first(), client_final("wrong"), list_groups],
    "SCRAM, another channel binding": [handshake(SCRAM), client_first(), client_final(binding="eSws"), list_groups],
    "SCRAM, another nonce": [handshake(SCRAM), client_first(), client_final(nonce="abcdef"), list_groups],
    "SCRAM, junk as proof": [handshake(SCRAM), client_first(), client_final(junk="AAAA"), list_groups],
    "SCRAM, a proof that is no base64": [handshake(SCRAM), client_first(), client_final(junk="A"), list_groups],
    "SCRAM, an unknown user": [handshake(SCRAM), client_first("unknown"), list_groups],
    "SCRAM, channel binding not used": [handshake(SCRAM), client_first(header="y,,"), list_groups],
    "SCRAM, the own authorization id": [handshake(SCRAM), client_first(header="n,a=alice,"), client_final(
        binding="bixhPWFsaWNlLA=="), list_groups],
    "SCRAM, another authorization id": [handshake(SCRAM), client_first(header="n,a=bob,"), list_groups],
    "SCRAM, junk": [handshake(SCRAM), authenticate(b"junk"), list_groups],
    "SCRAM, nothing": [handshake(SCRAM), authenticate(b""), list_groups],
    "SCRAM, an extension": [handshake(SCRAM), authenticate(b"n,,n=alice,r=abc,x=1"), list_groups],
    "SCRAM, the proof first": [handshake(SCRAM), client_final(), list_groups],
    "a frame of 600,000 bytes": [lambda client: client.send_bytes(struct.pack(">i", 600_000))],
    "a frame of negative size": [lambda client: client.send_bytes(struct.pack(">i", -1))],
}  # fmt: skip
