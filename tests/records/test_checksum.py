"""CRC-32C against the vectors of RFC 3720; the function by table against the package."""

import builtins
import subprocess
import sys
from types import ModuleType
from typing import Any

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records.checksum import best_crc32c, crc32c, table_crc32c

VECTORS = {
    b"": 0,
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
}


@pytest.mark.parametrize(("data", "crc"), VECTORS.items())
def test_the_checksums_of_rfc_3720(data: bytes, crc: int) -> None:
    assert table_crc32c(data) == crc
    assert crc32c(data) == crc


@given(st.binary(max_size=300))
def test_the_table_and_the_package_agree(data: bytes) -> None:
    assert table_crc32c(data) == package.crc32c(data)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make imports of these packages fail."""
    real = builtins.__import__

    def importing(name: str, *rest: Any) -> ModuleType:
        if name in names:
            raise ModuleNotFoundError(name=name)
        return real(name, *rest)

    monkeypatch.setattr("importlib.import_module", importing)


def test_the_fastest_installed_function_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert best_crc32c() is package.crc32c
    without(monkeypatch, "crc32c", "google_crc32c")
    assert best_crc32c() is table_crc32c


def test_only_the_extension_module_of_the_package_is_imported() -> None:
    """The package reads its version from its metadata, which takes a tenth of the start of a broker."""
    source = (
        "import sys\n"
        "from kproto.records.checksum import crc32c\n"
        "assert 'crc32c' not in sys.modules and 'importlib.metadata' not in sys.modules\n"
        "assert type(crc32c) is type(len) and crc32c(b'123456789') == 0xE3069283\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)
