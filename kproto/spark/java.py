"""The Java behind a session of Spark, by py4j, which has no types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_of(spark: SparkSession) -> Any:
    """Return the packages of Java."""
    java = spark.sparkContext._jvm
    assert java is not None, "a session has a Java"
    return java


def hadoop_configuration(spark: SparkSession) -> Any:
    """Return the settings of Hadoop's file systems."""
    context = spark.sparkContext._jsc
    assert context is not None, "a session has a context"
    return context.hadoopConfiguration()


def cause_of(error: Exception) -> Any:
    """Return the exception of Java that an error stands for; None: there is none."""
    return getattr(error, "java_exception", None)


def first_line(cause: Any) -> str:
    """Return the first line of the message of an exception of Java, or its class."""
    return str(cause.getMessage() or cause.toString()).partition("\n")[0]
