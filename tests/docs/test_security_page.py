"""The programs and the tables of server/SECURITY.md are true."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kproto_server.broker.broker import Broker
from kproto_server.configuration.settings import SETTINGS
from kproto_server.security.certificates import PASSWORD, CertificateKind
from kproto_server.security.sasl import OAUTHBEARER
from tests.security import test_client_settings, test_oauth_clients

PAGE = (Path(__file__).parents[2] / "server" / "SECURITY.md").read_text()
LIMIT_S = 60


PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def output_of(program: str, folder: Path) -> str:
    """Run a program of the page; return what it prints."""
    (folder / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "example.py"], cwd=folder, env=os.environ, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_programs_work(tmp_path: Path) -> None:
    refusals, tokens, *_ = (output_of(program, tmp_path) for program in PROGRAMS)
    assert 'security_protocol="SSL"' in refusals
    assert "refused: " in refusals
    assert [line.count(".") for line in tokens.splitlines()] == [2, 0, 2]


def test_the_tables_have_all_kinds_and_all_files() -> None:
    first_cells = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
    names = set(re.findall(r"`([\w.-]+)`", "\n".join(first_cells)))
    with Broker.running(tls="auto") as broker:
        files = {path.name for path in broker.tls.files.directory.iterdir()}
    settings = {"--tls", *SETTINGS}
    assert names - settings == files | {kind.value for kind in CertificateKind}
    assert f"The password of the PKCS12 files is `{PASSWORD}`." in PAGE


NAMES = {"test_java": "Java", "test_java_0_11": "Java 0.11.0.3", "test_kafkajs": "KafkaJS"}
"""Libraries that are not called as their tests."""


def covered(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the library, with its release if there are several, and the security of each test of a module."""
    for name, function in vars(module).items():
        library = NAMES.get(name, name.removeprefix("test_").replace("_", "-"))
        parameters = inspect.signature(function).parameters if name.startswith("test_") else {}
        given = {
            mark.args[0]: mark.args[1]
            for mark in getattr(function, "pytestmark", ())
            if mark.name == pytest.mark.parametrize.name
        }
        if "bearer_broker" in parameters:
            kinds = [OAUTHBEARER]
        elif "broker" in parameters:
            kinds = list(test_client_settings.KINDS)
        else:
            kinds = [kind for kind in given.get("kind", ()) if kind in test_client_settings.KINDS]
        for kind in kinds:
            for release in given.get("release", [""]):
                yield f"{library} {release}".strip(), kind


def test_the_table_of_clients_is_that_of_the_tests() -> None:
    found = {*covered(test_client_settings), *covered(test_oauth_clients)}
    head, _, *rows = PAGE[PAGE.index("| Client |") :].split("\n\n")[0].splitlines()
    _, *kinds = (cell.strip() for cell in head.strip("| ").split("|"))
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    listed = {(client, kind) for client, *marks in cells for kind, mark in zip(kinds, marks, strict=True) if mark}
    assert {kind for _, kind in found} == set(kinds)
    assert listed == found
