"""Java sources of the tests, compiled once per release of Kafka that they are compiled against."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.oracle.builds import kept
from tests.requirements import need_java, need_javac

JVM_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
)
"""Start quickly rather than run quickly: most of these programs live for half a second."""


def compiled(sources: Path | Iterable[Path], classpath: str = "", java_release: int = 8) -> Path:
    """Compile the sources against the class path; return the folder of the classes, which is kept between runs."""
    javac = need_javac()
    files = [sources] if isinstance(sources, Path) else sorted(sources)

    def make(target: Path) -> None:
        options = ["--release", str(java_release), "-Xlint:-options", "-d", str(target)]
        against = ["-cp", classpath] if classpath else []
        subprocess.run([javac, *options, *against, *map(str, files)], check=True)

    name = files[0].stem if len(files) == 1 else files[0].parent.name
    return kept(Path("classes") / name, [classpath, str(java_release)], files, make)


def java_command(classes: Path, classpath: str, main_class: str, *properties: str) -> list[str]:
    """The command that runs this class; the program's arguments follow it."""
    return [need_java(), *JVM_FLAGS, *properties, "-cp", f"{classes}{os.pathsep}{classpath}", main_class]
