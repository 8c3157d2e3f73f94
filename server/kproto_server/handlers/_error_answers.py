"""Answers made from a description: where an API puts its error, and which parts of the request it repeats.

A response is made of its own declaration: what nobody sets is null where it may be, otherwise empty, 0, or a default.
Used where speed does not matter, for APIs that do nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kproto.declaration import DEFAULTS, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.codes import ErrorCode
    from kproto.declaration import Field, Struct
    from kproto.message import Request, Response

S = TypeVar("S", bound="Struct")


class Items(NamedTuple):
    """An array of the response that has an item for each one of an array of the request."""

    answered: str
    """The response's array."""
    asked: str
    """The request's array (``a.b``: those of the items of another); null counts as empty."""
    copied: Mapping[str, str]
    """Field of the response's item: field of the request's item; the item itself if it is a plain value: `ITSELF`."""
    inner: Items | None = None
    """An array within the items. Every item that has a place for an error has the error."""


ITSELF = ""


class Answer(NamedTuple):
    """What an API answers."""

    error: ErrorCode
    message: str | None = None
    """None: the error's own text, where the API has a place for one."""
    items: tuple[Items, ...] = ()
    """Where the errors go; none: to the top. In a version that has none of the arrays, to the top too."""
    values: Mapping[str, Any] = {}
    """Further fields, at the level of the error."""


def make(answer: Answer, request: Request, response_class: type[Response], api_version: int) -> Response:
    """Return the response to a request."""
    level = {
        "error_code": answer.error,
        "partition_error_code": answer.error,
        "error_message": answer.error.message if answer.message is None else answer.message,
        **answer.values,
    }
    items = [items for items in answer.items if _field(response_class, items.answered).versions.covers(api_version)]
    if not items:
        return _blank(response_class, level, api_version)
    arrays: dict[str, tuple[Struct, ...]] = {}
    for array in items:
        element = _element(_field(response_class, array.answered))
        arrays[array.answered] = (
            *arrays.get(array.answered, ()),
            *_mirror(array, request, element, level, api_version),
        )
    return _blank(response_class, arrays, api_version)


def _mirror(
    items: Items, asked: Any, element: type[Struct], level: Mapping[str, Any], api_version: int
) -> Iterator[Struct]:
    for item in _walk([asked], items.asked):
        told: dict[str, Any] = {**level}
        for field, source in items.copied.items():
            told[field] = item if source == ITSELF else getattr(item, source)
        if items.inner is not None:
            inner_element = _element(_field(element, items.inner.answered))
            told[items.inner.answered] = tuple(_mirror(items.inner, item, inner_element, level, api_version))
        yield _blank(element, told, api_version)


def _walk(values: Iterable[Any], path: str) -> Iterator[Any]:
    """Yield the items of an array; ``a.b`` is the arrays b of the items of array a, one after the other."""
    first, _, rest = path.partition(".")
    items = (item for value in values for item in getattr(value, first) or ())
    return _walk(items, rest) if rest else items


def _field(cls: type[Struct], name: str) -> Field:
    return next(field for field in fields_of(cls) if field.name == name)


def _element(field: Field) -> type[Struct]:
    assert field.type.element is not None, f"{field.name} is an array"
    assert field.type.element.struct is not None, f"{field.name} has structures for items"
    return field.type.element.struct


def _blank(cls: type[S], values: Mapping[str, Any], api_version: int) -> S:
    """Make a value of which some fields are told; those that the class or the version lacks do not count."""
    told = {}
    optional = vars(cls)["_defaults"]
    for field in fields_of(cls):
        if field.name in values and field.versions.covers(api_version):
            told[field.name] = values[field.name]
        elif field.name not in optional:
            told[field.name] = _nothing(field, api_version)
    return cls(**told)


def _nothing(field: Field, api_version: int) -> Any:
    if field.nullable_versions.covers(api_version):
        return None
    if field.type.struct is not None:
        return _blank(field.type.struct, {}, api_version)
    return DEFAULTS[field.type.kind]
