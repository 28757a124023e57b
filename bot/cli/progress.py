"""Progress on stderr: one line that changes on a terminal, otherwise one line for each event."""

import sys
from collections.abc import Callable, Sequence
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bot.cli import output
from bot.uploader import uploading
from bot.uploader.files import Report
from bot.uploader.transport import Json


class Display:
    """Columns that move while the block runs, if stderr is a terminal."""

    def __init__(self, *columns: ProgressColumn, is_shown: bool = True) -> None:
        console = Console(file=sys.stderr, highlight=False)
        self.moves = is_shown and console.is_terminal
        self.has_lines = is_shown and not console.is_terminal
        self.progress = Progress(*columns, console=console, transient=True)

    def __enter__(self) -> Self:
        """Start the display."""
        if self.moves:
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self.moves:
            self.progress.stop()


class Spinner(Display):
    """Show what a command waits for, and how long; only on a terminal."""

    def __init__(self, text: str) -> None:
        super().__init__(
            SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        )
        self.task = self.progress.add_task(output.plain(text), total=None)

    def show(self, text: str) -> None:
        """Show what it waits for now."""
        self.progress.update(self.task, description=output.plain(text))


class WaitDisplay(Display):
    """A pull request's state while a command waits: a spinner, or a line for each change."""

    def __init__(self) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self.task = self.progress.add_task("asking", total=None, left="")
        self.last_text = ""

    def show(self, record: Json) -> None:
        """Show the pull request's state; the same text is not repeated."""
        text = output.plain(f"#{record['prNumber']} {output.status_line(record)}")
        eta = record.get("eta")
        left = f"until {output.clock_time(eta['latest'])}" if isinstance(eta, dict) else ""
        self.progress.update(self.task, description=text, left=left)
        if self.has_lines and text != self.last_text:
            output.log(text)
        self.last_text = text


class UploadDisplay(Display, uploading.Progress):
    """Files, bytes, time gone and time left of an upload: a bar, or a line for each file."""

    def __init__(self, reports: Sequence[Report], *, is_shown: bool) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            is_shown=is_shown,
        )
        self.files = len(reports)
        self.files_done = 0
        self.bytes_done = 0
        total = sum(len(each.packed) for each in reports)
        self.task = self.progress.add_task(self.description(), total=total)

    def on_sent(self, batch: Sequence[Report], body_bytes: int) -> Callable[[int], object]:
        """Return what moves the bar; a request's files are nearly all of its bytes."""
        packed = sum(len(each.packed) for each in batch)

        def show(sent: int) -> None:
            done = self.bytes_done + packed * sent / body_bytes
            self.progress.update(self.task, completed=done)

        return show

    def on_accepted(self, batch: Sequence[Report]) -> None:
        """Show that the service has accepted the files of a request."""
        self.files_done += len(batch)
        self.bytes_done += sum(len(each.packed) for each in batch)
        self.progress.update(self.task, completed=self.bytes_done, description=self.description())
        for each in batch if self.has_lines else ():
            output.log(f"headgate: sent {each.name}, {each.plain_bytes:,} bytes")

    def description(self) -> str:
        """Return `3 of 12 files`."""
        return f"{self.files_done} of {self.files} files"


class ReplayDisplay(Display):
    """Submissions replayed under each set of settings: a bar each, or a line each."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f} of {task.total:.0f}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.tasks: dict[str, TaskID] = {}

    def show(self, settings: str, total: int, ended: int) -> None:
        """Show how many submissions have ended under these settings."""
        if settings not in self.tasks:
            self.tasks[settings] = self.progress.add_task(settings, total=total)
            if self.has_lines:
                output.log(f"replaying {total} submissions under the {settings}")
        self.progress.update(self.tasks[settings], completed=ended)
