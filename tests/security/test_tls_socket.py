"""TLS over any division of the bytes: a client of OpenSSL and a `TlsSocket`, with no socket between them."""

from __future__ import annotations

import ssl
from functools import cache
from random import Random

import pytest

from kproto_server.broker.tls import Tls
from kproto_server.configuration.settings import Settings
from kproto_server.network import tls
from kproto_server.network.tls import TlsSocket
from kproto_server.security.certificates import CertificateKind


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a broker and of a client that trusts it."""
    files = Tls(CertificateKind.AUTO, [], Settings(), None)
    found = files.context(Settings()), ssl.create_default_context(cafile=str(files.files.ca_file))
    files.close()
    return found


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same in each run


class Pipe:
    """The raw socket of a broker's end: bytes arrive in pieces, and the kernel takes few at once."""

    def __init__(self, random: Random, sent_max: int) -> None:
        self.arrived = bytearray()
        self.taken = bytearray()
        self.is_closed = False
        self.room = sent_max
        self._random = random
        self.sent_max = sent_max

    def recv(self, size: int, /) -> bytes:
        if not self.arrived:
            raise BlockingIOError
        piece = bytes(self.arrived[: min(size, self._random.choice((1, 5, 100, 20_000)))])
        del self.arrived[: len(piece)]
        return piece

    def send(self, data: bytes | memoryview, /) -> int:
        if not self.room:
            raise BlockingIOError
        size = min(len(data), self.room)
        self.room -= size
        self.taken += data[:size]
        return size

    def make_room(self) -> None:
        self.room = self.sent_max

    def fileno(self) -> int:
        return -1

    def setsockopt(self, level: int, option: int, value: bytes, /) -> None:
        raise AssertionError("not used")

    def close(self) -> None:
        self.is_closed = True


class Pair:
    """A client and a broker's end."""

    def __init__(self, seed: int = 0, sent_max: int = 100_000) -> None:
        self.failures: list[str] = []
        self.pipe = Pipe(seeded(seed), sent_max)
        server_context, client_context = contexts()
        self.broker = TlsSocket(server_context, self.pipe, self.failures.append)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client_context.wrap_bio(self._in, self._out, server_hostname="localhost")

    def pump(self) -> bytes:
        """Move all bytes; return the data that the broker's end has read."""
        found = b""
        while True:
            self._in.write(bytes(self.pipe.taken))
            self.pipe.taken.clear()
            self.pipe.make_room()
            self.pipe.arrived += self._out.read()
            if not self.pipe.arrived:
                return found
            try:
                found += self.broker.recv(65536)
            except BlockingIOError:
                continue

    def damage(self, random: Random) -> None:
        """Change a byte of what the client has written, behind the header of the record, as it arrives."""
        data = bytearray(self._out.read())
        data[random.randrange(5, len(data))] ^= 1 << random.randrange(8)
        self.pipe.arrived += data

    def receive(self) -> bytes:
        """Return what the broker's end reads of all that the client has written."""
        self.pipe.arrived += self._out.read()
        return read_arrived(self)

    def shake_hands(self) -> None:
        while True:
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.pump()
            else:
                self.pump()
                return


@pytest.mark.parametrize("seed", range(20))
def test_what_the_client_sends_is_read_whatever_the_pieces(seed: int) -> None:
    random, pair = seeded(seed), Pair(seed)
    pair.shake_hands()
    sent = [random.randbytes(random.choice((1, 16_384, 50_000))) for _ in range(10)]
    for data in sent:
        pair.client.write(data)
    assert pair.pump() == b"".join(sent)
    assert pair.client.version() == "TLSv1.3"


@pytest.mark.parametrize("sent_max", [1, 999, 16_407, 70_000])
def test_a_client_that_reads_slowly_gets_everything_once(sent_max: int) -> None:
    data = memoryview(seeded(1).randbytes(200_000 if sent_max > 1 else 500))
    pair = Pair()
    pair.shake_hands()
    pair.pipe.sent_max = sent_max
    left, found = data, b""
    while left:
        left = left[pair.broker.send(left) :]  # as the transport does: what is left is sent again
        pair.pump()
        found += read_all(pair.client)
    assert found == data


def read_all(client: ssl.SSLObject) -> bytes:
    found = b""
    try:
        while piece := client.read(65536):
            found += piece
    except ssl.SSLWantReadError:
        pass
    return found


def test_the_end_of_the_client_is_the_end_of_the_data() -> None:
    pair = Pair()
    pair.shake_hands()
    pair.client.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    assert pair.pump() == b"last"


def test_closing_says_so_to_the_client() -> None:
    pair = Pair()
    pair.shake_hands()
    pair.broker.close()
    assert pair.pipe.is_closed
    pair.pump()
    assert pair.client.read(1) == b""


@pytest.mark.parametrize("seed", range(100))
def test_damaged_bytes_end_the_connection_and_nothing_of_them_is_read(seed: int) -> None:
    random, pair = seeded(seed), Pair(seed)
    pair.shake_hands()
    pair.client.write(b"good")
    assert pair.pump() == b"good"
    pair.client.write(random.randbytes(100))
    pair.damage(random)
    with pytest.raises(ssl.SSLError):
        read_arrived(pair)
    assert [reason.startswith("TLS: ") for reason in pair.failures] == [True]


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_handshake_is_refused_or_waits(seed: int) -> None:
    random, pair = seeded(seed), Pair(seed)
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.do_handshake()
    pair.damage(random)
    try:
        assert read_arrived(pair) == b""
    except ssl.SSLError:
        assert len(pair.failures) == 1


def read_arrived(pair: Pair) -> bytes:
    """Return what the broker reads of the bytes that have arrived."""
    found = b""
    while pair.pipe.arrived:
        try:
            found += pair.broker.recv(65536)
        except BlockingIOError:
            continue
    return found


@pytest.mark.parametrize("unsent_max", [tls.UNSENT_MAX_BYTES, 1000])
def test_what_arrives_is_read_while_the_client_reads_nothing(monkeypatch: pytest.MonkeyPatch, unsent_max: int) -> None:
    """A proxy reads requests while a response is on its way; what may wait is limited."""
    monkeypatch.setattr(tls, "UNSENT_MAX_BYTES", unsent_max)
    pair = Pair()
    pair.shake_hands()
    pair.pipe.room = pair.pipe.sent_max = 100
    data = memoryview(bytes(200_000))
    left = data[pair.broker.send(data) :]
    pair.client.write(b"request")
    if unsent_max == 1000:
        with pytest.raises(OSError, match="does not read"):
            pair.receive()
        return
    assert pair.receive() == b"request"
    found = b""
    while left:
        left = left[pair.broker.send(left) :]
        pair.pump()
        found += read_all(pair.client)
    assert found == data
