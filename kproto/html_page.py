"""Self-contained HTML pages for screen and print: the skeleton and the common style of kproto's reports."""

from __future__ import annotations

from html import escape
from importlib.resources import files


def html_page(title: str, style: str, body: str) -> str:
    """Return a page; ``body`` is HTML, ``style`` is CSS after `html_page.css`."""
    common = files(__package__).joinpath("html_page.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{common}{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )
