"""A broker as what a control port controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.broker.controls import BrokerControls
from kproto_server.control.brokers import access_to, split
from kproto_server.control.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kproto_server.control.controls import Run
    from kproto_server.control.message import HttpRequest
    from kproto_server.control.operation import Operation
    from kproto_server.network.server import Server


class BrokerService:
    """A broker, and the further brokers that its control port has started."""

    operations: Sequence[Operation] = OPERATIONS
    has_page: bool = True

    def __init__(self, server: Server) -> None:
        self._server = server

    def split(self, request: HttpRequest) -> tuple[int | None, HttpRequest]:
        return split(request)

    def access(self, number: int | None) -> Run:
        return access_to(self._server, number)

    def controls(self, run: Run) -> BrokerControls:
        return BrokerControls(run)
