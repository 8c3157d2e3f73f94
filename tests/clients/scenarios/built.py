"""The drivers that are built: Java's, a program for each release of kafka-clients, and those in Go."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.oracle.builds import kept
from tests.oracle.cluster import kafka
from tests.oracle.java import compiled, java_command
from tests.requirements import need_go

DRIVERS = Path(__file__).parents[1] / "drivers"
JAVA_SINCE = {"TopicScenarios.java": (0, 11), "GroupScenarios.java": (2, 0), "OffsetScenarios.java": (2, 4)}
"""The release of kafka-clients that brought what the source is about."""


def java(version: str) -> Callable[[], list[str]]:
    release = tuple(int(part) for part in version.split("."))

    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        sources = [s for s in (DRIVERS / "java").glob("*.java") if release >= JAVA_SINCE.get(s.name, ())]
        return java_command(compiled(sources, classpath), classpath, "Driver")

    return command


def go(name: str) -> Callable[[], list[str]]:
    folder = DRIVERS / "go"

    def command() -> list[str]:
        build = [need_go(), "build", "-o"]
        sources = [folder / "go.mod", *sorted(folder.glob("telling/*.go")), *sorted(folder.glob(f"{name}/*.go"))]

        def make(target: Path) -> None:
            subprocess.run([*build, str(target / name), f"./{name}"], cwd=folder, check=True)

        return [str(kept(Path("go") / name, [], sources, make) / name)]

    return command
