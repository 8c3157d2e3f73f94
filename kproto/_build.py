"""The build's part: generated codecs for the wheel (D14). Not part of the wheel itself.

A wheel gets one module of codecs for each module of declarations; an editable install gets none, and generates what it
needs at first use, so that a checkout never runs codecs older than its declarations.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("kproto.messages", "kproto.records")
HEADERS = "kproto.headers"


def generated_sources() -> dict[str, str]:
    """Return file name -> source of every module of ``kproto._generated``."""
    sources = {"__init__.py": '"""Codecs made by the build from the declarations; see kproto.generate."""\n'}
    for name in [HEADERS, *_submodules()]:
        source = _generate(name)
        if source is not None:
            sources[f"{name.rpartition('.')[2]}.py"] = source
    return sources


def _submodules() -> list[str]:
    return [
        f"{package}.{module.name}"
        for package in PACKAGES
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ]


def _generate(module_name: str) -> str | None:
    """Return the codecs of all messages that a module declares; None if it declares none."""
    from kproto.declaration import Message
    from kproto.generate import Module

    declared = [
        value
        for value in vars(importlib.import_module(module_name)).values()
        if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module_name
    ]
    if not declared:
        return None
    module = Module()
    for cls in declared:
        for version in range(cls._versions.first, cls._versions.last + 1):
            module.add(cls, version)
    return module.source()


class CodecHook(BuildHookInterface[Any]):
    """Called by hatchling while it builds a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the generated modules; the tree stays as it is."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        self._folder = tempfile.TemporaryDirectory()
        for name, source in generated_sources().items():
            path = Path(self._folder.name, name)
            path.write_text(source)
            build_data["force_include"][str(path)] = f"kproto/_generated/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is written: the folder can go."""
        if version != "editable":
            self._folder.cleanup()
