"""Error responses built from the declaration of an API: where its error goes, and which request fields it repeats.

A response has all fields of its declaration. A field without a given value is null where the declaration allows null,
otherwise empty, 0, or its default. Only APIs that do nothing in kproto, and requests that fail, use this module, so it
need not be fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kproto import registry
from kproto.declaration import DEFAULTS, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto.codes import ErrorCode
    from kproto.declaration import Field, Struct
    from kproto.message import Request, Response

S = TypeVar("S", bound="Struct")


class Items(NamedTuple):
    """An array of the response with one item for each item of a request array."""

    response_array: str
    request_array: str
    """``a.b`` means the arrays ``b`` of all items of array ``a``. A null array counts as empty."""
    copied: Mapping[str, str]
    """Field of the response item -> field of the request item, or `ITSELF` for a request array of plain values."""
    inner: Items | None = None
    """An array within the items. The error is set at each level that has a field for it."""


ITSELF = ""


class ErrorResponse(NamedTuple):
    """What an API responds."""

    error: ErrorCode
    message: str | None = None
    """For the error message field, if there is one; None: Kafka's message for the error code."""
    items: tuple[Items, ...] = ()
    """The arrays whose items have the error. Without arrays, or in a version that has none of them, the response itself
    has the error."""
    values: Mapping[str, Any] = {}
    """Other fields, at the level of the error."""
    is_everywhere: bool = False
    """Whether the response itself has the error, too, if arrays have it."""


def build(
    error_response: ErrorResponse, request: Request, response_class: type[Response], api_version: int
) -> Response:
    """Return the response to a request."""
    values = {
        "error_code": error_response.error,
        "partition_error_code": error_response.error,
        "error_message": error_response.error.message if error_response.message is None else error_response.message,
        **error_response.values,
    }
    items = [
        items
        for items in error_response.items
        if _field(response_class, items.response_array).versions.covers(api_version)
    ]
    if not items:
        return filled(response_class, values, api_version)
    arrays: dict[str, tuple[Struct, ...]] = {}
    for array in items:
        element = _element(_field(response_class, array.response_array))
        arrays[array.response_array] = (
            *arrays.get(array.response_array, ()),
            *_response_items(array, request, element, values, api_version),
        )
    own = values if error_response.is_everywhere else {}
    return filled(response_class, {**own, **arrays}, api_version)


def _response_items(
    items: Items, parent: Any, element: type[Struct], values: Mapping[str, Any], api_version: int
) -> Iterator[Struct]:
    for item in _request_items([parent], items.request_array):
        own: dict[str, Any] = {**values}
        for field, source in items.copied.items():
            own[field] = item if source == ITSELF else getattr(item, source)
        if items.inner is not None:
            inner_element = _element(_field(element, items.inner.response_array))
            own[items.inner.response_array] = tuple(
                _response_items(items.inner, item, inner_element, values, api_version)
            )
        yield filled(element, own, api_version)


def _request_items(values: Iterable[Any], path: str) -> Iterator[Any]:
    """Yield the items of an array; ``a.b`` is the arrays ``b`` of the items of array ``a``, one after the other."""
    first, _, rest = path.partition(".")
    items = (item for value in values for item in getattr(value, first) or ())
    return _request_items(items, rest) if rest else items


def _field(cls: type[Struct], name: str) -> Field:
    return next(field for field in fields_of(cls) if field.name == name)


def _element(field: Field) -> type[Struct]:
    assert field.type.element is not None, f"{field.name} is an array"
    assert field.type.element.struct is not None, f"the items of {field.name} are structs"
    return field.type.element.struct


METADATA = 3
TOPICS = Items("topics", "topics", {"name": "name", "topic_id": "topic_id"})


def refused(request: Request | None, api_key: int, api_version: int, error: ErrorCode) -> Response:
    """Return the response to a request that is not handled: as `with_error`; each topic of Metadata has the error.

    ``request``: None if it is an ApiVersions that the broker cannot read.
    """
    response = with_error(api_key, api_version, error)
    if api_key != METADATA or request is None:
        return response
    found = build(ErrorResponse(error, items=(TOPICS,)), request, type(response), api_version)
    topics = tuple(topic.replace(name=topic.name or "") for topic in found.topics)  # type: ignore[attr-defined]
    return response.replace(topics=topics)


def with_error(api_key: int, api_version: int, error: ErrorCode) -> Response:
    """Return a response of an API that has an error, where the response itself can have one, and is empty otherwise."""
    values = {"error_code": error, "error_message": error.message}
    return filled(registry.response_class(api_key), values, api_version)


def filled(cls: type[S], values: Mapping[str, Any], api_version: int) -> S:
    """Return a struct with these values. Values that the class or the version has no field for are ignored."""
    given = {}
    optional = vars(cls)["_defaults"]
    for field in fields_of(cls):
        if field.name in values and field.versions.covers(api_version):
            given[field.name] = values[field.name]
        elif field.name not in optional:
            given[field.name] = _empty(field, api_version)
    return cls(**given)


def _empty(field: Field, api_version: int) -> Any:
    if field.nullable_versions.covers(api_version):
        return None
    if field.type.struct is not None:
        return filled(field.type.struct, {}, api_version)
    return DEFAULTS[field.type.kind]
