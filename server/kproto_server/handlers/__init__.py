"""The handlers: one file per API key, with the basename of its message, so ``ls`` lists the APIs that kproto
implements.

A handler is a function ``handle(request, context)`` of the request and the broker's state. It does no I/O and reads no
clock. It returns the response, a `DelayedOperation` or a `DeferredResponse`, or raises `CloseConnection`. Handlers do
not import each other; modules that several handlers use have names with an underscore.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kproto.messages import APIS, module_name

if TYPE_CHECKING:
    from collections.abc import Callable

HANDLED = frozenset(
    {
        0,
        1,
        2,
        3,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
        18,
        19,
        20,
        21,
        22,
        23,
        32,
        33,
        35,
        37,
        42,
        43,
        44,
        46,
        47,
        60,
        61,
        69,
        74,
        75,
    }
)
"""API keys with a handler file. `unsupported` responds to all others (server/DEVIATIONS.md)."""


def handler(api_key: int) -> Callable[[Any, Any], Any]:
    """Return the handler of an API. Its module is imported at the first call, to keep the start-up fast (D14)."""
    if api_key in HANDLED:
        module = importlib.import_module(f"{__name__}.{module_name(api_key)}")
        return module.handle  # type: ignore[no-any-return]  # a module attribute has no declared type
    from kproto_server.handlers import unsupported

    return unsupported.handler(APIS[api_key])
