"""Java sources of the tests, compiled once per class path."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.oracle.builds import cached_build
from tests.oracle.processes import FAST_START
from tests.requirements import need_java, need_javac

JVM_FLAGS = ("-Xmx256m", *FAST_START.split(), "-XX:-UsePerfData", "-Dfile.encoding=UTF-8")
"""For a short start-up: most of these programs run for half a second."""


def compiled(sources: Path | Iterable[Path], classpath: str = "", java_release: int = 8) -> Path:
    """Compile the sources; return the folder of the classes, which is cached between runs."""
    javac = need_javac()
    files = [sources] if isinstance(sources, Path) else sorted(sources)

    def build(target: Path) -> None:
        options = ["--release", str(java_release), "-Xlint:-options", "-d", str(target)]
        against = ["-cp", classpath] if classpath else []
        subprocess.run([javac, *options, *against, *map(str, files)], check=True)

    name = files[0].stem if len(files) == 1 else files[0].parent.name
    return cached_build(Path("classes") / name, [classpath, str(java_release)], files, build)


def java_command(classes: Path, classpath: str, main_class: str, *properties: str) -> list[str]:
    """Return the command that runs a class, without the program's arguments."""
    return [need_java(), *JVM_FLAGS, *properties, "-cp", f"{classes}{os.pathsep}{classpath}", main_class]
