"""The settings of the Spark sessions of tests, which all read little."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kproto.spark.session import FOR_SMALL_INPUT, JAVA_OPTIONS
from tests.oracle.processes import FAST_START
from tests.spark import class_archive

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LOCAL = FOR_SMALL_INPUT | {
    JAVA_OPTIONS: f"{FAST_START} -XX:ReservedCodeCacheSize=200m -Xms900m -Xmn400m",  # else both are swept all the time
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # Java would be compiled for each expression, and run once
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}


def use_in_commands(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have commands in processes of their own compile as little: their own settings are those for large inputs.

    ``folder`` gets Spark's file of settings. What a command sets itself, such as the garbage collector, stays.
    """
    settings = {name: value for name, value in LOCAL.items() if name.startswith("spark.sql.")}
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    options = [option for option in FAST_START.split() if not option.endswith("GC")]
    monkeypatch.setenv(class_archive.OPTIONS, " ".join([os.environ.get(class_archive.OPTIONS, ""), *options]))
