"""The error codes against the table that Kafka's own program printed (`fixtures/kafka-error-codes.json`)."""

import pytest

from kproto.codes import ErrorCode
from tests.fixture_files import ErrorDefinition, error_codes


def test_the_members_are_exactly_kafkas_errors() -> None:
    assert {member.name: member.value for member in ErrorCode} == {
        name: error.code for name, error in error_codes().items()
    }


@pytest.mark.parametrize("error", error_codes().values(), ids=lambda error: error.name)
def test_name_retriability_and_text_are_kafkas(error: ErrorDefinition) -> None:
    code = ErrorCode(error.code)
    assert (code.name, code.retriable, code.message) == (error.name, error.retriable, error.message)


def test_a_code_is_its_number() -> None:
    assert {16: "found"}[ErrorCode.NOT_COORDINATOR] == "found"
    assert int(ErrorCode.UNKNOWN_SERVER_ERROR) == -1
    assert f"{ErrorCode.ILLEGAL_GENERATION:d}" == "22"


def test_an_unknown_number_raises_value_error() -> None:
    with pytest.raises(ValueError, match="4711"):
        ErrorCode(4711)
