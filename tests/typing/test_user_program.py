"""Type checkers accept a correct program that uses kproto, report each mistake and know the types of public symbols.

Method. mypy and pyright, both strict, check two programs in a directory of their own, in one run each. One program has
one mistake on each line; a checker must report an error on each of these lines and on no other. ``pyright
--verifytypes`` lists all public symbols of a package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.typing.checkers import Finding, mypy, pyright, pyright_verify_types

WITH_MISTAKES = "mistakes.py"
USER_PROGRAM = Path(__file__).with_name("user_program.py")
CHECKERS = {"mypy": mypy, "pyright": pyright}

MISTAKES = {
    "a field that does not exist": 'print(request.groop_id)',
    "a field that does not exist, when a value is made": 'OffsetCommitResponse(topics=(), topic=())',
    "a required field left out": 'OffsetCommitRequest(group_id="g")',
    "a required field of a nested struct left out": 'OffsetCommitRequestTopic(name="t")',
    "a value of another type": 'OffsetCommitRequest(group_id=7, topics=())',
    "null in a field that is not nullable": 'OffsetCommitRequest(group_id=None, topics=())',
    "a list in place of a tuple": 'OffsetCommitRequest(group_id="g", topics=[])',
    "the wrong struct in an array": 'OffsetCommitRequest(group_id="g", topics=(partition,))',
    "fields by position": 'OffsetCommitRequest("g", ())',
    "a field assigned": 'request.group_id = "other"',
    "null used as text": 'len(partition.committed_metadata)',
    "a struct decoded as another": 'found: OffsetCommitResponse = OffsetCommitRequest.decode(b"", 3)',
    "text in place of bytes": 'OffsetCommitRequest.decode("", 3)',
    "text in place of a version": 'request.encode("3")',
    "an option of Broker that does not exist": 'Broker(broker=3)',
    "an option of Broker of another type": 'Broker(brokers="3")',
    "a unit of time that the clock does not have": 'broker.clock.advance(weeks=1)',
    "a blocking with on an object that is no context manager": 'with broker.clock: pass',
}  # fmt: skip
PREAMBLE = """\
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kproto_server import Broker

partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=42, committed_metadata=None)
topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
request = OffsetCommitRequest(group_id="g", topics=(topic,))
broker = Broker()
"""

MADE_OF_CONSTRUCT = ("kproto.primitives.", "kproto.interpret.", "kproto.generate.", "kproto.records.record_construct.")
"""Modules that subclass construct, which has no types, or handle such classes."""
MACHINERY = (*MADE_OF_CONSTRUCT, "kproto.runtime.")
"""These modules and the ones that generated code calls: users do not call them."""
AN_ANNOTATION_WOULD_DECLARE_A_FIELD = {
    "kproto.records.consumer_group_records.ConsumerGroupMemberMetadataValue",
    "kproto.records.consumer_group_records.ConsumerGroupMemberMetadataValue.unknown_tagged_fields",
}
"""The default differs from that of other structs; pyright asks for an annotation, although `Struct` has one."""


def first_line_of_mistakes() -> int:
    return PREAMBLE.count("\n") + 1


@pytest.fixture(scope="module", params=CHECKERS)
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """Return the errors that one checker reports for the correct program and for all mistakes."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / USER_PROGRAM.name).write_text(USER_PROGRAM.read_text())
    (folder / WITH_MISTAKES).write_text(PREAMBLE + "\n".join(MISTAKES.values()) + "\n")
    return CHECKERS[request.param](folder)


def lines_of_mistakes(findings: list[Finding]) -> set[int]:
    return {finding.line for finding in findings if finding.program == WITH_MISTAKES}


def test_a_correct_program_has_no_errors(findings: list[Finding]) -> None:
    assert [finding for finding in findings if finding.program != WITH_MISTAKES] == []


def test_the_correct_program_runs() -> None:
    subprocess.run([sys.executable, USER_PROGRAM], check=True)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_an_error(findings: list[Finding], mistake: str) -> None:
    line = first_line_of_mistakes() + list(MISTAKES).index(mistake)
    assert line in lines_of_mistakes(findings)


def test_lines_without_a_mistake_have_no_errors(findings: list[Finding]) -> None:
    assert [line for line in lines_of_mistakes(findings) if line < first_line_of_mistakes()] == []


def test_every_public_symbol_of_the_library_has_a_known_type(tmp_path: Path) -> None:
    symbols = pyright_verify_types("kproto", tmp_path)
    assert len(symbols) > 5000
    unknown = {symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]}
    assert {name for name in unknown if not name.startswith(MACHINERY)} == AN_ANNOTATION_WOULD_DECLARE_A_FIELD


def test_every_public_symbol_of_the_broker_has_a_known_type(tmp_path: Path) -> None:
    symbols = pyright_verify_types("kproto_server", tmp_path)
    assert len(symbols) > 2500
    unknown = [symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]]
    assert [name for name in unknown if not name.endswith(".logger")] == []
