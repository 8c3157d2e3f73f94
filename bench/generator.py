"""Runs the load generator (``bench/load``) and returns its result."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.model import BenchError, Missing
from bench.peers.go import build
from bench.peers.server import HOST

OFFSET_COMMIT_VERSION = 3


def program() -> Path:
    """Return the load generator's program; build it if necessary.

    Raises:
        BenchError: it cannot be built here, so nothing can be measured.
    """
    try:
        return build("load")
    except Missing as missing:
        raise BenchError(f"the load generator is missing: {missing}") from missing


def command(load: Path, port: int, flags: Mapping[str, object]) -> list[str]:
    """Return the load generator's command line."""
    every = {"addr": f"{HOST}:{port}", "version": OFFSET_COMMIT_VERSION, **flags}
    return [str(load), *(f"-{flag}={value}" for flag, value in every.items())]


def run(load: Path, port: int, what: str, flags: Mapping[str, object]) -> Mapping[str, Any]:
    """Run the load generator to its end; return the JSON object that it printed.

    Args:
        what: names the run in an error.

    Raises:
        BenchError: a response was wrong or missing.
    """
    done = subprocess.run(command(load, port, flags), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{what}: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")
    result: Mapping[str, Any] = json.loads(done.stdout)
    return result
