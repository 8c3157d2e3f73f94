"""A server of S3 as a process of its own: moto's, which keeps objects in memory and knows ranges and multipart uploads.

``python -m tests.stores.s3_server`` prints its port, and ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.requirements import need_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

BUCKET = "logs"


def environment(port: int) -> dict[str, str]:
    """Return fsspec's configuration for the server, as the environment of a process has it."""
    keys = {"KEY": "tester", "SECRET": "secret", "ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    return {f"FSSPEC_S3_{name}": value for name, value in keys.items()}


def configure(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Configure fsspec as the environment of a new process would."""
    from fsspec.config import conf, set_conf_env

    monkeypatch.setattr("fsspec.config.conf", conf)
    monkeypatch.delitem(conf, "s3", raising=False)
    monkeypatch.setitem(conf, "s3", {})
    set_conf_env(conf, variables)


@contextmanager
def s3_server() -> Iterator[int]:
    """Start the server, with an empty bucket; yield its port."""
    for package in ("s3fs", "moto", "flask_cors"):
        need_package(package)
    command = [sys.executable, "-m", "tests.stores.s3_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for"
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def bucket(port: int) -> Any:
    """Return fsspec's file system of the server."""
    import s3fs

    settings = {name.removeprefix("FSSPEC_S3_").lower(): value for name, value in environment(port).items()}
    return s3fs.S3FileSystem(**settings, use_listings_cache=False)


def upload(files: Any, directory: Path, uri: str) -> None:
    """Copy a directory to a URI."""
    files.put(f"{directory}/", f"{uri}/", recursive=True)


def _serve() -> None:
    import logging

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
