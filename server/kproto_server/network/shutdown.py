"""The last half second of a clean shutdown: responses to the requests that have arrived reach their clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kproto_server.network.links import Links
    from kproto_server.network.node_listener import NodeListener
    from kproto_server.network.transport import Transport

RESPOND_S = 0.25
"""How long a shutdown handles requests that have arrived, at most, and sends their responses."""
DELIVER_S = 0.25
"""How long it then waits, at most, until clients have taken the responses that were made: none ends in its middle. The
process ends within a second."""
DRAIN_CHECK_S = 0.005


async def finish(listeners: Collection[NodeListener], links: Links | None, drain: Callable[[], object]) -> None:
    """Respond to the requests that have arrived, then wait until clients have the responses; both within limits.

    ``links``: the network between clients and nodes; good from now on. None: it was always good. ``drain``: has the log
    settle what was appended.

    Cancellation:
        The connections that are left stay open; responses that were not sent are lost when the caller closes them.
    """
    for listener in listeners:
        listener.stop_listening()
    if links is not None:
        links.clear()
    for transport in transports_of(listeners):
        transport.finish()
    drain()  # before delayed operations end: one that waits for the log has no other response
    await _wait_delivered(listeners, RESPOND_S)
    for transport in transports_of(listeners):
        transport.drop_backlog()
    await _wait_delivered(listeners, DELIVER_S)


async def _wait_delivered(listeners: Collection[NodeListener], limit_s: float) -> None:
    """Close each connection whose client has all responses, until none is left or the time is over.

    Cancellation:
        The connections that are left stay open.
    """
    with trio.move_on_after(limit_s):
        while True:
            for transport in transports_of(listeners):
                transport.close_if_delivered()
            if not transports_of(listeners):
                return
            await trio.sleep(DRAIN_CHECK_S)


def transports_of(listeners: Collection[NodeListener]) -> list[Transport]:
    """Return the connections of all listeners."""
    return [transport for listener in listeners for transport in listener.transports]
