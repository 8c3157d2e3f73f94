"""Lines of one generated function, names for its temporaries, and fields that wait to be read or written at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kproto.generate.module import Module


class Emitter:
    """Lines of one function, names for its temporaries, and the module's constants."""

    def __init__(self, module: Module, *, peel: bool = False) -> None:
        self.module = module
        self.peel = peel
        """Whether an array of one element has code of its own, without a loop or a list."""
        self.lines: list[str] = []
        self.indent = 2
        self.count = 0
        self.pending: list[tuple[str, str]] = []

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A default as source; values that have no literal become constants of the module."""
        if isinstance(value, int | float | str | bytes | bool | type(None)):
            return repr(value)
        if value == () and type(value) is tuple:
            return "()"
        return self.module.constant(value)
