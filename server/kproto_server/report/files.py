"""Write a report to a file, in the format of the file's suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.report.model import Report

SUFFIXES = (".json", ".md", ".html")


def write(report: Report, path: str) -> None:
    """Write the whole report; replace an existing file.

    Raises:
        OSError: the file cannot be written.
        ValueError: the suffix is not one of `SUFFIXES`.
    """
    Path(path).write_text(render(report, Path(path).suffix), encoding="utf-8")


def render(report: Report, suffix: str) -> str:
    """Return the text of a report file.

    Raises:
        ValueError: the suffix is not one of `SUFFIXES`.
    """
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
