"""How the parts of `Broker` reach the thread that owns the broker's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.network.server import Server

T = TypeVar("T")


class RunInBrokerThread(Protocol):
    """Runs an action in the broker's thread, between two requests, and returns its result.

    Raises:
        RuntimeError: the broker does not run.
    """

    def __call__(self, action: Callable[[Server], T], /) -> T: ...
