"""The examples in kproto/README.md run, and its table lists every module of the library."""

import pkgutil
import re
from pathlib import Path

import pytest

import kproto

TEXT = Path(kproto.__path__[0], "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", TEXT, re.S | re.M)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs(example: str) -> None:
    exec(compile(example, "kproto/README.md", "exec"), {})  # noqa: S102 - our own text


def test_every_module_is_listed() -> None:
    modules = {module.name for module in pkgutil.iter_modules(kproto.__path__)} - {"_build", "_generated"}
    assert [name for name in sorted(modules) if f"`{name}`" not in TEXT] == []
