"""The texts of the repository: where each one stands, and what it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

FOLDERS = ("kproto", "server", "tests", "bench", "fixtures")
SUFFIXES = frozenset({".py", ".pyi", ".md", ".toml", ".go", ".java", ".mjs", ".js", ".ts", ".sh", ".cfg", ".txt"})
GENERATED = frozenset({"__pycache__", "_generated", "node_modules", "golden"})
"""Folders without a text of this project; `fixtures/golden` has recordings."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file of the repository, with its path relative to the root."""

    path: str
    content: str

    @property
    def is_page(self) -> bool:
        return self.path.endswith(".md")

    def where(self, position: int) -> str:
        """Return ``path:line`` of a position in the content."""
        return f"{self.path}:{self.content.count(chr(10), 0, position) + 1}"

    def find(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
        """Yield ``(path:line, match)`` for each match."""
        for match in pattern.finditer(self.content):
            yield self.where(match.start()), match


@cache
def texts() -> tuple[Text, ...]:
    """Return all texts of the repository: sources, tests, benches, pages, configuration."""
    files = [path for path in ROOT.iterdir() if path.suffix in SUFFIXES]
    files += (ROOT / ".ci").glob("*")
    for folder in FOLDERS:
        files += (ROOT / folder).rglob("*")
    return tuple(
        Text(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(files)
        if path.is_file()
        and (path.suffix in SUFFIXES or path.parent.name == ".ci")
        and (path.suffix == ".md" or not GENERATED.intersection(path.relative_to(ROOT).parts))
    )


def text_of(path: str) -> Text:
    """Return the text of a file of the repository."""
    return next(text for text in texts() if text.path == path)
