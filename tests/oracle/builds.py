"""What tests build of their own sources, kept outside the tree between runs."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


def kept(name: Path, facts: Iterable[str], sources: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The folder that `make` makes out of these sources and facts, from the cache if it was made before.

    Args:
        name: in the cache, without the digest of sources and facts that is put after it.
        make: fills the folder that it is given, which is not there yet; its parent is.
    """
    digest = hashlib.sha256("\n".join([*facts, ""]).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = _cache() / name.with_name(f"{name.name}-{digest.hexdigest()[:16]}")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        target = Path(made) / name.name
        make(target)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another test process has made the same at the same time
                raise
    return folder


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kproto-oracle"
