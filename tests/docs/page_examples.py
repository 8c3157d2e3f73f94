"""The examples of a page: taken from its text, and run as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 60


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language in a page of ``server``."""
    text = (ROOT / "server" / page).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(words: list[str], folder: Path) -> str:
    """Run a command in a folder, and return its output; it must succeed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run_program(program: str, folder: Path) -> str:
    """Run a program of a page: with pytest, unless it runs by itself."""
    is_test = "def test_" in program and "__main__" not in program
    file = folder / ("test_example.py" if is_test else "example.py")
    file.write_text(program)
    runner = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
    return run([sys.executable, *runner, file.name], folder)
