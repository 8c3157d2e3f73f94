"""Every file, heading, module and test that a page or a comment names exists.

Method: regular expressions find the relative links of pages, paths that begin with a folder of the repository, modules
in backquotes with what follows them, and names of tests and source files in backquotes. A failure names ``path:line``.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.docs.texts import ROOT, Text, texts

LINK = re.compile(r"`[^`\n]+`|\[[^\]\n]*\]\(([^)\s]+)\)")
"""A link, or a piece of code, which has no links."""
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
CODE_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
PATH = re.compile(r"(?<![\w./-])(?:fixtures|tests|bench|server|kproto)/[\w./-]*\w")
MODULE = re.compile(r"(?<=`)(kproto|kproto_server|tests|bench)((?:\.\w+)+)")
TEST = re.compile(r"`(test_\w+)`")
SOURCE = re.compile(r"`([\w./]+\.py)`")

PACKAGES = {"kproto": ROOT / "kproto", "kproto_server": ROOT / "server" / "kproto_server"}
PACKAGES |= {name: ROOT / name for name in ("tests", "bench")}

PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
"""``fixtures/kafka-definitions/RELEASE`` stands for several paths."""
MADE_BY_BUILDS = re.compile(r"kproto[/.]_generated\b|kproto\.pyz\b")
FILES_OF_BROKERS = re.compile(r"kproto\.(journal|clean|recovery|lock)\b")
"""Files in a data directory have names of this form."""


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(slug(heading) for heading in HEADING.findall(CODE_BLOCK.sub("", path.read_text(encoding="utf-8"))))


def broken_link(text: Text, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return False
    name, _, anchor = target.partition("#")
    path = (ROOT / text.path).parent / name if name else ROOT / text.path
    return not path.exists() or (bool(anchor) and anchor not in anchors(path))


def is_defined(package: str, names: list[str]) -> bool:
    """Whether the names lead to a module of a package; the first name behind a module must occur in its source."""
    path = PACKAGES[package]
    for name in names:
        if (path / name).is_dir():
            path /= name
        elif (path / f"{name}.py").is_file():
            path = path / f"{name}.py"
        else:
            source = path if path.is_file() else path / "__init__.py"
            return re.search(rf"\b{name}\b", source.read_text(encoding="utf-8")) is not None
    return True


@cache
def names_of_tests() -> frozenset[str]:
    """Return the names of all tests and of their modules."""
    sources = [text for text in texts() if text.path.startswith("tests/")]
    functions = {name for text in sources for name in re.findall(r"def (test_\w+)", text.content)}
    return frozenset(functions | {Path(text.path).stem for text in sources})


@cache
def source_files() -> frozenset[str]:
    return frozenset(text.path for text in texts() if text.path.endswith(".py"))


def test_each_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    broken = [
        f"{where}: {match[1]}"
        for text in texts()
        if text.is_page
        for where, match in text.find(LINK)
        if match[1] is not None and broken_link(text, match[1])
    ]
    assert not broken, "\n".join(broken)


def test_each_source_file_that_a_page_names_exists() -> None:
    """A page may name the end of a path: ``membership/join.py``."""
    missing = [
        f"{where}: {match[1]}"
        for text in texts()
        if text.is_page
        for where, match in text.find(SOURCE)
        if not any(f"/{path}".endswith(f"/{match[1]}") for path in source_files())
        and match[1] != "messages/kNN_name.py"
    ]
    assert not missing, "\n".join(missing)


def test_each_named_path_exists() -> None:
    missing = [
        f"{where}: {match[0]}"
        for text in texts()
        if text.is_page or text.path.endswith(".py")
        for where, match in text.find(PATH)
        if not (ROOT / match[0]).exists() and not MADE_BY_BUILDS.match(match[0]) and not PLACEHOLDER.search(match[0])
    ]
    assert not missing, "\n".join(missing)


def test_each_named_module_and_attribute_exists() -> None:
    missing = [
        f"{where}: {match[0]}"
        for text in texts()
        for where, match in text.find(MODULE)
        if not FILES_OF_BROKERS.match(match[0])
        and not MADE_BY_BUILDS.match(match[0])
        and not is_defined(match[1], match[2][1:].split("."))
    ]
    assert not missing, "\n".join(missing)


def test_each_named_test_exists() -> None:
    missing = [
        f"{where}: {match[1]}"
        for text in texts()
        for where, match in text.find(TEST)
        if match[1] not in names_of_tests()
    ]
    assert not missing, "\n".join(missing)
