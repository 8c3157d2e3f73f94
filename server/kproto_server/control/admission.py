"""Who may use the control API: programs on this machine, and those that have the token; no page of another site.

A page in a browser can send requests to loopback, and read the responses if its own name resolves to loopback (DNS
rebinding). So the Host header has to name loopback, and a request that a browser sends for a page of another origin is
refused.
"""

from __future__ import annotations

import hmac
import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from kproto_server.control.message import JSON_TYPE
from kproto_server.control.problem import Problem

if TYPE_CHECKING:
    from kproto_server.control.message import HttpRequest


class Admission(NamedTuple):
    """The rules of one control port."""

    is_loopback: bool
    token: str | None
    """None: none is needed."""

    def check(self, request: HttpRequest) -> None:
        """Refuse a request that may not come in.

        Raises:
            Problem: it may not.
        """
        host = self.check_host(request)
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        if (origin is not None and origin != f"http://{host}") or site not in ("none", "same-origin"):
            raise Problem(HTTPStatus.FORBIDDEN, "requests of another site's pages are refused")
        if self.token is not None:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
                raise Problem(
                    HTTPStatus.UNAUTHORIZED,
                    "this control port needs the header Authorization: Bearer TOKEN",
                    (("WWW-Authenticate", "Bearer"),),
                )
        content_type = request.headers.get("content-type", JSON_TYPE).partition(";")[0].strip().lower()
        if request.body and content_type != JSON_TYPE:
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the body is JSON: send Content-Type: {JSON_TYPE} (curl: --json)"
            )

    def check_host(self, request: HttpRequest) -> str:
        """Refuse a request of which the Host header names another machine; return the header.

        Raises:
            Problem: it does.
        """
        host = request.headers.get("host", "")
        if self.is_loopback and not _is_this_machine(_host_name(host)):
            raise Problem(
                HTTPStatus.FORBIDDEN, f"the Host header names {host[:100]!r}, not localhost or a loopback address"
            )
        return host


def _is_this_machine(host: str) -> bool:
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_name(header: str) -> str:
    """Return the host of a Host header, without port and brackets; empty if the header is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        return "" if parts.path or parts.query or parts.fragment or parts.username else parts.hostname or ""
    except ValueError:
        return ""
