"""The programs and the tables of server/SECURITY.md are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kproto_server.broker.broker import Broker
from kproto_server.configuration.settings import SETTINGS
from kproto_server.security.certificates import PASSWORD, CertificateKind

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
    refusals, tokens, _ = (output_of(program, tmp_path) for program in PROGRAMS)
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
