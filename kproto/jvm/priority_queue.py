"""The order in which a Java PriorityQueue yields equal elements: Kafka's assignor of tasks depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


class JavaPriorityQueue(Generic[T]):
    """A binary heap that moves its elements as Java's does. Its least element comes first."""

    def __init__(self, elements: Iterable[T], key: Callable[[T], Any]) -> None:
        """``key``: by which elements are compared; it may change for an element that is not in the queue."""
        self._heap: list[T] = []
        self._key = key
        for element in elements:
            self.add(element)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, element: T) -> None:
        heap, key = self._heap, self._key(element)
        heap.append(element)
        index = len(heap) - 1
        while index > 0:
            parent = (index - 1) // 2
            if key >= self._key(heap[parent]):
                break
            heap[index] = heap[parent]
            index = parent
        heap[index] = element

    def poll(self) -> T | None:
        """Remove the least element and return it; None if there is none."""
        heap = self._heap
        if not heap:
            return None
        least, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return least

    def _sift_down(self, element: T) -> None:
        heap, key, index = self._heap, self._key(element), 0
        while index < len(heap) // 2:
            child = 2 * index + 1
            if child + 1 < len(heap) and self._key(heap[child]) > self._key(heap[child + 1]):
                child += 1
            if key <= self._key(heap[child]):
                break
            heap[index] = heap[child]
            index = child
        heap[index] = element
