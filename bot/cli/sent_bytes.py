"""What is seen while reports are sent: a bar on a terminal, else one line a file."""

import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bot.cli import output
from bot.uploader.files import Report


class SentBytes:
    """Files, bytes, time gone and time left, on stderr."""

    def __init__(self, reports: Sequence[Report], *, is_shown: bool) -> None:
        console = Console(file=sys.stderr, highlight=False)
        self._has_bar = is_shown and console.is_terminal
        self._has_lines = is_shown and not console.is_terminal
        self._files = len(reports)
        self._files_done = 0
        self._bytes_done = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        total = sum(len(each.packed) for each in reports)
        self._task = self._progress.add_task(self._described(), total=total)

    def __enter__(self) -> "SentBytes":
        """Begin to show."""
        if self._has_bar:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self._has_bar:
            self._progress.stop()

    def of(self, batch: Sequence[Report], body_bytes: int) -> Callable[[int], None]:
        """What hears how much of a request has left; its files are nearly all of it."""
        packed = sum(len(each.packed) for each in batch)

        def sent(so_far: int) -> None:
            at = self._bytes_done + packed * so_far / body_bytes
            self._progress.update(self._task, completed=at)

        return sent

    def done(self, batch: Sequence[Report]) -> None:
        """The files of a request have arrived."""
        self._files_done += len(batch)
        self._bytes_done += sum(len(each.packed) for each in batch)
        self._progress.update(self._task, completed=self._bytes_done, description=self._described())
        for each in batch if self._has_lines else ():
            output.told(f"headgate: sent {each.name}, {each.plain_bytes:,} bytes")

    def _described(self) -> str:
        return f"{self._files_done} of {self._files} files"
