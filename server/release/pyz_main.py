"""The command ``kproto``, as the zip application runs it.

Python can't load compiled modules from a zip file, so the first run unpacks it into the user's cache directory
(``$XDG_CACHE_HOME/kproto``, by default ``~/.cache/kproto``), and each further run of the same build uses that. If the
directory can't be written, each run unpacks into a temporary directory and deletes it at its end.
"""

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile

BUILD: str = "{BUILD}"
PYTHON: object = "{PYTHON}"
PLATFORM: str = "{PLATFORM}"
SHOWN: str = "{SHOWN}"
PREFIX = "site/"


def unpack(folder: str) -> None:
    """Unpack all packages into a folder."""
    with zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))) as archive:
        for name in archive.namelist():
            if name.startswith(PREFIX):
                archive.extract(name, folder)


def site() -> str:
    """Return the folder with all packages."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    wanted = os.path.join(cache, "kproto", BUILD)
    if not os.path.isdir(wanted):
        try:
            os.makedirs(os.path.dirname(wanted), mode=0o700, exist_ok=True)
            temporary = tempfile.mkdtemp(prefix=f"{BUILD}.", dir=os.path.dirname(wanted))
        except OSError:
            temporary = tempfile.mkdtemp(prefix="kproto.")
            atexit.register(shutil.rmtree, temporary, ignore_errors=True)
            unpack(temporary)
            return os.path.join(temporary, PREFIX)
        unpack(temporary)
        try:
            os.rename(temporary, wanted)  # all of it, or nothing
        except OSError:  # another run was faster
            shutil.rmtree(temporary, ignore_errors=True)
    return os.path.join(wanted, PREFIX)


def main() -> int:
    """Run the command line."""
    if (sys.version_info[:2], sysconfig.get_platform()) != (PYTHON, PLATFORM):
        here = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {sysconfig.get_platform()}"
        sys.exit(f"kproto: this file is for {SHOWN}, not for {here}: build it with that one")
    sys.path.insert(0, site())
    from kproto_server.commandline.cli import main as kproto

    return kproto()


if __name__ == "__main__":
    sys.exit(main())
