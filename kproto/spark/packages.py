"""The jars that Spark lacks for tables and running clusters: from Maven Central, or given as files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SETTINGS = Path(__file__).with_name("ivysettings.xml")
LISTS = ("spark.jars.packages", "spark.jars.excludes", "spark.sql.extensions")
"""The settings that several packages add to."""


@dataclass(frozen=True)
class Package:
    """A package of jars: its Maven coordinates, and what a session that has it sets."""

    coordinates: str
    excluded: Sequence[str] = ()
    """Jars that it names as dependencies, but that are part of Spark, or never used here."""
    config: Mapping[str, str] = field(default_factory=dict)


DELTA = Package(
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    ("io.unitycatalog:unitycatalog-client", "io.unitycatalog:unitycatalog-hadoop"),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)
ICEBERG = Package("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0")
CONNECTOR = Package(
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    ("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api"),
)


def config_of(packages: Iterable[Package], jars: Sequence[str] = ()) -> dict[str, str]:
    """Return the settings of a session that has some packages.

    Args:
        jars: paths or URIs of all jars of the packages; nothing is downloaded then. None: Maven Central has them.
    """
    config: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for package in packages:
        for name, value in package.config.items():
            if name in LISTS:
                lists.setdefault(name, []).append(value)
            else:
                config[name] = value
        if not jars:
            lists.setdefault("spark.jars.packages", []).append(package.coordinates)
            lists.setdefault("spark.jars.excludes", []).extend(package.excluded)
    if "spark.jars.packages" in lists:
        config["spark.jars.ivySettings"] = str(SETTINGS)
    if jars:
        config["spark.jars"] = ",".join(jars)
    return config | {name: ",".join(values) for name, values in lists.items() if values}
