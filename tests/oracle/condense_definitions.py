"""Make `fixtures/kafka-definitions/RELEASE` from the jars of that release.

    python -m tests.oracle.condense_definitions JARS_FOLDER RELEASE

JARS_FOLDER is the `libs` of a Kafka distribution, or any folder with the jars of that release. The fixtures keep the
parts of a definition that determine bytes and values: names, types, versions, tags, defaults. They omit comments and
descriptions.
"""

import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fixture_files import FIXTURES

MESSAGE_KEYS = ("name", "apiKey", "type", "listeners", "validVersions", "flexibleVersions")
FIELD_KEYS = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "flexibleVersions", "ignorable")
COMMENT = re.compile(r"^\s*//.*$|\s//\s.*$", flags=re.MULTILINE)


def definitions_of(jars: Path) -> Iterator[dict[str, Any]]:
    """Yield Kafka's definitions in the jars of a folder, without comments."""
    for jar in sorted(jars.glob("kafka*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.startswith("common/message/") and name.endswith(".json"):
                    yield json.loads(COMMENT.sub("", archive.read(name).decode()))


def typed_default(kind: str, default: object) -> object:
    """Return the default as a typed value: the definitions write both -1 and "-1", true and "true"."""
    if default is None or default == "null":
        return None
    if kind == "bool":
        return default in (True, "true")
    if kind == "float64":
        return float(str(default))
    if re.fullmatch(r"u?int\d+", kind):
        return int(str(default), 0)
    return default


def field_line(field: dict[str, Any], depth: int) -> str:
    """Return a field on one line, followed by the fields of a structure."""
    kept = {key: field[key] for key in FIELD_KEYS if key in field}
    # A field that is tagged in all its versions may omit `versions`.
    kept.setdefault("versions", field.get("taggedVersions"))
    if "tag" in field:
        kept["tag"] = int(field["tag"])
    if "default" in field:
        kept["default"] = typed_default(field["type"], field["default"])
    line = json.dumps(kept)
    if "fields" in field:
        line = f'{line[:-1]}, "fields": {field_lines(field["fields"], depth + 1)}}}'
    return line


def field_lines(fields: list[dict[str, Any]], depth: int) -> str:
    indent = "\n" + " " * depth
    return "[" + ",".join(indent + field_line(field, depth) for field in fields) + "]"


def condensed(definition: dict[str, Any]) -> str:
    """Return the text of one fixture file."""
    kept = {key: definition[key] for key in MESSAGE_KEYS if key in definition}
    if definition.get("latestVersionUnstable"):
        kept["latestVersionUnstable"] = True
    text = f'{json.dumps(kept)[:-1]},\n "fields": {field_lines(definition.get("fields", []), 2)}'
    structures = definition.get("commonStructs", [])
    if structures:
        lines = (
            f'\n  {{"name": {json.dumps(s["name"])}, "fields": {field_lines(s["fields"], 3)}}}' for s in structures
        )
        text += f',\n "commonStructs": [{",".join(lines)}]'
    return text + "}\n"


def main(jars: str, release: str) -> None:
    folder = FIXTURES / "kafka-definitions" / release
    folder.mkdir(parents=True, exist_ok=True)
    for definition in definitions_of(Path(jars)):
        (folder / f"{definition['name']}.json").write_text(condensed(definition))


if __name__ == "__main__":
    main(*sys.argv[1:])
