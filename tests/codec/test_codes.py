"""The error table against the one that Kafka's own program printed (`fixtures/kafka-error-codes.json`)."""

import pytest

from kproto.codes import ErrorCode
from tests.fixture_files import ErrorDefinition, error_codes


def test_there_is_a_member_for_each_of_kafkas_errors_and_no_other() -> None:
    assert {member.name: member.value for member in ErrorCode} == {
        name: facts.code for name, facts in error_codes().items()
    }


@pytest.mark.parametrize("facts", error_codes().values(), ids=lambda facts: facts.name)
def test_a_code_carries_kafkas_retriability_and_text(facts: ErrorDefinition) -> None:
    code = ErrorCode(facts.code)
    assert (code.name, code.retriable, code.message) == (facts.name, facts.retriable, facts.message)


def test_a_code_is_its_number() -> None:
    assert {16: "found"}[ErrorCode.NOT_COORDINATOR] == "found"
    assert int(ErrorCode.UNKNOWN_SERVER_ERROR) == -1
    assert f"{ErrorCode.ILLEGAL_GENERATION:d}" == "22"


def test_an_unknown_number_is_refused() -> None:
    with pytest.raises(ValueError, match="4711"):
        ErrorCode(4711)
