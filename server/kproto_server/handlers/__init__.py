"""One file per API key, with the basename of its message: ``ls`` is the list of what the broker really does.

A handler is ``handle(request, call)``: a plain function of the request and the state; it does no I/O and reads no
clock. It returns the response, or a `DelayedOperation`, or raises `CloseConnection`.
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
"""API keys with a handler file here. The others of a release are answered by `unsupported` (server/DEVIATIONS.md)."""


def handler(api_key: int) -> Callable[[Any, Any], Any]:
    """Return the function that answers an API; imported when first asked for, since start-up is a feature (D14)."""
    if api_key in HANDLED:
        module = importlib.import_module(f"{__name__}.{module_name(api_key)}")
        return module.handle  # type: ignore[no-any-return]  # a module attribute has no declared type
    from kproto_server.handlers import unsupported

    return unsupported.handler(APIS[api_key])
