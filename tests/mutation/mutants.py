"""The mutants of a file. mutmut makes them: each is a function beside the original one, which a trampoline calls."""

from __future__ import annotations

import ast
import contextlib
import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TRAMPOLINE = "from {} import wrap_in_trampoline"


def mutate(directory: Path, file: str) -> list[str]:
    """Add the mutants of a file to it; return their names but for those that change only the message of an assert."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    path = directory / file
    with contextlib.chdir(directory):  # mutmut reads its settings here
        mutated = mutate_file_contents(file, path.read_text(), None, None)
    code = mutated.code.replace(
        TRAMPOLINE.format("mutmut.mutation.trampoline"), TRAMPOLINE.format("tests.mutation.trampoline")
    )
    path.write_text(code)
    functions = _functions(code)
    originals: dict[str, str] = {}
    names = []
    for name in mutated.mutant_names:
        original = _original(name)
        if original not in originals:
            originals[original] = _without_messages(functions[original])
        if _without_messages(functions[name]) != originals[original]:
            names.append(name)
    return names


def difference(directory: Path, file: str, name: str) -> str:
    """Return what a mutant changes, as a diff."""
    code = (directory / file).read_text()
    functions = _functions(code)
    before, after = ((ast.get_source_segment(code, functions[each]) or "") for each in (_original(name), name))
    lines = difflib.unified_diff(before.splitlines()[1:], after.splitlines()[1:], file, name, lineterm="", n=1)
    return "\n".join(lines)


def _original(name: str) -> str:
    return f"{name.partition('__mutmut_')[0]}__mutmut_orig"


def _functions(code: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: node for node in ast.walk(ast.parse(code)) if isinstance(node, kinds)}


class _WithoutMessages(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        return ast.Assert(node.test)


def _without_messages(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the function as text, without its name and the messages of its asserts. The node may change."""
    body = [ast.dump(_WithoutMessages().visit(statement)) for statement in function.body]
    return "\n".join([ast.dump(function.args), *body])
