"""Scripts: the settings of a broker, its clients and the faults of one simulation, each a line of text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Value = int | str


class Line(NamedTuple):
    """What a line says: its kind, and named values."""

    kind: str
    values: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, kind: str, **values: Value) -> Line:
        return cls(kind, tuple(values.items()))

    @classmethod
    def parse(cls, text: str) -> Line:
        """Return the line of a text such as ``kill at_ms=350 down_ms=20``."""
        kind, *parts = text.split()
        values: list[tuple[str, Value]] = []
        for part in parts:
            name, _, value = part.partition("=")
            values.append((name, int(value) if value.lstrip("-").isdigit() else value))
        return cls(kind, tuple(values))

    def __str__(self) -> str:
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.values)])

    def get(self, name: str) -> Value | None:
        return dict(self.values).get(name)

    def number(self, name: str, default: int = 0) -> int:
        value = dict(self.values).get(name, default)
        assert isinstance(value, int), f"{self}: {name} is a number"
        return value

    def text(self, name: str, default: str = "") -> str:
        return str(dict(self.values).get(name, default))


class Script(NamedTuple):
    """The script of one simulation."""

    broker: Line
    lines: tuple[Line, ...]
    """Clients and faults. Each may be left out."""

    @classmethod
    def parse(cls, text: str) -> Script:
        """Return the script of a text; lines that begin with ``#`` are comments."""
        broker, *lines = (Line.parse(line) for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#")
        assert broker.kind == "broker", "the first line describes the broker"
        return cls(broker, tuple(lines))

    def __str__(self) -> str:
        return "\n".join(map(str, (self.broker, *self.lines)))

    def with_lines(self, lines: Iterable[Line]) -> Script:
        return self._replace(lines=tuple(lines))
