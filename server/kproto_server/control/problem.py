"""Errors of the control API as problem details (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import KprotoError

if TYPE_CHECKING:
    from kproto_server.broker.own_requests import RequestRefused

UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)
"""Errors that say that there is no such thing."""


class Problem(KprotoError):
    """A request that gets an error; the text says what is wrong and what to do."""

    def __init__(
        self, status: HTTPStatus, detail: str, headers: tuple[tuple[str, str], ...] = (), error: str | None = None
    ) -> None:
        """``error``: Kafka's name of the error code, if a broker gives one."""
        super().__init__(detail)
        self.status: HTTPStatus = status
        self.detail: str = detail
        self.headers: tuple[tuple[str, str], ...] = headers
        self._error = error

    def as_object(self) -> dict[str, object]:
        """Return the members of the problem details."""
        found = {"type": "about:blank", "title": self.status.phrase, "status": int(self.status), "detail": self.detail}
        return found if self._error is None else found | {"error": self._error}


def refused(error: RequestRefused) -> Problem:
    """Return the problem of a request that the broker refuses."""
    status = HTTPStatus.NOT_FOUND if error.error in UNKNOWN else HTTPStatus.CONFLICT
    return Problem(status, str(error), error=error.error.name)


def not_found(detail: str) -> Problem:
    """Return the problem of a path that names nothing."""
    return Problem(HTTPStatus.NOT_FOUND, detail)


def bad_request(detail: str) -> Problem:
    """Return the problem of a request that can't be understood."""
    return Problem(HTTPStatus.BAD_REQUEST, detail)
