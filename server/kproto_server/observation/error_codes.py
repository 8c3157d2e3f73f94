"""The error codes of a response, wherever they stand in it.

A function for each class of responses, compiled from its declaration at first use: on the hot path no field is looked
up by name. Values are tuples underneath (kproto.declaration), so a field is read by its index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.declaration import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.declaration import Field, Struct
    from kproto.message import Response

    Reader = Callable[[Response], list[int]]

_readers: dict[type[Response], Reader] = {}


def error_codes(response: Response) -> list[int]:
    """Return all error codes of a response that are not 0, in the order of the wire."""
    cls = type(response)
    try:
        return _readers[cls](response)
    except KeyError:
        read = _readers[cls] = _compile(cls)
        return read(response)


def _compile(cls: type[Response]) -> Reader:
    source = "\n".join(["def read(v0):", " found = []", *_reading(cls, 0, " "), " return found"])
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - made of numbers and our own words
    read: Reader = scope["read"]
    return read


def _reading(cls: type[Struct], depth: int, indent: str) -> Iterator[str]:
    """Lines that append the error codes of a value in variable ``v<depth>``."""
    for index, field in enumerate(fields_of(cls)):
        place = f"v{depth}[{index}]"
        if _is_error_code(field):
            yield f"{indent}if {place}: found.append({place})"
        elif field.type.kind == "struct" and field.type.struct is not None:
            inside = list(_reading(field.type.struct, depth + 1, indent + " "))
            if inside:
                yield f"{indent}v{depth + 1} = {place}"
                yield f"{indent}if v{depth + 1} is not None:"
                yield from inside
        elif field.type.element is not None and field.type.element.struct is not None:
            inside = list(_reading(field.type.element.struct, depth + 1, indent + " "))
            if inside:
                yield f"{indent}for v{depth + 1} in {place} or ():"
                yield from inside


def _is_error_code(field: Field) -> bool:
    return field.name == "error_code" or field.name.endswith("_error_code")
