"""Shares the work of collecting tests among the processes of pytest-xdist, which all collect all of them.

Half of the CPU time of the first collection in a clone is pytest's compilation of tests, which it keeps in files. If
all processes imported the tests in the same order, at the same speed, each would compile all of them. So each begins at
another place of the order, and finds compiled what the others have reached.

The garbage collector looks at no test meanwhile, nor later: none becomes garbage.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest


@pytest.hookimpl
def pytest_collection(session: pytest.Session) -> None:
    gc.disable()
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        given = (config.invocation_params.dir / name.partition("::")[0] for name in config.args)
        import_tests(config.rootpath, given, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)  # a collection of every 700 objects takes a tenth of the CPU time of many tests
    gc.enable()


def import_tests(root: Path, given: Iterable[Path], number: int, count: int) -> None:
    """Import all given tests; process ``number`` of ``count`` begins behind as many parts of them."""
    files = sorted({file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    begin = len(files) * number // count
    for file in files[begin:] + files[:begin]:
        with suppress(Exception, pytest.skip.Exception):  # the collection imports it again, and reports this
            import_module(".".join(file.relative_to(root).with_suffix("").parts))
