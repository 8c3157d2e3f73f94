"""What the command and its session exchange by files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

Mutants = dict[str, list[str]]
"""The names of the mutants by module."""


def read_results(path: Path) -> dict[str, str]:
    """Return what became of each mutant, as far as the run has come."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {mutant: result for mutant, _, result in (line.partition(" ") for line in lines)}
