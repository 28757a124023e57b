"""A small file system of its own, which a test can fill and free again."""

import errno
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BLOCK = b"\0" * 65_536


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """Where it is mounted."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self) -> None:
        """Leave no byte free."""
        with suppress_full(), self._filler.open("ab", buffering=0) as file:
            while file.write(BLOCK) == len(BLOCK):
                pass
            while file.write(b"\0"):
                pass

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def suppress_full() -> Iterator[None]:
    """End a write to a full disk quietly."""
    try:
        yield
    except OSError as full:
        if full.errno != errno.ENOSPC:
            raise


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A memory file system of this size; only root may mount one."""
    folder.mkdir(mode=0o700, parents=True)
    options = f"size={megabytes}m,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
