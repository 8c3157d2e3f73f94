"""There is no import circle, type-checking imports included. The layers are contracts in pyproject.toml."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def test_there_is_no_import_circle() -> None:
    graph = grimp.build_graph("kproto", "kproto_server", include_external_packages=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
