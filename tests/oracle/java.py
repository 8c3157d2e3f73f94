"""Java sources of the tests, compiled once per release of Kafka that they are compiled against."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from tests.requirements import need_java, need_javac

JVM_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
)
"""Start quickly rather than run quickly: most of these programs live for half a second."""


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kproto-oracle" / "classes"


def compiled(source: Path, classpath: str = "", java_release: int = 8) -> Path:
    """Compile the source against the class path; return the folder of the classes, which is kept between runs."""
    javac = need_javac()
    facts = f"{classpath}\n{java_release}\n".encode() + source.read_bytes()
    folder = _cache() / f"{source.stem}-{hashlib.sha256(facts).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        target = Path(name) / "classes"
        options = ["--release", str(java_release), "-Xlint:-options", "-d", str(target)]
        against = ["-cp", classpath] if classpath else []
        subprocess.run([javac, *options, *against, str(source)], check=True)
        try:
            target.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another test process has made the same at the same time
                raise
    return folder


def java_command(classes: Path, classpath: str, main_class: str, *properties: str) -> list[str]:
    """The command that runs this class; the program's arguments follow it."""
    return [need_java(), *JVM_FLAGS, *properties, "-cp", f"{classes}{os.pathsep}{classpath}", main_class]
