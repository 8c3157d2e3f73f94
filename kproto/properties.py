"""Java's .properties format, which Kafka's server.properties has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANK = " \t\f"
HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(UsageError):
    """Lines are not properties; the message has a line for each, which starts with the line's number."""


def read_properties(text: str) -> dict[str, str]:
    """Return the properties in a file's text; a name that occurs twice has its last value.

    A line is a name, then `=`, `:` or blanks, then a value. A line that starts with `#` or `!` is a comment. A
    backslash at the end of a line continues it on the next line, whose leading blanks are dropped. Backslash escapes
    are Java's.

    Raises:
        PropertiesError: a `\\u` escape does not have four hexadecimal digits; the text has a line for each.
    """
    properties, faults = {}, []
    for number, line in _logical_lines(text):
        name_end = _end_of_name(line)
        value = line[name_end:].lstrip(BLANK)
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip(BLANK)
        try:
            properties[_unescape(line[:name_end], number)] = _unescape(value, number)
        except PropertiesError as error:
            faults.append(str(error))
    if faults:
        raise PropertiesError("\n".join(faults))
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    lines = iter(enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1))
    for number, line in lines:
        whole = line.lstrip(BLANK)
        if not whole or whole[0] in "#!":
            continue
        while _is_continued(whole):
            _, following = next(lines, (0, ""))
            whole = whole[:-1] + following.lstrip(BLANK)
        if whole:
            yield number, whole


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _end_of_name(line: str) -> int:
    escaped = False
    for position, character in enumerate(line):
        if not escaped and character in "=:" + BLANK:
            return position
        escaped = character == "\\" and not escaped
    return len(line)


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    plain: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            plain.append(character)
            continue
        escape = next(characters, "")
        if escape == "u":
            digits = "".join(next(characters, "") for _ in range(4))
            if len(digits) < 4 or not set(digits) <= HEXADECIMAL:
                raise PropertiesError(f"line {number}: \\u{digits}: four hexadecimal digits belong there")
            plain.append(chr(int(digits, 16)))
        else:
            plain.append(ESCAPES.get(escape, escape))
    # Two escapes are one character beyond U+FFFF. One half of it alone has no encoding.
    return "".join(plain).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
