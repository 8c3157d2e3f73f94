"""The tree of errors: one root, and one class for each name.

Method. All modules of both packages are imported, and the exception classes that they declare are collected.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest

import kproto
import kproto_server
from kproto.errors import KprotoError

NEED_A_PACKAGE = {"kproto.client": "confluent_kafka", "kproto.spark": "pyspark", "kproto_server.inspect": "pyarrow"}
"""Package -> the optional requirement of its modules."""
NOT_IMPORTED = ("kproto._build", "kproto._generated")
"""The build hook, which needs hatchling, and what it makes."""


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        needed = [needs for name, needs in NEED_A_PACKAGE.items() if found.name.startswith(name)]
        if found.name.startswith(NOT_IMPORTED) or found.name.endswith("__main__"):
            continue
        if all(importlib.util.find_spec(name) for name in needed):
            yield importlib.import_module(found.name)


@pytest.fixture(scope="module")
def declared() -> list[type[BaseException]]:
    """Every exception class that a module declares."""
    return [
        value
        for package in (kproto, kproto_server)
        for module in modules(package)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == module.__name__
    ]


def test_every_error_is_a_kproto_error(declared: list[type[BaseException]]) -> None:
    assert len(declared) > 30
    errors = [error for error in declared if issubclass(error, Exception)]  # without the simulated disk's loss of power
    assert [error for error in errors if not issubclass(error, KprotoError)] == []


def test_every_name_is_used_once(declared: list[type[BaseException]]) -> None:
    names = [error.__name__ for error in declared]
    assert sorted(names) == sorted(set(names))


def test_an_error_reads_well_without_its_type() -> None:
    assert str(kproto.DecodeError("Request.topics", 7, "cut")) == "Request.topics at byte 7: cut"
    assert str(kproto.CorruptLog("a.log", 9, 4, "bad")) == "a.log at byte 9, offset 4: bad"
    assert str(kproto.CorruptLog("leader-epoch-checkpoint", 2, None, "bad", unit="line")) == (
        "leader-epoch-checkpoint at line 2: bad"
    )


def test_a_usage_error_is_a_value_error() -> None:
    assert issubclass(kproto.UsageError, ValueError)


def test_every_error_of_the_library_is_exported() -> None:
    from kproto import errors

    public = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(kproto.__all__) == public
