"""Each ``Raises:`` section of the public API is true.

Method. The sections are read from the docstrings. Each error that a public function names has a call that raises it,
and each call is for an error that a docstring names. All other sections name errors that exist.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from kproto_server import Broker
from tests.errors.broker_calls import BROKER_CALLS
from tests.errors.library_calls import LIBRARY_CALLS
from tests.errors.topic_calls import TOPIC_CALLS

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "kproto", ROOT / "server" / "kproto_server")
THIRD_PARTY = {"HTTPException", "KafkaException", "struct.error"}
LIBRARY = [(f"{module}.{name}", error, call) for module, calls in LIBRARY_CALLS.items() for name, error, call in calls]
BROKER = [
    (f"{module}.{name}", error, call)
    for module, calls in (BROKER_CALLS | TOPIC_CALLS).items()
    for name, error, call in calls
]


def errors_in(docstring: str) -> list[str]:
    """Return the names of the errors in the ``Raises:`` section of a docstring."""
    section = re.search(r"^Raises:\n((?: .*\n?|\n)*)", inspect.cleandoc(docstring), re.M)
    entries = re.findall(r"^    (\S.*)", section[1] if section else "", re.M)
    named = [re.match(r"([\w.]+(?:, [\w.]+)*): \S", entry) for entry in entries]
    assert all(named), f"an entry is not ERROR: CONDITION: {entries}"
    return [name for match in named if match for name in match[1].split(", ")]


def public_functions(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public functions, classes, methods and properties that a module declares, by dotted name."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        yield f"{module.__name__}.{name}", value
        if isinstance(value, type):
            members = {name: getattr(member, "__func__", member) for name, member in vars(value).items()}
            kinds = (FunctionType, property)
            yield from (
                (f"{module.__name__}.{value.__name__}.{name}", member)
                for name, member in members.items()
                if isinstance(member, kinds) and not name.startswith("_")
            )


def documented() -> set[tuple[str, str]]:
    """Return ``(function, error)`` for each error that the docstring of a public function names."""
    return {
        (name, error)
        for module in [*LIBRARY_CALLS, *BROKER_CALLS, *TOPIC_CALLS]
        for name, function in public_functions(importlib.import_module(module))
        for error in errors_in(function.__doc__ or "")
    }


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.running() as running:
        yield running


def ids(cases: list[tuple[str, type[BaseException], Callable[..., object]]]) -> list[str]:
    return [f"{name}-{error.__name__}" for name, error, _ in cases]


@pytest.mark.parametrize(("_name", "error", "call"), LIBRARY, ids=ids(LIBRARY))
def test_a_function_of_the_library_raises_the_error(
    _name: str, error: type[BaseException], call: Callable[[], object]
) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(("_name", "error", "call"), BROKER, ids=ids(BROKER))
def test_a_method_of_a_broker_raises_the_error(
    _name: str, error: type[BaseException], call: Callable[[Broker], object], broker: Broker
) -> None:
    with pytest.raises(error):
        call(broker)


def test_each_documented_error_of_a_public_function_is_raised() -> None:
    assert {(name, error.__name__) for name, error, _ in [*LIBRARY, *BROKER]} == documented()


def test_each_documented_error_exists() -> None:
    known, named = set(vars(builtins)) | THIRD_PARTY, set()
    for folder in PACKAGES:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    known.add(node.name)
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    named |= set(errors_in(ast.get_docstring(node) or ""))
    assert named <= known
