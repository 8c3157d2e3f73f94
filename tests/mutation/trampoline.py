"""What a function with mutants does when it is called: it calls the original function, or the mutant that is chosen.

The code that mutmut generates imports this module in place of its own, which reads an environment variable in each
call. There the tests of the coordinator take twice as long.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MutantDict = dict[str, Any]
"""The mutants of a function by name, and ``_mutmut_orig``; the generated code fills it after the definition."""

ORIGINAL = "_mutmut_orig"

functions: dict[str, tuple[list[str], MutantDict]] = {}
"""By module and qualified name: the name of what a call calls, as the only element, and what there is to call."""

called: set[str] = set()
"""The functions of `functions` that were called since the set was last emptied."""


def wrap_in_trampoline(mutants: MutantDict, is_classmethod: bool = False) -> Callable[[Any], Any]:
    """Return what the generated code decorates a function with."""

    def decorate(function: Any) -> Any:
        chosen = [ORIGINAL]
        name = f"{function.__module__}:{function.__qualname__}"
        functions[name] = chosen, mutants

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            called.add(name)
            target = mutants[chosen[0]]
            if is_classmethod:
                return getattr(args[0], target.__name__)(*args[1:], **kwargs)
            return target(*args, **kwargs)

        return call

    return decorate
