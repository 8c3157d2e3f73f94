"""Render a report in the format of a file's suffix."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.report.model import Report

SUFFIXES = (".json", ".md", ".html")


def render(report: Report, path: str) -> str:
    """Return the text of a report file, in the format of the suffix of its name.

    Raises:
        ValueError: the suffix is not one of `SUFFIXES`.
    """
    suffix = PurePath(path).suffix
    match suffix:
        case ".json":
            from kproto_server.report import json_file

            return json_file.render(report)
        case ".md":
            from kproto_server.report import markdown

            return markdown.render(report)
        case ".html":
            from kproto_server.report import html_page

            return html_page.render(report)
    raise ValueError(f"no report format has the suffix {suffix!r}")
