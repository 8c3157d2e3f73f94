"""A test whose program is missing is skipped; with KPROTO_CI=1, which promises that all are installed, it fails."""

import sys
from pathlib import Path

import pytest

from tests.requirements import need, need_java


def test_need_returns_the_path_of_an_installed_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))

    assert Path(need("no-such-program", Path(sys.executable).name, install="x")).samefile(sys.executable)


def test_java_home_comes_before_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert need_java() == str(java)


def test_a_missing_program_skips_the_test_and_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KPROTO_CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="needs no-such-program: install the thing"):
        need("no-such-program", install="the thing")


def test_a_missing_program_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROTO_CI", "1")

    with pytest.raises(pytest.fail.Exception, match="KPROTO_CI=1, but this test needs no-such-program"):
        need("no-such-program", install="the thing")
