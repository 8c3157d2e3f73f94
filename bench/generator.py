"""The load generator (``bench/load``): one run of it, and what it said."""

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
    """The load generator, built if need be.

    Raises:
        BenchError: it can't be had here; nothing can be measured without it.
    """
    try:
        return build("load")
    except Missing as missing:
        raise BenchError(f"the load generator is missing: {missing}") from missing


def command(load: Path, port: int, flags: Mapping[str, object]) -> list[str]:
    """Its command line."""
    every = {"addr": f"{HOST}:{port}", "version": OFFSET_COMMIT_VERSION, **flags}
    return [str(load), *(f"-{flag}={value}" for flag, value in every.items())]


def run(load: Path, port: int, what: str, flags: Mapping[str, object]) -> Mapping[str, Any]:
    """Run it to its end; return what it printed.

    Args:
        what: is named in the error.

    Raises:
        BenchError: an answer was wrong, or did not come.
    """
    done = subprocess.run(command(load, port, flags), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{what}: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}")
    said: Mapping[str, Any] = json.loads(done.stdout)
    return said
