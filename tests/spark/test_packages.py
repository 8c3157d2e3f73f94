"""The jars that Spark lacks are found, also where the local Maven repository has a POM without its jar."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark
import pytest

from kproto.spark.arguments import parse
from kproto.spark.packages import CONNECTOR, DELTA, ICEBERG, SETTINGS, config_of
from kproto.spark.start import packages_of
from tests.requirements import need_java

GROUP, NAME, VERSION = "com.google.code.findbugs", "jsr305", "3.0.0"
"""A dependency of the connector, of 33 kB."""


@pytest.mark.slow  # asks Maven Central
def test_a_pom_without_its_jar_in_the_local_repository_does_not_matter(tmp_path: Path) -> None:
    java = need_java()
    local = tmp_path / ".m2" / "repository" / GROUP.replace(".", "/") / NAME / VERSION
    local.mkdir(parents=True)
    (local / f"{NAME}-{VERSION}.pom").write_text(
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{GROUP}</groupId><artifactId>{NAME}</artifactId>"
        f"<version>{VERSION}</version></project>"
    )
    (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")  # what resolves spark.jars.packages
    command = [java, f"-Duser.home={tmp_path}", "-jar", ivy, "-settings", SETTINGS, "-cache", tmp_path / "cache"]
    command += ["-dependency", GROUP, NAME, VERSION, "-retrieve", f"{tmp_path}/[artifact].[ext]", "-confs", "default"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / f"{NAME}.jar").stat().st_size > 30_000


def test_several_packages_share_the_settings() -> None:
    config = config_of((DELTA, CONNECTOR))
    assert config["spark.jars.packages"] == f"{DELTA.coordinates},{CONNECTOR.coordinates}"
    assert config["spark.jars.excludes"].count(",") == 3
    assert config["spark.jars.ivySettings"] == str(SETTINGS)
    assert config_of(()) == {}


def test_with_jars_nothing_is_downloaded() -> None:
    config = config_of((DELTA, ICEBERG), ("a.jar", "s3a://b.jar"))
    assert config["spark.jars"] == "a.jar,s3a://b.jar"
    assert not {"spark.jars.packages", "spark.jars.ivySettings"} & {*config}
    assert config["spark.sql.extensions"] == DELTA.config["spark.sql.extensions"]


@pytest.mark.parametrize(
    ("words", "packages"),
    [
        (["tables", "log", "-o", "out"], []),
        (["tables", "log", "-o", "out", "--format", "iceberg"], ["iceberg"]),
        (["tables", "--from-kafka", "a:1", "-o", "out", "--format", "delta"], ["delta", "kafka"]),
        (["latest", "nowhere://a/tables"], ["delta", "iceberg"]),
        (["latest", "delta"], ["delta"]),
        (["latest", "iceberg"], ["iceberg"]),
    ],
)
def test_a_command_has_the_packages_of_its_input_and_output(
    words: list[str], packages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("delta/commits/_delta_log", "iceberg/commits/metadata"):
        Path(folder).mkdir(parents=True)
    assert [*packages_of(parse(words))] == packages
