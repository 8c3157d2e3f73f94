"""The broker. The protocol is in ``kproto``, which does not depend on this package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kproto_server.broker.broker import Broker as Broker
    from kproto_server.configuration.data_directory import DataDirectory as DataDirectory

__all__ = ["Broker", "DataDirectory"]


def __getattr__(name: str) -> Any:
    """Import `Broker` or `DataDirectory` at its first use; ``kproto serve`` starts without them."""
    if name == "Broker":
        from kproto_server.broker.broker import Broker

        return Broker
    if name == "DataDirectory":
        from kproto_server.configuration.data_directory import DataDirectory

        return DataDirectory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
