"""A build runs once per state of its sources and parameters; a failed build leaves no folder."""

from pathlib import Path

import pytest

from tests.oracle.builds import cached_build


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source"
    file.write_text("one")
    return file


def build(source: Path, *parameters: str, built: list[Path]) -> Path:
    def copy(target: Path) -> None:
        built.append(target)
        target.mkdir()
        (target / "built").write_text(source.read_text())

    return cached_build(Path("kind") / "name", parameters, [source], copy)


def test_the_same_sources_and_parameters_are_built_once(source: Path) -> None:
    built: list[Path] = []
    assert build(source, "8", built=built) == build(source, "8", built=built)
    assert len(built) == 1


def test_another_source_or_parameter_is_built_again(source: Path) -> None:
    built: list[Path] = []
    first = build(source, "8", built=built)
    second = build(source, "17", built=built)
    source.write_text("two")
    third = build(source, "17", built=built)
    assert len({first, second, third}) == 3
    assert [(folder / "built").read_text() for folder in (first, second, third)] == ["one", "one", "two"]


def test_a_build_that_fails_leaves_nothing(source: Path, cache: Path) -> None:
    def fail(target: Path) -> None:
        target.mkdir()
        (target / "half").touch()
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cached_build(Path("kind") / "name", [], [source], fail)
    assert list((cache / "kproto-oracle/kind").iterdir()) == []


def test_two_simultaneous_builds_share_one_folder(source: Path) -> None:
    built: list[Path] = []

    def slow_build(target: Path) -> None:
        build(source, built=built)
        target.mkdir()

    folder = cached_build(Path("kind") / "name", [], [source], slow_build)
    assert folder == build(source, built=built)
    assert (folder / "built").read_text() == "one"
