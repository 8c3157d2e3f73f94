"""kproto and Kafka with a SASL_SSL listener: the same certificate, TLS 1.3, and SASL/PLAIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.model import KPROTO
from bench.peers.durability import Durability
from bench.peers.kafka import Kafka
from bench.peers.kproto import BEFORE, Kproto
from bench.peers.server import DEFAULTS, HOST, Launch, Peer
from tests.oracle.ports import free_port

USER, PASSWORD = "bench", "bench-secret"
MECHANISM = "PLAIN"
PROTOCOL = "SASL_SSL"
IN_MEMORY: Mapping[Durability, Durability] = {"memory": "memory"}


class Certificates:
    """The certificate of the servers, made once, in a directory that the caller owns."""

    def __init__(self, directory: Path) -> None:
        from kproto_server.security.tls_files import TlsFiles

        files = TlsFiles(str(directory), [HOST])
        self.directory = files.directory
        self.ca_file = files.ca_file
        self.key_store_file = files.directory / "key-store.pem"
        """The key and the certificate in one file, as Kafka has them."""
        self.key_store_file.write_text(files.key_file.read_text() + files.certificate_file.read_text())


class SecuredKproto:
    """kproto with TLS and SASL."""

    beside = IN_MEMORY

    def __init__(self, plain: Kproto, certificates: Certificates) -> None:
        self.name = plain.name
        self._plain = plain
        self._certificates = certificates

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        secured = ["--tls", "auto", "--tls-dir", str(self._certificates.directory)]
        secured += ["--sasl", MECHANISM, "--user", f"{USER}:{PASSWORD}"]
        with self._plain.ready(partitions, durability, settings) as launch:
            yield replace(launch, argv=[*launch.argv, *secured])


class SecuredKafka:
    """Kafka with a listener that has TLS and SASL, beside the one that its start needs."""

    name = Kafka.name
    beside: Mapping[Durability, Durability] = {"memory": "os"}

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "os", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        port = free_port()
        own = f"{PROTOCOL}://{HOST}:{port}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        secured = {
            "listeners": f"+{own}",
            "advertised.listeners": f"+{own}",
            "listener.security.protocol.map": f"+{PROTOCOL}:{PROTOCOL}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._certificates.key_store_file),
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.{PROTOCOL.lower()}.plain.sasl.jaas.config": (
                f'{module} required user_{USER}="{PASSWORD}";'
            ),
        }
        with Kafka().ready(partitions, durability, {**secured, **settings}) as launch:
            yield replace(launch, port=port)


def secured_peers(certificates: Certificates) -> tuple[Peer, ...]:
    """Return all peers; they have the names of `NAMES`."""
    ours = (Kproto(), *BEFORE)
    return (*(SecuredKproto(one, certificates) for one in ours), SecuredKafka(certificates))


NAMES = [KPROTO, *(one.name for one in BEFORE), Kafka.name]
