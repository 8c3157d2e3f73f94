"""Build results of test sources, cached outside the repository between runs."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


def cached_build(name: Path, parameters: Iterable[str], sources: Iterable[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` makes from these sources and parameters, from the cache if it exists there.

    Args:
        name: path in the cache; a digest of the sources and parameters is appended.
        build: creates and fills the folder that it receives; the parent of the folder exists.
    """
    digest = hashlib.sha256("\n".join([*parameters, ""]).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = _cache() / name.with_name(f"{name.name}-{digest.hexdigest()[:16]}")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        target = Path(parent) / name.name
        build(target)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another test process has built the same at the same time
                raise
    return folder


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kproto-oracle"
