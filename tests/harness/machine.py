"""What makes a test run cheap on the machine that it finds; nothing here changes what is proved."""

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
# A server's log of writes grows to 1 GiB, and four workers each fill a few databases at a time.
ROOM_BYTES_MIN = 4 * 1024**3
PORTS = range(20_000, 30_000)
"""Below those that Linux (`ip_local_port_range`) and macOS choose for port 0."""
WORKERS_MAX = 20
KEEPS_NOTHING_COMPILED = "PYTHONDONTWRITEBYTECODE"


def keep_what_is_compiled(environment: MutableMapping[str, str]) -> None:
    """Let this process and those it starts keep compiled modules, whatever the shell says.

    A run imports the product in hundreds of processes; compiling is half of a start.
    """
    sys.dont_write_bytecode = False
    environment.pop(KEEPS_NOTHING_COMPILED, None)


def work_in_memory(
    environment: MutableMapping[str, str], memory: Path = MEMORY, room_bytes: int = ROOM_BYTES_MIN
) -> None:
    """Put temporary files into memory where that has room, unless a folder is named already.

    A process that is killed leaves the same behind there as on a disk: only the loss of power,
    which no test brings about, tells them apart.
    """
    if "TMPDIR" not in environment and is_fit(memory, room_bytes):
        environment["TMPDIR"] = str(memory)
        # What was asked for before is remembered.
        tempfile.tempdir = None


def is_fit(folder: Path, room_bytes: int) -> bool:
    """Whether files can be written there, programs run from there, and so much is free."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= room_bytes


def free_port() -> int:
    """A port of this machine on which nothing listens now.

    It is none of those that the system chooses for others, or that this process or another worker
    of the run was given, so it stays free until it is used.
    """
    worker = int(os.environ.get("TESTS_WORKER", "0"))
    while True:
        port = secrets.choice(PORTS[worker % WORKERS_MAX :: WORKERS_MAX])
        with socket.socket() as taken, suppress(OSError):
            if port not in _given:
                taken.bind(("127.0.0.1", port))
                _given.add(port)
                return port


_given: set[int] = set()
