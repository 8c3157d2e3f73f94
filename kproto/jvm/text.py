"""Text from bytes, as Java decodes it: brokers and clients in Java accept bytes that are not UTF-8.

Java decodes each malformed sequence as one replacement character (U+FFFD). Python's error handler "replace" does the
same, except that Java takes an encoded surrogate (ED A0 80 to ED BF BF, complete or not) for one sequence.
"""

from __future__ import annotations

import re

BLANKS = "".join(map(chr, range(0x21)))
"""What Java's ``String.trim`` removes: all characters up to the space, and no other."""
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_MALFORMED = b"\xff"
"""One malformed sequence, whatever is beside it."""


def text_of(data: bytes) -> str:
    """Return bytes as text, with replacement characters for what is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_MALFORMED, data).decode("utf-8", "replace")


def trimmed(text: str) -> str:
    """Return a text as Java's ``String.trim`` does."""
    return text.strip(BLANKS)
