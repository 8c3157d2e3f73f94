"""The compiled drivers: Java for each release of kafka-clients, Go, and kafkajs with its modules."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.oracle.builds import cached_build
from tests.oracle.cluster import kafka
from tests.oracle.java import compiled, java_command
from tests.requirements import need_go, need_node, need_npm

DRIVERS = Path(__file__).parents[1] / "drivers"
JAVA_SINCE = {
    "TopicScenarios.java": (0, 11),
    "TransactionScenarios.java": (0, 11),
    "GroupScenarios.java": (2, 0),
    "OffsetScenarios.java": (2, 4),
}
"""The first release of kafka-clients with the API of a source file."""


def java(version: str) -> Callable[[], list[str]]:
    release = tuple(int(part) for part in version.split("."))

    def command() -> list[str]:
        classpath = kafka("clientpath", version)
        sources = [s for s in (DRIVERS / "java").glob("*.java") if release >= JAVA_SINCE.get(s.name, ())]
        return java_command(compiled(sources, classpath), classpath, "Driver")

    return command


def go(name: str) -> Callable[[], list[str]]:
    return lambda: go_program(DRIVERS / "go", name, "contract", "login")


def go_program(module: Path, name: str, *packages: str) -> list[str]:
    """Build the program in a folder of a Go module, with packages of the same module; return its command."""
    sources = [
        module / "go.mod",
        *(each for folder in (*packages, name) for each in sorted(module.glob(f"{folder}/*.go"))),
    ]
    go_build = [need_go(), "build", "-o"]

    def build(target: Path) -> None:
        subprocess.run([*go_build, str(target / name), f"./{name}"], cwd=module, check=True)

    return [str(cached_build(Path("go") / name, [], sources, build) / name)]


def node() -> list[str]:
    return node_program(DRIVERS / "node", "driver.js")


def node_program(package: Path, script: str) -> list[str]:
    """Install the modules of a package; return the command of one of its scripts."""
    sources = sorted(package.glob("*.js*"))

    def build(target: Path) -> None:
        target.mkdir()
        for source in sources:
            shutil.copy(source, target)
        install = [need_npm(), "ci", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(install, cwd=target, check=True, stdout=subprocess.DEVNULL)

    return [need_node(), str(cached_build(Path("node") / package.name, [], sources, build) / script)]
