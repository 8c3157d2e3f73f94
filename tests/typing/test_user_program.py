"""What type checkers know of kproto: a correct program passes, and each mistake is an error of both.

Method. mypy and pyright, both strict, are run on programs in a directory of their own. Mistakes stand one a line in one
program; a checker must find an error in each of these lines and in no other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.typing.checkers import Finding, mypy, pyright, pyright_verify_types

USER_PROGRAM = Path(__file__).with_name("user_program.py")
CHECKERS = {"mypy": mypy, "pyright": pyright}

MISTAKES = {
    "a field that does not exist": 'print(request.groop_id)',
    "a field that does not exist, when a value is made": 'OffsetCommitResponse(topics=(), topic=())',
    "a required field left out": 'OffsetCommitRequest(group_id="g")',
    "a required field of a nested struct left out": 'OffsetCommitRequestTopic(name="t")',
    "a value of another type": 'OffsetCommitRequest(group_id=7, topics=())',
    "null where the field can't be null": 'OffsetCommitRequest(group_id=None, topics=())',
    "a list where a tuple belongs": 'OffsetCommitRequest(group_id="g", topics=[])',
    "the wrong struct in an array": 'OffsetCommitRequest(group_id="g", topics=(partition,))',
    "fields by position": 'OffsetCommitRequest("g", ())',
    "a field assigned": 'request.group_id = "other"',
    "null taken for text": 'len(partition.committed_metadata)',
    "a struct read as another": 'found: OffsetCommitResponse = OffsetCommitRequest.decode(b"", 3)',
    "text where octets belong": 'OffsetCommitRequest.decode("", 3)',
    "a version that is text": 'request.encode("3")',
    "an option of Broker that does not exist": 'Broker(broker=3)',
    "an option of Broker of another type": 'Broker(brokers="3")',
    "a unit of time that the clock does not know": 'broker.clock.advance(weeks=1)',
    "a blocking with on what is no context manager": 'with broker.clock: pass',
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
"""Those and what generated code calls: no user's business."""
AN_ANNOTATION_WOULD_DECLARE_A_FIELD = {
    "kproto.records.consumer_group_records.ConsumerGroupMemberMetadataValue",
    "kproto.records.consumer_group_records.ConsumerGroupMemberMetadataValue.unknown_tagged_fields",
}
"""It has another default than other structs; pyright asks for a type there, and knows it from `Struct`."""


def first_line_of_mistakes() -> int:
    return PREAMBLE.count("\n") + 1


@pytest.fixture(scope="module", params=CHECKERS)
def findings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What one checker says of all mistakes."""
    program = tmp_path_factory.mktemp("mistakes") / "mistakes.py"
    program.write_text(PREAMBLE + "\n".join(MISTAKES.values()) + "\n")
    return CHECKERS[request.param](program)


@pytest.mark.parametrize("check", CHECKERS.values(), ids=CHECKERS)
def test_a_correct_program_is_correct(check: Callable[[Path], list[Finding]], tmp_path: Path) -> None:
    program = tmp_path / USER_PROGRAM.name
    program.write_text(USER_PROGRAM.read_text())
    assert check(program) == []


def test_the_correct_program_runs() -> None:
    subprocess.run([sys.executable, USER_PROGRAM], check=True)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_an_error(findings: list[Finding], mistake: str) -> None:
    line = first_line_of_mistakes() + list(MISTAKES).index(mistake)
    assert line in {finding.line for finding in findings}


def test_nothing_but_mistakes_is_an_error(findings: list[Finding]) -> None:
    assert [finding for finding in findings if finding.line < first_line_of_mistakes()] == []


def test_every_public_symbol_has_a_known_type(tmp_path: Path) -> None:
    symbols = pyright_verify_types("kproto", tmp_path)
    assert len(symbols) > 5000
    unknown = {symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]}
    assert {name for name in unknown if not name.startswith(MACHINERY)} == AN_ANNOTATION_WOULD_DECLARE_A_FIELD
