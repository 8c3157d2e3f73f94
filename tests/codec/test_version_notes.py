"""The version notes in the docstrings of messages agree with the declarations: added, removed and nullable fields.

The text after a semicolon is about meaning and is not tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kproto.declaration import Struct, fields_of
from kproto.message import Message
from kproto.messages import APIS
from kproto.registry import request_class, response_class

MESSAGES = tuple(side(key) for key in APIS for side in (request_class, response_class))
each_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)

NOTE = re.compile(r"v(\d+)(?:-v(\d+))?: ")


def notes(cls: type[Message]) -> Iterator[tuple[range, str]]:
    """Yield (versions, text) of each note, without the part about meaning."""
    text = " ".join((cls.__doc__ or "").split())
    starts = [*NOTE.finditer(text)]
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=False):
        first, last = int(start[1]), int(start[2] or start[1])
        yield range(first, last + 1), text[start.end() : end].partition(";")[0].strip(" .")


def noted_changes(cls: type[Message]) -> dict[int, set[str]]:
    """Return the changes that the notes list for each version, from the second one on."""
    found = {}
    for versions, text in notes(cls):
        for version in versions:
            if version > cls._versions.first:
                found[version] = set(text.split(", "))
    return found


def fields(cls: type[Struct], version: int, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, marks) of each field of a version, outer fields first."""
    for field in fields_of(cls):
        if field.versions.covers(version):
            path = f"{before}{field.name}"
            null = "?" if field.nullable_versions.covers(version) else ""
            tagged = " (tagged)" if field.tag is not None and field.tag.versions.covers(version) else ""
            yield path, null + tagged
            inner = field.type.element or field.type
            if inner.struct is not None:
                yield from fields(inner.struct, version, f"{path}{'[]' if field.type.element else ''}.")


def outermost(paths: set[str]) -> set[str]:
    """Return the paths that are not inside another one."""
    return {path for path in paths if not any(path.startswith((f"{other}.", f"{other}[].")) for other in paths)}


def changed(cls: type[Message], version: int) -> set[str]:
    """Return the changes of a version's layout, in the words of the notes."""
    old, new = dict(fields(cls, version - 1)), dict(fields(cls, version))
    found = {f"+ {path}{new[path]}" for path in outermost(new.keys() - old.keys())}
    found |= {f"- {path}" for path in outermost(old.keys() - new.keys())}
    nulls = {path for path in old.keys() & new.keys() if "?" in new[path] and "?" not in old[path]}
    found |= {f"{path} may be null" for path in nulls}
    if cls._flexible.covers(version) and not cls._flexible.covers(version - 1):
        found.add("flexible")
    return found


@each_message
def test_notes_list_the_changes_of_each_version(cls: type[Message]) -> None:
    notes_by_version = noted_changes(cls)
    first, last = cls._versions
    assert set(notes_by_version) == set(range(first + 1, last + 1))
    same_as = first
    for version in range(first + 1, last + 1):
        difference = changed(cls, version)
        if difference:
            same_as = version
            assert notes_by_version[version] == difference, f"v{version}"
        else:
            [note] = notes_by_version[version]
            assert note in {f"layout of v{equal}" for equal in range(same_as, version)}, f"v{version}"
