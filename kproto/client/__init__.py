"""confluent-kafka's consumer with KIP-842 (offset resets) and KIP-333 (parallel catch-up); extra ``kproto[client]``."""

from kproto.client.consumer import Consumer
from kproto.client.errors import ConfigError, NoOffsetForPartition, OffsetOutOfRange, UnsupportedBroker

__all__ = ["ConfigError", "Consumer", "NoOffsetForPartition", "OffsetOutOfRange", "UnsupportedBroker"]
