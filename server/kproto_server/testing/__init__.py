"""Test tools without sockets, files and real time: an in-memory broker, its virtual clock, and a simulated disk.

`InMemoryBroker` responds in the caller's thread: each call of `ConnectedPair.send` passes the bytes of one request to
the broker's end of a connection and the bytes of the responses back. Its clock moves only when a test advances it::

    broker = InMemoryBroker(topics={"orders": 1})
    client = broker.connect()
    response = client.ask(MetadataRequest(topics=None), 1)
    broker.advance(days=8)

`SimulatedDisk` implements the `Disk` that `kproto_server.storage` writes to. It loses unsynced changes, tears writes,
fills up, and loses power in the middle of an operation.
"""

from kproto_server.testing.in_memory import BrokerEnd, ConnectedPair, InMemoryBroker, virtual_clock
from kproto_server.testing.simulated_disk import Operation, PowerLost, SimulatedDisk, SimulatedFile

__all__ = [
    "BrokerEnd",
    "ConnectedPair",
    "InMemoryBroker",
    "Operation",
    "PowerLost",
    "SimulatedDisk",
    "SimulatedFile",
    "virtual_clock",
]
