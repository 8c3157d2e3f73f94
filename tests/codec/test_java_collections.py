"""The orders of Java's collections, against what a JVM prints, and the text of Kafka's UUIDs."""

from __future__ import annotations

import base64

from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order, in_order_of_computed
from kproto.jvm.priority_queue import JavaPriorityQueue
from kproto.jvm.uuid_text import uuid_text


def test_a_hash_map_of_computed_keys_grows_late_and_adds_in_front() -> None:
    names = ["p2", "p0", "p1"]
    assert in_hash_order(names, java_hash, 2) == ["p0", "p1", "p2"]
    assert in_order_of_computed(names[:2], java_hash, 2) == ["p0", "p2"]
    assert in_order_of_computed(["p0", "p2"], java_hash, 2) == ["p2", "p0"]
    assert in_order_of_computed(["p0", "p2", "p0"], java_hash, 2) == ["p0", "p2"]


def test_a_priority_queue_keeps_equal_elements_as_java() -> None:
    queue = JavaPriorityQueue(["b1", "a1", "b2", "a2", "c1", "a3"], key=lambda name: name[0])
    found = []
    while queue:
        found.append(queue.poll())
    assert found == ["a1", "a2", "a3", "b1", "b2", "c1"]
    assert queue.poll() is None


def test_the_text_of_a_uuid_is_that_of_base64url() -> None:
    for uuid in (bytes(16), b"\xff" * 16, b"\xfb\xef" * 8, bytes(range(16))):
        assert uuid_text(uuid) == base64.urlsafe_b64encode(uuid).decode().rstrip("=")
