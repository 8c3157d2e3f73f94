"""The files of the page at the control port. They have nothing of the broker: the page asks for it, with the token."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING

from kproto_server.control.message import HttpResponse

if TYPE_CHECKING:
    from kproto_server.control.message import HttpRequest

FOLDER = "page"
CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
NAMES = (
    "client.js", "dom.js", "faults.js", "groups.js", "html_page.css", "main.js", "nodes.js", "open_item.js", "page.css",
    "requests.js", "timeline.js", "topics.js",
)  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (("Content-Security-Policy", POLICY), ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"))


def page_file(request: HttpRequest) -> HttpResponse | None:
    """Return the page, or a file that it loads; None: the request is another one."""
    if request.method not in ("GET", "HEAD"):
        return None
    match request.path:
        case ("",):
            return _file("index.html")
        case (folder, name) if folder == FOLDER and name in NAMES:
            return _file(name)
    return None


@cache
def _file(name: str) -> HttpResponse:
    folder = files("kproto.html_page") if name == "html_page.css" else files("kproto_server.control").joinpath(FOLDER)
    content_type = CONTENT_TYPES[name.rpartition(".")[2]]
    return HttpResponse(HTTPStatus.OK, folder.joinpath(name).read_bytes(), content_type, HEADERS)
