"""The log.dirs of many brokers as one input: several paths, globs, and manifests.

The paths are one text, a path on each line, so that one value holds one or many.
"""

from __future__ import annotations

from glob import glob, has_magic
from pathlib import Path

from kproto.errors import NoLog
from kproto.logs.locations import location
from kproto.records.segment_files import LOG_SUFFIX

SEPARATOR = "\n"


def is_many(path: str) -> bool:
    """Return whether a text names several paths: lines, a glob, or a manifest, which is a file that is no segment."""
    if SEPARATOR in path:
        return True
    if "://" in path:
        return False
    return (Path(path).is_file() and not path.endswith(LOG_SUFFIX)) or (has_magic(path) and not Path(path).exists())


def log_dirs(path: str) -> list[str]:
    """Return the paths that a text names, in order; a directory that has several names counts once.

    A manifest has a path, or a glob, on each line, relative to its own directory; empty lines and lines that begin with
    # do not count.

    Raises:
        NoLog: a glob matches nothing, or a manifest is empty or is not text.
        OSError: a manifest cannot be read.
    """
    found: list[str] = []
    for line in path.split(SEPARATOR):
        found += _listed(line) if is_many(line) and not has_magic(line) else _matches(line, line)
    by_directory = {location(one).resolve(): one for one in reversed(found)}
    return list(reversed(by_directory.values()))


def _listed(manifest: str) -> list[str]:
    try:
        lines = [line.strip() for line in Path(manifest).read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise NoLog(f"{manifest}: neither a segment nor a list of paths") from None
    if any("\0" in line for line in lines):
        raise NoLog(f"{manifest}: neither a segment nor a list of paths")
    wanted = [line for line in lines if line and not line.startswith("#")]
    if not wanted:
        raise NoLog(f"{manifest}: an empty list of paths")
    folder = Path(manifest).absolute().parent
    return [one for line in wanted for one in _matches(str(folder / line), f"{manifest}: {line}")]


def _matches(pattern: str, label: str) -> list[str]:
    if not is_many(pattern):
        return [pattern]
    found = [name for name in sorted(glob(pattern)) if Path(name).is_dir()]
    if not found:
        raise NoLog(f"{label}: no directory has such a name")
    return found
