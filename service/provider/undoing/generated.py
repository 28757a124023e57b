"""Files that programs write (docs/design/undone-work.md 4)."""

from collections.abc import Sequence

from service import globs
from service.provider.undoing.changes import FileChange


def written(files: Sequence[FileChange], generated: Sequence[str]) -> tuple[FileChange, ...]:
    """Return the files of a change that people write."""
    return tuple(file for file in files if not _is_generated(file.path, generated))


def _is_generated(path: bytes, generated: Sequence[str]) -> bool:
    return globs.any_matches(generated, f"/{path.decode('utf-8', 'replace')}")
