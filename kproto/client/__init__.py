"""Consumers that know KIP-842 and KIP-333, in place of confluent-kafka's (extra ``kproto[client]``)."""

from kproto.client.consumer import Consumer
from kproto.client.errors import ConfigError, NoOffsetForPartition, OffsetOutOfRange

__all__ = ["ConfigError", "Consumer", "NoOffsetForPartition", "OffsetOutOfRange"]
