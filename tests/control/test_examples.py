"""The examples of the control API in Go, JavaScript and Java work, and each of their tests has run.

Method. Each command is that of fixtures/examples/README.md, in a copy of its folder.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.requirements import need_go, need_java, need_maven, need_node, need_npm

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples"
LIMIT_S = 300
"""The first run downloads the modules of the clients."""


def run_example(name: str, folder: Path, **variables: str) -> str:
    """Run an example by its command, and return its output."""
    copy = folder / name
    shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns("node_modules", "target"))
    table = (EXAMPLES / "README.md").read_text()
    (command,) = re.findall(rf"^\| \[{name}\]\({name}\) \| .* \| `(.*)` \|$", table, re.M)
    command = command.replace("kproto run", f"{shlex.quote(sys.executable)} -m kproto_server run")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=copy,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_go(tmp_path: Path) -> None:
    need_go()
    output = run_example("go", tmp_path, GOFLAGS="-v -mod=mod")
    assert output.count("--- PASS: ") == 3


def test_node(tmp_path: Path) -> None:
    need_node()
    need_npm()
    output = run_example("node", tmp_path)
    assert "# pass 3" in output or "ℹ pass 3" in output  # noqa: RUF001 - what Node.js prints on a terminal


def test_junit(tmp_path: Path) -> None:
    need_java()
    need_maven()
    output = run_example("junit", tmp_path)
    assert "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in output
