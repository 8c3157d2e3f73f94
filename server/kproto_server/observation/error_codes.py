"""Find all error codes in a response.

One function for each response class is compiled from its declaration at first use, so that the hot path looks up no
field by name. Values are tuples (kproto.declaration), so a field is read by its index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.declaration import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.declaration import Field, Struct

    Reader = Callable[[Any], list[int]]

_readers: dict[type[Struct], Reader] = {}


def error_codes(response: Struct) -> list[int]:
    """Return all error codes of a response, or of a struct in it, other than 0, in wire order."""
    return reader_of(type(response))(response)


def reader_of(cls: type[Struct]) -> Reader:
    """Return the function that does what `error_codes` does, for the values of one class."""
    read = _readers.get(cls)
    if read is None:
        read = _readers[cls] = _compile(cls)
    return read


def _compile(cls: type[Struct]) -> Reader:
    source = "\n".join(["def read(v0):", " found = []", *_reading(cls, 0, " "), " return found"])
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - the source consists of indexes and fixed text
    read: Reader = scope["read"]
    return read


def _reading(cls: type[Struct], depth: int, indent: str) -> Iterator[str]:
    """Yield the source lines that append the error codes of the value in variable ``v<depth>``."""
    for index, field in enumerate(fields_of(cls)):
        value = f"v{depth}[{index}]"
        if _is_error_code(field):
            yield f"{indent}if {value}: found.append({value})"
        elif field.type.kind == "struct" and field.type.struct is not None:
            inside = list(_reading(field.type.struct, depth + 1, indent + " "))
            if inside:
                yield f"{indent}v{depth + 1} = {value}"
                yield f"{indent}if v{depth + 1} is not None:"
                yield from inside
        elif field.type.element is not None and field.type.element.struct is not None:
            inside = list(_reading(field.type.element.struct, depth + 1, indent + " "))
            if inside:
                yield f"{indent}for v{depth + 1} in {value} or ():"
                yield from inside


def _is_error_code(field: Field) -> bool:
    return field.name == "error_code" or field.name.endswith("_error_code")
