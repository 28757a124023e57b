"""A file system of its own that a test can let fail, as Linux takes a disk away that errs."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MEGABYTES = 24


@dataclass(frozen=True, slots=True)
class FailingDisk:
    """Where it is mounted, and the file that has its content."""

    folder: Path
    image: Path

    def fail(self) -> None:
        """Refuse each write from now on, also to files that are open."""
        found = ["findmnt", "-no", "SOURCE", str(self.folder)]
        device = subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()
        Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error").write_text("a test")

    def mend(self) -> None:
        """Check the file system and mount it again; no file on it may be open."""
        subprocess.run(["umount", str(self.folder)], check=True)
        checked = subprocess.run(
            ["fsck.ext4", "-fy", str(self.image)], check=False, capture_output=True
        )
        assert checked.returncode in (0, 1), checked.stdout
        _mount(self)


@contextmanager
def mounted(folder: Path) -> Iterator[FailingDisk]:
    """A small disk at this folder; only root may mount one."""
    folder.mkdir(mode=0o700, parents=True)
    disk = FailingDisk(folder, folder.with_suffix(".img"))
    with disk.image.open("wb") as file:
        file.truncate(MEGABYTES << 20)
    subprocess.run(["mkfs.ext4", "-q", str(disk.image)], check=True)
    _mount(disk)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _mount(disk: FailingDisk) -> None:
    options = "loop,errors=remount-ro"
    subprocess.run(["mount", "-o", options, str(disk.image), str(disk.folder)], check=True)
