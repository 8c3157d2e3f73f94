"""librdkafka's mock cluster, written in C; the library is the one inside confluent-kafka's wheel.

``python -m bench.peers.librdkafka [PARTITIONS ...]`` serves it in its own process, with a topic of each size; unknown
topics get four partitions.
"""

from __future__ import annotations

import ctypes
import importlib.util
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.model import BenchError, Missing
from bench.peers.durability import Durability
from bench.peers.server import DEFAULTS, HOST, Launch, topic_prefix

PRODUCER = 0  # rd_kafka_type_t: a mock cluster needs a client instance
LOG_LEVEL = b"2"  # critical; warnings say that this client has no broker


def _library() -> Path:
    found = importlib.util.find_spec("confluent_kafka")
    if found is None or found.origin is None:
        raise Missing("confluent-kafka is not installed in this Python")
    libraries = sorted(Path(found.origin).parents[1].glob("confluent_kafka.libs/librdkafka-*.so*"))
    if not libraries:
        raise Missing("this confluent-kafka has no librdkafka of its own")
    return libraries[0]


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_library()))
    for name, result in (
        ("rd_kafka_conf_new", ctypes.c_void_p),
        ("rd_kafka_new", ctypes.c_void_p),
        ("rd_kafka_mock_cluster_new", ctypes.c_void_p),
        ("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p),
    ):
        getattr(library, name).restype = result
    return library


@contextmanager
def running(partitions: Sequence[int] = ()) -> Iterator[int]:
    """Serve in this process; give the port. Leaving the context stops the cluster.

    Raises:
        Missing: librdkafka is not installed.
    """
    library = _load()
    why = ctypes.create_string_buffer(512)
    settings = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(settings, b"log_level", LOG_LEVEL, None, ctypes.c_size_t(0))
    client = ctypes.c_void_p(library.rd_kafka_new(PRODUCER, settings, why, ctypes.c_size_t(len(why))))
    if not client:
        raise BenchError(f"librdkafka: {why.value.decode()}")
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(client, 1))
    for size in partitions:
        library.rd_kafka_mock_topic_create(cluster, f"{topic_prefix(size)}0".encode(), size, 1)
    address: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
    try:
        yield int(address.rpartition(":")[2])
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)


class Librdkafka:
    name = "librdkafka"
    beside: Mapping[Durability, Durability] = {"memory": "memory"}

    @contextmanager
    def ready(
        self, partitions: Sequence[int], durability: Durability = "memory", settings: Mapping[str, str] = DEFAULTS
    ) -> Iterator[Launch]:
        _library()
        argv = [sys.executable, "-m", "bench.peers.librdkafka", *map(str, partitions)]
        yield Launch(version=version("confluent-kafka"), argv=argv, cwd=Path(__file__).parents[2])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running([int(size) for size in sys.argv[1:]]) as port:
        print(f"{HOST}:{port}", flush=True)
        signal.pause()
