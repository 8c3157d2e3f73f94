"""``python -m tests.mutation [MODULE ...]``: change the product in small ways; report the changes no test detects.

mutmut makes the changed functions, the mutants; install it with pip. The command copies the repository, with the
packages side by side, and runs the tests there (`tests.mutation.session`). MODULE is a file or a directory below the
repository's root; the default is the codec and the coordinator. The mutants of all modules are tried in a mixed order,
so that a run of some minutes is a sample of all. The command prints one line for each module and one for all, then each
surviving mutant as a diff. With --directory it keeps the copy and the results, and goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

from tests.mutation.mutants import difference, mutate
from tests.mutation.results import Mutants, read_results

ROOT = Path(__file__).parents[2]
CODEC = ("kproto/framing.py", "kproto/headers.py", "kproto/primitives.py", "kproto/offset_commit_v4.py")
MODULES = (*CODEC, "kproto/records", "server/kproto_server/coordinator")
TESTS = (
    "tests/connection",
    "tests/requests",
    "tests/records",
    # Not the tests of the codec that go through all messages: they take minutes.
    "tests/codec/test_codes.py",
    "tests/codec/test_declarations.py",
    "tests/codec/test_decode_errors.py",
    "tests/codec/test_element_limit.py",
    "tests/codec/test_encode_errors.py",
    "tests/codec/test_golden_frames.py",
    "tests/codec/test_offset_commit_v4.py",
    "tests/coordinator",
    "tests/membership",
    "tests/consumer_groups",
    "tests/streams_groups",
    "tests/server/handlers",
    "tests/server/test_growth.py",
    "tests/commit_cache",
)
COPIED = ("kproto", "tests", "fixtures", "pyproject.toml", "README.md")


def lay_out(directory: Path, modules: list[str]) -> None:
    """Copy the repository so that ``kproto`` and ``kproto_server`` are side by side, and make the mutants."""
    skipped = shutil.ignore_patterns("__pycache__", ".*_cache")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=skipped)
        else:
            shutil.copy(source, directory / name)
    shutil.copytree(ROOT / "server" / "kproto_server", directory / "kproto_server", ignore=skipped)
    (directory / "setup.cfg").write_text("[mutmut]\nsource_paths=kproto\n")
    mutants: Mutants = {}
    for module in modules:
        path = directory / module.removeprefix("server/")
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            relative = file.relative_to(directory)
            mutants[_module_of(relative)] = mutate(directory, str(relative))
    (directory / "mutants.json").write_text(json.dumps(mutants))


def _module_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def run(directory: Path, minutes: float, tests: list[str]) -> int:
    """Run the mutants that have no result, and report."""
    session = [sys.executable, "-m", "tests.mutation.session", str(minutes), *tests]
    environment = {**os.environ, "KPROTO_HYPOTHESIS": "few", "PYTHONHASHSEED": "0"}
    done = subprocess.run(session, cwd=directory, env=environment)
    return done.returncode or report(directory)


def report(directory: Path) -> int:
    """Print the results by module, and the diff of each surviving mutant."""
    mutants: Mutants = json.loads((directory / "mutants.json").read_text())
    results = read_results(directory / "results.txt")
    total: Counter[str] = Counter()
    for module, names in mutants.items():
        counts = Counter(results.get(f"{module}.{name}", "not run") for name in names)
        total += counts
        print(module, _in_words(counts))
    print("all modules:", _in_words(total))
    for module, names in mutants.items():
        file = module.replace(".", "/")
        file = f"{file}/__init__.py" if (directory / file).is_dir() else f"{file}.py"
        for name in names:
            if results.get(f"{module}.{name}") in ("survived", "no tests"):
                print(difference(directory, file, name))
    return 0


def _in_words(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in counts.most_common())


def main() -> int:
    parser = ArgumentParser(prog="python -m tests.mutation", description="Count the mutants that the tests detect.")
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="files or directories; default: codec, coordinator"
    )
    parser.add_argument("--tests", nargs="+", default=list(TESTS), metavar="PATH", help=f"default: {' '.join(TESTS)}")
    parser.add_argument("--minutes", type=float, default=600, metavar="M", help="begin no mutant later (default: 600)")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="keep copy and results here, or continue")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kproto-mutation-") as name:
        directory = Path(name) if options.directory is None else options.directory
        if not (directory / "mutants.json").exists():
            directory.mkdir(exist_ok=True)
            lay_out(directory, options.modules or list(MODULES))
        return run(directory, options.minutes, options.tests)


if __name__ == "__main__":
    sys.exit(main())
