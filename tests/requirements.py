"""The programs that tests need beyond Python.

Each `need_x()` returns the path of the program, or skips the test and says what to install. With KPROTO_CI=1 in the
environment all programs are expected to be installed, and the test fails instead.
"""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip the test for this reason; fail it if KPROTO_CI is 1."""
    if os.environ.get("KPROTO_CI") == "1":
        pytest.fail(f"KPROTO_CI=1, but this test {reason}", pytrace=False)
    pytest.skip(reason)


def need(*names: str, install: str) -> str:
    """Return the path of the first of these programs that is on PATH."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    missing(f"needs {names[0]}: install {install}")


def need_package(name: str) -> None:
    """Skip the test if a package of the extra "test" is missing."""
    if importlib.util.find_spec(name) is None:
        missing(f"needs the package {name}: pip install '.[test]'")


def need_java() -> str:
    return _from_jdk("java")


def need_javac() -> str:
    return _from_jdk("javac")


def _from_jdk(program: str) -> str:
    """Return the path of a program of the JDK: JAVA_HOME comes before PATH, as in Kafka's own scripts."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / program).exists():
        return str(Path(home) / "bin" / program)
    return need(program, install="a JDK, 17 or newer (Debian: openjdk-17-jdk-headless), or set JAVA_HOME")


def need_maven() -> str:
    return need("mvn", install="Maven (Debian: maven); it downloads Kafka's jars once")


def need_go() -> str:
    return need("go", install="Go, 1.22 or newer")


def need_node() -> str:
    return need("node", install="Node.js, 18 or newer")


def need_npm() -> str:
    return need("npm", install="npm, which comes with Node.js")


def need_chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return need(*names, install="Chromium (Debian: chromium)")


def need_kcat() -> str:
    return need("kcat", install="kcat (Debian: kcat)")
