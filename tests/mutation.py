"""``python -m tests.mutation [MODULE ...]``: change the product in small ways; report the changes no test detects.

mutmut makes the mutants and runs the tests that reach each one. It expects all packages side by side, so the command
copies the repository in that layout to a temporary directory. MODULE is a file or a directory below the repository's
root; the default is the codec and the coordinator, which takes some hours on two cores. The command prints one line for
each module, then each surviving mutant as a diff.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = (
    "kproto/framing.py",
    "kproto/headers.py",
    "kproto/primitives.py",
    "kproto/offset_commit_v4.py",
    "kproto/records",
    "server/kproto_server/coordinator",
)
TESTS = ("tests/codec", "tests/records", "tests/coordinator", "tests/membership")
DESELECTED = ("--deselect=tests/codec/test_raises.py::test_every_documented_exception_has_a_case",)
"""This test compares names of functions, and mutmut renames them."""
COPIED = ("kproto", "tests", "fixtures", "pyproject.toml", "README.md")


def lay_out(directory: Path, modules: list[str], tests: list[str]) -> None:
    """Copy the repository so that ``kproto`` and ``kproto_server`` stand side by side, with mutmut's settings."""
    skipped = shutil.ignore_patterns("__pycache__", ".*_cache")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=skipped)
        else:
            shutil.copy(source, directory / name)
    shutil.copytree(ROOT / "server" / "kproto_server", directory / "kproto_server", ignore=skipped)
    paths = [module.removeprefix("server/") for module in modules]
    patterns = [path if path.endswith(".py") else f"{path}/*" for path in paths]
    settings = {
        "source_paths": ["kproto", "kproto_server"],
        "only_mutate": patterns,
        "also_copy": ["fixtures", "README.md"],
        "pytest_add_cli_args": ["--import-mode=prepend", "-p", "no:cacheprovider", "-p", "no:xdist", *DESELECTED],
        "pytest_add_cli_args_test_selection": tests,
    }
    lines = [f"{name}=\n" + "".join(f"    {value}\n" for value in values) for name, values in settings.items()]
    (directory / "setup.cfg").write_text("[mutmut]\n" + "".join(lines))


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.mutation", description="Count the mutants that the tests detect.")
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="files or directories; default: codec, coordinator"
    )
    parser.add_argument("--tests", nargs="+", default=list(TESTS), metavar="PATH", help=f"default: {' '.join(TESTS)}")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kproto-mutation-") as name:
        directory = Path(name)
        lay_out(directory, options.modules or list(MODULES), options.tests)
        environment = {**os.environ, "KPROTO_HYPOTHESIS": "few"}
        run = ["mutmut", "run", "--max-children", str(options.processes)]
        done = subprocess.run([sys.executable, "-m", *run], cwd=directory, env=environment)
        return done.returncode or report(directory, environment)


def report(directory: Path, environment: dict[str, str]) -> int:
    """Print the results by module, and the diff of each surviving mutant."""
    results = subprocess.run(
        [sys.executable, "-m", "mutmut", "results", "--all", "true"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    by_module: defaultdict[str, Counter[str]] = defaultdict(Counter)
    surviving = []
    for line in results.stdout.splitlines():
        mutant, _, status = line.strip().rpartition(": ")
        by_module[mutant.partition(".x")[0]][status] += 1
        if status == "survived":
            surviving.append(mutant)
    for module, counts in sorted(by_module.items()):
        print(module, ", ".join(f"{count} {status}" for status, count in counts.most_common()))
    for mutant in surviving:
        diff = [sys.executable, "-m", "mutmut", "show", mutant]
        print(subprocess.run(diff, cwd=directory, env=environment, capture_output=True, text=True).stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
