"""The order in which a Java HashMap yields its keys: assignors and some responses of Kafka depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
BUCKETS_MIN = 16


def in_hash_order(keys: Iterable[T], hash_of: Callable[[T], int], capacity: int = BUCKETS_MIN) -> list[T]:
    """Return keys in the order of a Java HashMap that they were added to one by one.

    Args:
        hash_of: their 32-bit ``hashCode``, signed or not. Keys of one bucket keep their order.
        capacity: the initial capacity of the HashMap.
    """
    found = list(keys)
    bucket_count = _bucket_count(capacity)
    while len(found) > bucket_count * 3 // 4:
        bucket_count *= 2
    return _in_buckets(found, hash_of, bucket_count)


def in_order_of_computed(keys: Iterable[T], hash_of: Callable[[T], int], capacity: int) -> list[T]:
    """Return keys in the order of a HashMap that got them by ``computeIfAbsent``, some of them many times.

    Unlike ``put``, this method makes room for a key before it adds the key, and also if the key is there already; it
    adds a key before the others of its bucket.

    ``capacity``: the initial capacity of the HashMap.
    """
    found: dict[T, None] = {}
    bucket_count = _bucket_count(capacity)
    for key in keys:
        if len(found) > bucket_count * 3 // 4:
            bucket_count *= 2
        found[key] = None
    return _in_buckets(list(reversed(found)), hash_of, bucket_count)


def _bucket_count(capacity: int) -> int:
    """Return the smallest power of 2 that is not below the capacity."""
    return 1 << max(0, capacity - 1).bit_length()


def _in_buckets(keys: list[T], hash_of: Callable[[T], int], bucket_count: int) -> list[T]:
    last = bucket_count - 1
    return sorted(keys, key=lambda key: spread_hash(hash_of(key)) & last)


def spread_hash(hash_code: int) -> int:
    """Return a ``hashCode`` with its upper bits mixed into the lower ones, which select the bucket; signed."""
    bits = hash_code & 0xFFFFFFFF
    bits ^= bits >> 16
    return bits - 2**32 if bits & 0x80000000 else bits
