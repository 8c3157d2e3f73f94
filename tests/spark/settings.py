"""The settings of the Spark sessions of tests, which all read little."""

from __future__ import annotations

from kproto.spark.session import FOR_SMALL_INPUT, JAVA_OPTIONS
from tests.oracle.processes import FAST_START

LOCAL = FOR_SMALL_INPUT | {
    JAVA_OPTIONS: f"{FAST_START} -XX:ReservedCodeCacheSize=200m -Xms900m -Xmn400m",  # else both are swept all the time
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # Java would be compiled for each expression, and run once
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
}
