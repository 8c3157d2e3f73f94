"""The jars of Kafka's releases, cached from Maven Central, and their class paths."""

import fcntl
import os
import re
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kproto-oracle"
JARS = CACHE / "jars"
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
NEWEST_CACHED_S = 86400
LOG4J_OF_4X = "2.24.3"

# Loggers that would replace the configured one, and dependencies of the oldest releases that no registry has.
UNWANTED = (
    ("log4j", "log4j"),
    ("org.slf4j", "slf4j-log4j12"),
    ("org.slf4j", "slf4j-simple"),
    ("com.sun.jdmk", "*"),
    ("com.sun.jmx", "*"),
    ("javax.jms", "*"),
)


class OracleError(Exception):
    """An error for the user of the script; its text is complete without a traceback."""


def number(version: str) -> tuple[int, ...]:
    return tuple(int(x) for x in re.findall(r"\d+", version)[:4])


def fetch(version: str) -> tuple[str, Path]:
    """Return the release and the folder with its jars: the broker, and the tools if the registry has them.

    Otherwise a file TOOLS in the folder names the release whose tools replace them.
    """
    version = resolve(version)
    jars = JARS / version
    with _locked(version):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=JARS) as name:
                _download(version, Path(name)).rename(jars)
    return version, jars


def fetch_tools(version: str) -> Path:
    _, jars = fetch(version)
    return fetch((jars / "TOOLS").read_text())[1] if (jars / "TOOLS").exists() else jars


def fetch_clients(version: str) -> Path:
    """Return the folder with kafka-clients and its dependencies, without a broker."""
    version = resolve(version)
    jars = JARS / f"clients-{version}"
    with _locked(jars.name):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=JARS) as name:
                folder = Path(name) / "clients"
                _copy_jars(_project(_dependency("org.apache.kafka", "kafka-clients", version)), folder)
                (folder / "jars").rename(jars)
    return jars


def fetch_artifacts(name: str, artifacts: Iterable[tuple[str, str, str]]) -> Path:
    """Return a folder of this name with these jars (group, artifact, version), without their dependencies."""
    jars = JARS / name
    with _locked(name):
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=JARS) as folder:
                pom = _project("".join(_dependency(*artifact, (("*", "*"),)) for artifact in artifacts))
                _copy_jars(pom, Path(folder) / "artifacts")
                (Path(folder) / "artifacts" / "jars").rename(jars)
    return jars


def resolve(version: str) -> str:
    """Return the release; `newest` is resolved by Maven Central's metadata, at most once a day."""
    if version != "newest":
        return version
    known = CACHE / "newest"
    if not known.exists() or time.time() - known.stat().st_mtime > NEWEST_CACHED_S:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as out:
            artifact = "-Dartifact=org.apache.kafka:kafka-clients:RELEASE"
            _maven(f"{DEPENDENCY_PLUGIN}:copy", artifact, f"-DoutputDirectory={out}")
            with zipfile.ZipFile(next(Path(out).glob("*.jar"))) as jar:
                properties = jar.read("kafka/kafka-version.properties").decode()
        found = re.search(r"version=(\S+)", properties)
        if found is None:
            raise OracleError("kafka-clients has no version property")
        known.write_text(found[1])
    return known.read_text()


def classpath(jars: Path) -> str:
    return f"{jars}/*"


def find_class(jars: Path, name: str) -> str:
    """Return the full name of a Kafka class with this short name, preferring tools."""
    if "." in name:
        return name
    found: set[str] = set()
    for jar in [*jars.glob("kafka*.jar"), *jars.glob("connect*.jar")]:
        with zipfile.ZipFile(jar) as entries:
            hits = (entry for entry in entries.namelist() if entry.endswith(f"/{name}.class"))
            found |= {entry.removesuffix(".class").replace("/", ".") for entry in hits}
    if not found:
        raise OracleError(f"no class {name} in {jars}")
    return min(found, key=lambda c: (not c.startswith("org.apache.kafka.tools"), ".tools." not in c, c))


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one of several processes fetch the same jars."""
    JARS.mkdir(parents=True, exist_ok=True)
    with (JARS / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(version: str, folder: Path) -> Path:
    split = number(version) >= (2, 4)  # before that, the tools are in the broker's jar
    if _copy_jars(_project(_broker(version, tools=split)), folder / "with-tools", required=not split):
        return folder / "with-tools" / "jars"
    # The registry lacks the tools or their dependencies (4.0.1): fetch the broker alone, and older tools.
    _copy_jars(_project(_broker(version, tools=False)), folder / "broker")
    older = _dependency("org.apache.kafka", "kafka-tools", f"[2.4.0,{version})")
    _copy_jars(_project(older), folder / "tools", "-DexcludeTransitive=true")
    [jar] = (folder / "tools" / "jars").glob("kafka-tools-*.jar")
    (folder / "broker" / "jars" / "TOOLS").write_text(jar.stem.removeprefix("kafka-tools-"))
    return folder / "broker" / "jars"


def _copy_jars(pom: str, folder: Path, *flags: str, required: bool = True) -> bool:
    folder.mkdir()
    (folder / "pom.xml").write_text(pom)
    target = ("-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars")
    return _maven(
        "-f", f"{folder}/pom.xml", f"{DEPENDENCY_PLUGIN}:copy-dependencies", *target, *flags, required=required
    )


def _maven(*args: str, required: bool = True) -> bool:
    command = ["mvn", "-B", "-ntp", "-q", *args]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode and required:
        output = re.sub(r"https?://[^/\s]+", "REGISTRY", done.stdout + done.stderr)
        raise OracleError(f"maven failed:\n{output[-3000:]}")
    return done.returncode == 0


def _project(dependencies: str) -> str:
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>kproto</groupId><artifactId>oracle</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )


def _dependency(group: str, artifact: str, version: str, excluded: tuple[tuple[str, str], ...] = ()) -> str:
    exclusions = "".join(
        f"<exclusion><groupId>{g}</groupId><artifactId>{a}</artifactId></exclusion>" for g, a in excluded
    )
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<exclusions>{exclusions}</exclusions></dependency>"
    )


def _broker(version: str, *, tools: bool) -> str:
    v = number(version)
    scala = "2.13" if v >= (2, 4) else "2.12" if v >= (0, 11) else "2.11" if v >= (0, 8, 2) else "2.9.2"
    wanted = [("org.apache.kafka", f"kafka_{scala}", version)]
    if tools:
        wanted.append(("org.apache.kafka", "kafka-tools", version))
    if v >= (4,):
        log4j = ("log4j-core", "log4j-slf4j-impl", "log4j-1.2-api")
        wanted += [("org.apache.logging.log4j", artifact, LOG4J_OF_4X) for artifact in log4j]
    else:  # reload4j is the maintained log4j 1.2
        wanted.append(("org.slf4j", "slf4j-reload4j", "1.7.36"))
    if v < (1,):  # java.xml.bind left the JDK in 11
        wanted.append(("javax.xml.bind", "jaxb-api", "2.3.1"))
    if (2,) <= v < (2, 6):  # their ZooKeeper client parses InetSocketAddress.toString(), which changed in Java 14
        wanted.insert(0, ("org.apache.zookeeper", "zookeeper", "3.4.10" if v < (2, 4) else "3.5.9"))
    logger = ("ch.qos.reload4j", "*") if v >= (4,) else ("org.slf4j", "slf4j-api")
    excluded = (*UNWANTED, logger, *(() if tools else (("org.apache.kafka", "kafka-tools-api"),)))
    return "".join(_dependency(g, a, x, excluded if "apache" in g else ()) for g, a, x in wanted)
