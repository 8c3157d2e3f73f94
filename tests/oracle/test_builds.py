"""What is built is made once for each state of its sources, and what was not made to the end is not there."""

from pathlib import Path

import pytest

from tests.oracle.builds import kept


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source"
    file.write_text("one")
    return file


def build(source: Path, *facts: str, made: list[Path]) -> Path:
    def make(target: Path) -> None:
        made.append(target)
        target.mkdir()
        (target / "built").write_text(source.read_text())

    return kept(Path("kind") / "name", facts, [source], make)


def test_the_same_sources_and_facts_are_built_once(source: Path) -> None:
    made: list[Path] = []
    assert build(source, "8", made=made) == build(source, "8", made=made)
    assert len(made) == 1


def test_another_source_or_fact_is_built_anew(source: Path) -> None:
    made: list[Path] = []
    first = build(source, "8", made=made)
    second = build(source, "17", made=made)
    source.write_text("two")
    third = build(source, "17", made=made)
    assert len({first, second, third}) == 3
    assert [(folder / "built").read_text() for folder in (first, second, third)] == ["one", "one", "two"]


def test_a_build_that_fails_leaves_nothing(source: Path, cache: Path) -> None:
    def fail(target: Path) -> None:
        target.mkdir()
        (target / "half").touch()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        kept(Path("kind") / "name", [], [source], fail)
    assert list((cache / "kproto-oracle/kind").iterdir()) == []


def test_of_two_who_make_the_same_at_once_both_have_it(source: Path) -> None:
    made: list[Path] = []

    def slower(target: Path) -> None:
        build(source, made=made)
        target.mkdir()

    folder = kept(Path("kind") / "name", [], [source], slower)
    assert folder == build(source, made=made)
    assert (folder / "built").read_text() == "one"
