"""The modules of ``kproto._generated``, which the build hook adds to the wheel (D14)."""

from __future__ import annotations

import importlib
import pkgutil

from kproto.declaration import VersionedStruct
from kproto.generate.module import Module

PACKAGES = ("kproto.messages", "kproto.records")
HEADERS = "kproto.headers"


def generated_sources() -> dict[str, str]:
    """Return file name -> source of every module of ``kproto._generated``."""
    sources = {"__init__.py": '"""Codecs that the build generated from the declarations; see kproto.generate."""\n'}
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
    """Return the source of the codecs of all messages that a module declares; None if it declares none."""
    declared = [
        value
        for value in vars(importlib.import_module(module_name)).values()
        if isinstance(value, type) and issubclass(value, VersionedStruct) and value.__module__ == module_name
    ]
    if not declared:
        return None
    module = Module()
    for cls in declared:
        for version in range(cls._versions.first, cls._versions.last + 1):
            module.add(cls, version)
    return module.source()
