"""What a control port controls: a broker with its further brokers, or a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.control.controls import Controls, Run
    from kproto_server.control.message import HttpRequest
    from kproto_server.control.operation import Operation


class Service(Protocol):
    """What a control port controls."""

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations; others do not exist here."""

    @property
    def has_page(self) -> bool:
        """Whether ``/`` is the page for a browser."""

    def split(self, request: HttpRequest) -> tuple[int | None, HttpRequest]:
        """Return the number of the one of several that a request is for, and the request as that one has it.

        Raises:
            Problem: there is none.
        """

    def access(self, number: int | None) -> Run:
        """Return how worker threads reach it.

        Raises:
            Problem: there is none.
        """

    def controls(self, run: Run) -> Controls:
        """Return what operations act on."""
