"""The order in which an immutable Map or Set of Scala 2.13 yields keys, as some responses of brokers with ZooKeeper.

Theory of operation. Up to four keys stay in the order in which they were added. More are in a tree: five bits of a
hash, the lowest first, select a place in a node; keys that have a place alone come before those of the nodes below. A
set that was a tree stays one when keys are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kproto.jvm.arithmetic import java_hash

K = TypeVar("K")
SMALL = 4
"""Keys that stay in their order."""
BITS = 5
"""Bits of a hash that select the place in one node."""
HASH_BITS = 32
MASK = (1 << HASH_BITS) - 1
PRODUCT_SEED = 0xCAFEBABE
PAIR_CLASS = "Tuple2"


def in_scala_order(names: Iterable[str], *, is_tree: bool = False) -> list[str]:
    """Return names in the order of a Map or Set that they were added to one by one.

    ``is_tree``: it had more than `SMALL` names before.
    """
    found = list(dict.fromkeys(names))
    if len(found) <= SMALL and not is_tree:
        return found
    return _in_tree([(_improved(java_hash(name)), name) for name in found], 0)


def pairs_in_tree(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return pairs of a string and a byte in the order of a HashMap, which is a tree with few keys, too."""
    return _in_tree([(_improved(_pair_hash(*pair)), pair) for pair in dict.fromkeys(pairs)], 0)


def _in_tree(hashed: list[tuple[int, K]], shift: int) -> list[K]:
    """Return what a node yields."""
    if len(hashed) <= 1 or shift >= HASH_BITS:
        return [key for _, key in hashed]
    places: dict[int, list[tuple[int, K]]] = {}
    for one in hashed:
        places.setdefault(one[0] >> shift & (1 << BITS) - 1, []).append(one)
    in_order = [places[place] for place in sorted(places)]
    alone = [found[0][1] for found in in_order if len(found) == 1]
    return alone + [key for found in in_order if len(found) > 1 for key in _in_tree(found, shift + BITS)]


def _improved(hash_code: int) -> int:
    """Return a hash code with its bits mixed, as Scala's maps do it; not signed."""
    mixed = hash_code + ~(hash_code << 9) & MASK
    mixed ^= mixed >> 14
    mixed = mixed + (mixed << 4) & MASK
    return mixed ^ mixed >> 10


def _pair_hash(name: str, number: int) -> int:
    """Return Scala's hash code of a pair: MurmurHash3 of the name of its class and its two elements."""
    found = PRODUCT_SEED
    for element in (java_hash(PAIR_CLASS), java_hash(name), number):
        mixed = _rotated((element & MASK) * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
        found = _rotated(found ^ mixed, 13) * 5 + 0xE6546B64 & MASK
    found ^= 2
    found = (found ^ found >> 16) * 0x85EBCA6B & MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & MASK
    return found ^ found >> 16


def _rotated(value: int, count: int) -> int:
    return value << count & MASK | value >> HASH_BITS - count
