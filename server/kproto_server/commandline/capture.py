"""`kproto capture`: the connections of Kafka in captured traffic, in a capture of their own.

Exit codes: 0; 2 for a file that cannot be read or written, or has no such connection, with one line on standard error.
The output gets its name when it is complete.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kproto.output_file import completed
from kproto_server.commandline.arguments import last
from kproto_server.commandline.commands import CAPTURE
from kproto_server.commandline.output import write
from kproto_server.commandline.replay import read_capture
from kproto_server.commandline.source_files import STANDARD_INPUT
from kproto_server.replay.extracting import CannotWrite, Extraction
from kproto_server.report.phrases import plain, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT_IDS_SHOWN = 5


def capture(words: Sequence[str]) -> int:
    """Run ``kproto capture`` with these arguments; return the exit code.

    Raises:
        CommandLineError: an argument is wrong, a capture cannot be read, or the output cannot be written.
    """
    given, paths = CAPTURE.parse_files(words)
    output = last(given, "--output")
    if not paths or output is None:
        raise CAPTURE.error("give captures and a file for the connections of Kafka in them: FILE --output FILE")
    if output == STANDARD_INPUT:
        raise CAPTURE.error("--output can't be '-': give a file")
    try:
        with completed(output) as written:
            found = Extraction(written, given.get("--client-id", []))
            for path in paths:
                read_capture(CAPTURE, path, found.connections.read)
            found.connections.end()
            found.close()
            if not found.connection_count:
                raise CAPTURE.error(_nothing(found, paths))
    except CannotWrite as error:
        raise CAPTURE.error(f"--output: can't write {output!r}: {error}") from None
    except OSError as error:  # of the rename
        raise CAPTURE.error(f"--output: can't write {output!r}: {error.strerror}") from None
    write(sys.stdout, _summary(found, output))
    return 0


def _nothing(found: Extraction, paths: Sequence[str]) -> str:
    """Return the reason why nothing is copied."""
    if found.other_client_ids:
        shown = sorted(map(plain, found.other_client_ids))
        more = ", ..." if len(shown) > CLIENT_IDS_SHOWN else ""
        return f"no connection of this client id: there are {', '.join(shown[:CLIENT_IDS_SHOWN])}{more}"
    if found.connections.tls_count:
        return f"no connection of Kafka without TLS in {', '.join(map(repr, paths))}"
    return f"no connection of Kafka in {', '.join(map(repr, paths))}"


def _summary(found: Extraction, output: str) -> str:
    connections = found.connections
    copied = (plural(found.request_count, "request"), plural(found.response_count, "response"))
    lines = [f"kproto: {plural(found.connection_count, 'connection')} with {' and '.join(copied)} in {output}"]
    if others := connections.connection_count - found.connection_count:
        lines.append(f"  {plural(others, 'connection')} of other clients left out")
    if connections.tls_count:
        lines.append(f"  {plural(connections.tls_count, 'connection')} with TLS, which cannot be read, left out")
    if missing := connections.lost_bytes + connections.unread_bytes:
        lines.append(f"  {plural(missing, 'byte')} of Kafka's connections lost, or behind lost ones")
    return "".join(f"{line}\n" for line in lines)
