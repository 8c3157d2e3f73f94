"""Builds the Go programs of `bench`: the load generator, and kfake as a server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from bench.model import Missing

BENCH = Path(__file__).parents[1]


def cache() -> Path:
    """Return the directory of the built programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kproto-bench"


def build(folder: str) -> Path:
    """Build ``bench/FOLDER`` with Go's own build cache; return the program.

    Raises:
        Missing: Go is not installed or cannot build the program.
    """
    go = shutil.which("go")
    if go is None:
        raise Missing("no `go` on the PATH (https://go.dev/dl)")
    program = cache() / folder
    program.parent.mkdir(parents=True, exist_ok=True)
    built = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=BENCH / folder, capture_output=True, text=True, check=False
    )
    if built.returncode:
        last = (built.stderr.strip() or "no output").splitlines()[-1]
        raise Missing(f"`go build` in bench/{folder} failed: {last}")
    return program
