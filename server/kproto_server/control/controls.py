"""What operations of the control API act on, and how worker threads reach it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.broker.requests import BrokerRequests

T = TypeVar("T")


class Run(Protocol):
    """Runs an action on what is controlled, in its thread, and returns its result."""

    def __call__(self, action: Callable[[Any], T], /) -> T: ...


class Controls(Protocol):
    """What operations have as their first argument, or parts of which they are methods."""

    @property
    def requests(self) -> BrokerRequests:
        """The requests that are kept."""
