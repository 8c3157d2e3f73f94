"""Each async function of the product says in its docstring what a cancellation leaves behind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.docs.texts import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    Definition = ast.FunctionDef | ast.AsyncFunctionDef


def outer_functions(body: list[ast.stmt]) -> Iterator[Definition]:
    """Yield functions and methods. A function within another one is left out: the outer one cancels it."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from outer_functions(statement.body)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield statement


def waits(function: Definition) -> bool:
    """Return whether an async function awaits anything, so that it can be cancelled."""
    awaiting = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    return isinstance(function, ast.AsyncFunctionDef) and any(isinstance(one, awaiting) for one in ast.walk(function))


def test_each_async_function_says_what_a_cancellation_leaves_behind() -> None:
    silent = []
    for folder in ("kproto", "server/kproto_server"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            silent += [
                f"{path.relative_to(ROOT)}:{function.lineno}: {function.name}"
                for function in outer_functions(ast.parse(path.read_text(encoding="utf-8")).body)
                if waits(function) and "ancel" not in (ast.get_docstring(function) or "")
            ]
    assert silent == []
