"""Waits until sockets are ready, by epoll on Linux and by the standard library's selectors elsewhere."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

READ, WRITE = 1, 4
"""Interest and readiness bits, on every platform those of epoll."""
HANGUP: int = getattr(select, "EPOLLRDHUP", 0)
"""The peer has closed its side, or both; reported with unread bytes before it, too. 0 where no poller reports it."""

if hasattr(select, "epoll"):

    class Poller:
        """epoll, level-triggered. The caller closes it.

        A socket that has failed or was hung up is reported as ready; a read returns the error or the end.
        """

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.register = self._epoll.register
            self.modify = self._epoll.modify
            self.unregister = self._epoll.unregister
            self.close: Callable[[], None] = self._epoll.close
            self.poll: Callable[[float | None], list[tuple[int, int]]] = self._epoll.poll
            """Returns (file descriptor, readiness bits) of the sockets that are ready; None waits forever."""

else:  # pragma: no cover - macOS and Windows
    import selectors

    class Poller:  # type: ignore[no-redef]  # one of the two exists
        """The standard library's selectors with the interface of epoll. The caller closes it."""

        def __init__(self) -> None:
            self._selector = selectors.DefaultSelector()
            self._idle: set[int] = set()
            """Registered without interest, which selectors do not allow."""
            self.close: Callable[[], None] = self._selector.close

        def register(self, fd: int, mask: int) -> None:
            if mask:
                self._selector.register(fd, _to_selectors(mask))
            else:
                self._idle.add(fd)

        def modify(self, fd: int, mask: int) -> None:
            self.unregister(fd)
            self.register(fd, mask)

        def unregister(self, fd: int) -> None:
            if fd in self._idle:
                self._idle.discard(fd)
            else:
                self._selector.unregister(fd)

        def poll(self, timeout_s: float | None) -> list[tuple[int, int]]:
            return [(key.fd, _from_selectors(mask)) for key, mask in self._selector.select(timeout_s)]

    def _to_selectors(mask: int) -> int:
        return (selectors.EVENT_READ if mask & READ else 0) | (selectors.EVENT_WRITE if mask & WRITE else 0)

    def _from_selectors(mask: int) -> int:
        return (READ if mask & selectors.EVENT_READ else 0) | (WRITE if mask & selectors.EVENT_WRITE else 0)
