"""The broker. The protocol is in ``kproto``, which does not depend on this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker as Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    """Import `Broker` at its first use; ``kproto serve`` starts without it."""
    if name == "Broker":
        from kproto_server.broker.broker import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
