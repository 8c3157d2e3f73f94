"""Archives of loaded classes (class-data sharing, JDK 13 and later): a broker that starts with one takes half of the
CPU time.

The second broker of a release writes the archive when it ends; most releases start only once. A JVM with other jars, or
another Java, ignores it.
"""

import os
import shutil
from pathlib import Path

QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr")
"""A JVM says nothing of an archive that it cannot use."""

_NAME = "classes.jsa"


def use(jars: Path) -> list[str]:
    """Return the flags of a JVM that uses the archive of these jars; none if there is none."""
    archive = jars / _NAME
    return [*QUIET, f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def use_or_write(jars: Path, process: Path) -> list[str]:
    """Return the flags of a broker in the folder of its process; `keep` has to follow when it has ended."""
    seen = jars / "STARTED"
    if (jars / _NAME).exists() or not seen.exists():
        seen.touch()
        return use(jars)
    return [*QUIET, f"-XX:ArchiveClassesAtExit={process / _NAME}"]


def keep(jars: Path, process: Path) -> None:
    """Keep the archive that a broker has written, if it has ended by itself: a killed one leaves a part of it."""
    written = process / _NAME
    if not written.exists():
        return
    part = jars / f"{_NAME}.{os.getpid()}"
    shutil.move(written, part)
    part.rename(jars / _NAME)
