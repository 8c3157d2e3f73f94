"""What the decoder and the encoder emitter have in common: the lines of one generated function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kproto.generate.constants import ModuleConstants


class Emitter:
    """Lines of one function, names for its temporaries, and fields that wait for one ``struct`` call."""

    def __init__(self, constants: ModuleConstants, *, expect_one: bool = False) -> None:
        self.constants = constants
        self.expect_one = expect_one
        """Whether arrays of one element get code of their own, without a loop or a list (loop peeling)."""
        self.lines: list[str] = []
        self.indent = 2
        """Inside the function and its ``try``."""
        self._name_count = 0
        self.pending: list[tuple[str, str]] = []
        """Neighboring fixed-size fields: (struct code, target or expression)."""

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Emit a compound statement: its head, then the lines of the ``with`` body one level deeper."""
        self.line(head)
        outer = self.indent
        self.indent += 1
        yield
        self.indent = outer

    def name(self) -> str:
        """Return the name of a new temporary."""
        self._name_count += 1
        return f"v{self._name_count}"

    def default(self, value: Any) -> str:
        """Return a default as source."""
        return self.constants.default(value)
